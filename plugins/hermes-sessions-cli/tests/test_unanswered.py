"""Who answers the last message of a conversation whose turn did not end well."""

from __future__ import annotations

import os

import attrs
import pytest

from hermes_cli.unanswered import what_next
from hermes_core.leases import holder_here
from hermes_hookspecs.ids import TurnId
from hermes_hookspecs.inbox import InboxDraft
from hermes_hookspecs.messages import ASSISTANT, USER, MessageDraft, ToolCall
from hermes_hookspecs.operations import Accept, Append, Begin
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.turns import Fence

from .conftest import FEISHU as SOURCE

FEISHU = Entrance("feishu")


@pytest.fixture
def dead_turn(app, say):
    """Return a function that leaves a turn whose process is gone behind a chat message; gives its lineage."""

    def dead_turn(*, waits=False, effects=()):
        entry, now = say("hello").entry, app.clock.now()
        gone = attrs.evolve(holder_here(FEISHU, None), pid=os.getppid(), started="1")
        draft = InboxDraft(
            session_key=entry.session_key,
            source=SOURCE,
            entrance=FEISHU,
            text="again",
            accepted_at=now,
            lineage_id=entry.lineage_id,
            waiter=gone if waits else None,
        )
        (row,) = app.store.apply(Accept(drafts=(draft,), now=now))
        user = MessageDraft(role=USER, content="again", timestamp=now, inbox_id=row.id)
        begin = Begin(
            lineage_id=entry.lineage_id,
            turn_id=TurnId("T1"),
            holder=gone,
            now=now,
            ttl_ms=30_000,
            drafts=(user,),
        )
        begun = app.store.apply(begin)
        fence = Fence(entry.lineage_id, TurnId("T1"), begun.lease.token)
        if effects:
            calls = tuple(
                ToolCall(id=f"c{place}", name="pay", effect=effect, in_order=True)
                for place, effect in enumerate(effects)
            )
            step = MessageDraft(role=ASSISTANT, content="", timestamp=now, tool_calls=calls)
            app.store.apply(Append(fence=fence, drafts=(step,), now=now))
        return entry.lineage_id

    return dead_turn


def hint(app, lineage_id):
    return what_next(app, lineage_id, app.store.turns(lineage_id, operator()), app.turn_state(lineage_id))


def test_a_message_of_a_chat_is_answered_again_by_who_serves_it(app, dead_turn, hermes):
    lineage_id = dead_turn()

    told = hint(app, lineage_id)
    shown = hermes("sessions", "show", app.store.lineage(lineage_id, operator()).tip)

    assert told == "The last turn was interrupted; the message is answered again when somebody serves feishu."
    assert shown.err == f"{told}\n"


def test_it_stays_so_when_the_turn_was_closed(app, dead_turn):
    lineage_id = dead_turn()

    app.maintain()

    assert app.store.active_turn(lineage_id) is None
    assert hint(app, lineage_id).endswith("; the message is answered again when somebody serves feishu.")


def test_a_message_whose_sender_waited_has_to_be_sent_again(app, dead_turn):
    assert hint(app, dead_turn(waits=True)).endswith("; send the message again to have it answered.")


def test_a_turn_that_may_have_changed_something_is_parked_and_its_sender_told(app, dead_turn):
    lineage_id = dead_turn(effects=["write"])

    before = hint(app, lineage_id)
    app.maintain()
    after = hint(app, lineage_id)

    assert "is not tried again by itself, and its sender is told so when somebody serves feishu" in before
    assert "; its sender is told (delivery 1); a new message from there goes on." in after


def test_a_call_that_may_be_repeated_parks_nothing(app, dead_turn):
    assert "answered again" in hint(app, dead_turn(effects=["read"]))


def test_a_call_that_had_not_begun_parks_nothing(app, dead_turn):
    assert "answered again" in hint(app, dead_turn(effects=["read", "write"]))
