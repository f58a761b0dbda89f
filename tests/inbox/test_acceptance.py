"""The door: everything of a batch in one transaction, nothing twice, nothing lost without a word."""

from __future__ import annotations

import asyncio

import pytest

from hermes_core.leases import holder_here
from hermes_hookspecs.errors import Conflict
from hermes_hookspecs.ids import new_turn_id
from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.messages import USER, Attachment, MessageDraft
from hermes_hookspecs.operations import Accept, Begin, Begun
from hermes_hookspecs.source import Entrance, SessionSource
from hermes_hookspecs.state import StateUpdate
from hermes_hookspecs.testing.agents import Gate, ScriptedAgent, echo, pause

PATIENCE_S = 30
FEISHU = Entrance("feishu")


class Redaction:
    """A plugin that takes a word out, and fails at another."""

    @hookimpl
    def hermes_redact_inbound(self, text, source):
        if "poison" in text:
            raise RuntimeError("cannot read that")
        return text.replace("hunter2", "***")


def cursor(value, **fields):
    return StateUpdate(namespace="feishu", key="cursor", value=value, **fields)


def begin(app, item):
    """Begin a turn with a message, as another server of its entrance would."""
    lineage_id = app.get_or_create_session(item.source).lineage_id
    now = app.clock.now()
    operation = Begin(
        lineage_id=lineage_id,
        turn_id=new_turn_id(now),
        holder=holder_here(FEISHU, item.session_key),
        now=now,
        ttl_ms=30_000,
        drafts=(MessageDraft(role=USER, content=item.text, timestamp=now, inbox_id=item.id),),
    )
    begun = app.store.apply(operation)
    assert isinstance(begun, Begun)
    return lineage_id


# --- one transaction


def test_a_batch_and_the_state_of_its_sender_are_stored_together(door):
    results = door.accept(door.event("one", "m1"), door.event("two", "m2", chat="oc_2"), state=(cursor("7"),))

    assert [(one.id, one.duplicate, one.refused) for one in results] == [(1, False, ""), (2, False, "")]
    assert [door.item(number).text for number in (1, 2)] == ["one", "two"]
    assert door.cursor() == "7"


def test_a_state_that_somebody_else_has_written_stores_nothing_of_the_batch(door):
    door.accept(state=(cursor("7"),))

    with pytest.raises(Conflict):
        door.accept(door.event("one", "m1"), state=(cursor("8", expected_version=5),))

    assert (door.item(1), door.cursor()) == (None, "7")


def test_what_cannot_be_redacted_is_put_aside_without_its_content_and_holds_nothing_up(open_door, caplog):
    door = open_door(plugins=[Redaction()])
    secret = (Attachment(kind="file", name="poison.txt"),)

    door.accept(door.event("fine", "m1"), door.event("poison", "m2", attachments=secret), state=(cursor("7"),))

    aside = door.item(2)
    assert (aside.status, aside.text, aside.attachments) == ("quarantined", "", ())
    assert "could not redact" in aside.error
    assert "poison" not in caplog.text
    assert (door.work(), door.cursor()) == (["echo 1: fine"], "7")
    assert door.accept(door.event("poison", "m2"))[0].duplicate


def test_what_was_taken_out_at_the_door_is_nowhere_behind_it(open_door):
    door = open_door(plugins=[Redaction()])
    door.accept(door.event("my password is hunter2", "m1"))

    assert door.item(1).text == "my password is ***"
    assert door.work() == ["echo 1: my password is ***"]


# --- what cannot be read


def test_an_unreadable_item_is_kept_apart_and_holds_nothing_up(door):
    door.accept(
        door.event("one", "m1"),
        door.event("", "m2", error="unknown type 'sticker'"),
        door.event("three", "m3"),
        state=(cursor("3"),),
    )

    assert door.work() == ["echo 1: one", "echo 2: three"]
    (kept,) = door.app.store.quarantined()
    assert (kept.error, kept.status, door.cursor()) == ("unknown type 'sticker'", "quarantined", "3")
    (again,) = door.accept(door.event("", "m2", error="unknown type 'sticker'"))
    assert again.duplicate


def test_a_sender_who_cannot_be_told_apart_reaches_nobodys_session(door):
    nameless = SessionSource(platform="feishu")
    results = door.accept(
        door.event("who am I?", "m1", source=nameless), door.event("hello", "m2"), state=(cursor("2"),)
    )

    assert [one.refused for one in results] == ["", ""]
    (kept,) = door.app.store.quarantined()
    assert (kept.text, kept.lineage_id) == ("who am I?", None)
    assert (door.work(), door.cursor()) == (["echo 1: hello"], "2")


# --- what is refused


def test_a_full_queue_refuses_visibly_and_once_however_often_it_is_delivered(open_door):
    door = open_door({"inbox.max_waiting": 2})
    *_, refused = door.accept(*(door.event(f"m{number}", f"m{number}") for number in range(3)))
    (again,) = door.accept(door.event("m2", "m2"))

    assert (refused.id, again.id) == (None, None)
    assert "2 messages wait" in refused.refused
    texts = door.work()
    assert [text for text in texts if "was not taken" in text] == [texts[0]]
    assert texts[1:] == ["echo 1: m0", "echo 2: m1"]


def test_the_notice_for_a_refused_message_takes_no_commands_reply(open_door):
    door = open_door({"inbox.max_waiting": 1})
    door.accept(door.event("one", "m1"), door.event("/help", "m2"), door.event("three", "2"))

    assert sum("/help" in text for text in door.work()) == 1


def test_a_refused_message_that_is_delivered_again_later_is_taken(open_door):
    door = open_door({"inbox.max_waiting": 1})
    door.accept(door.event("one", "m1"), door.event("two", "m2"))
    door.work()

    (later,) = door.accept(door.event("two", "m2"))

    assert (later.refused, door.work()[-1]) == ("", "echo 2: two")


def test_a_full_queue_takes_commands_and_what_cannot_be_read(open_door):
    door = open_door({"inbox.max_waiting": 1})

    results = door.accept(door.event("one", "m1"), door.event("/stop", "m2"), door.event("", "m3", error="broken"))

    assert [one.refused for one in results] == ["", "", ""]


def test_the_policy_reject_takes_nothing_while_a_turn_runs_and_says_so_once(open_door):
    door = open_door({"inbox.busy": "reject"})
    door.accept(door.event("one", "m1"))
    begin(door.app, door.item(1))

    first, second, unreadable = door.accept(
        door.event("two", "m2"), door.event("two", "m2"), door.event("", "m3", error="broken")
    )

    assert (first.refused, second.refused, unreadable.refused) == ("busy", "busy", "")
    (notice,) = door.app.store.deliveries()
    assert "still at work" in notice.text


def test_the_policy_reject_takes_commands_while_a_turn_runs(open_door):
    door = open_door({"inbox.busy": "reject"})
    door.accept(door.event("one", "m1"))
    lineage_id = begin(door.app, door.item(1))

    (taken,) = door.accept(door.event("/stop", "m2"))

    assert taken.refused == ""
    assert door.work() == ["Stopped."]
    assert door.app.store.lease(lineage_id).holder is None


# --- interrupt


def test_the_policy_interrupt_stops_the_turn_of_the_same_key_for_good(open_door):
    door = open_door({"inbox.busy": "interrupt"})
    gate = Gate()
    agent = ScriptedAgent(pause(gate), echo()).then(echo())

    async def scene():
        async with asyncio.timeout(PATIENCE_S):
            await door.app.accept([door.event("first", "m1")])
            serving = asyncio.create_task(door.app.work(door.served(), agent=agent, until_idle=True))
            assert await asyncio.to_thread(gate.reached.wait, PATIENCE_S)
            await door.app.accept([door.event("second", "m2")])
            await serving

    asyncio.run(scene())

    assert door.sender.texts() == ["second"]
    assert door.work(agent) == ["second"]
    assert agent.closed == 1
    assert [door.item(number).status for number in (1, 2)] == ["done", "done"]


def test_the_policy_interrupt_leaves_the_turns_of_others_alone(open_door):
    door = open_door({"inbox.busy": "interrupt"})
    door.accept(door.event("mine", "m1"))
    lineage_id = begin(door.app, door.item(1))

    door.accept(door.event("somebody else", "m2", chat="oc_2"), door.event("", "m3", error="broken"))
    door.accept(door.event("/help", "m4"), door.event("mine", "m1"))

    assert door.app.store.active_turn(lineage_id) is not None


def test_the_policy_interrupt_leaves_the_turns_of_others_in_one_room_alone(open_door):
    door = open_door({"inbox.busy": "interrupt", "routing.group_sessions_per_user": False})
    mine, theirs = (door.source(chat_type="group", user_id=user) for user in ("ou_1", "ou_2"))
    door.accept(door.event("mine", "m1", source=mine))
    lineage_id = begin(door.app, door.item(1))

    door.accept(door.event("theirs", "m2", source=theirs))
    running = door.app.store.active_turn(lineage_id)
    door.accept(door.event("mine again", "m3", source=mine))

    assert running is not None
    assert door.app.store.active_turn(lineage_id) is None


class Quick:
    """A store in which somebody else begins with a message the moment it is accepted."""

    def __init__(self, app):
        self._app, self._store = app, app.store
        self.lineage_id = None

    def __getattr__(self, name):
        return getattr(self._store, name)

    async def perform(self, operation):
        result = await self._store.perform(operation)
        if isinstance(operation, Accept):
            self.lineage_id = begin(self._app, self._store.inbox_item(result[0].id))
        return result


def test_a_message_does_not_stop_the_turn_that_answers_it_already(open_door):
    door = open_door({"inbox.busy": "interrupt"})
    door.app._store = quick = Quick(door.app)

    door.accept(door.event("hello", "m1"))

    assert door.app.store.active_turn(quick.lineage_id).inbox_ids == (1,)


# --- commands


@pytest.mark.parametrize(
    ("event", "kind"),
    [
        ({"text": "/new plan"}, "control"),
        ({"text": "/nothing-of-that-name"}, "control"),
        ({"text": "/usr/bin/env python"}, "message"),
        ({"text": "hello /new"}, "message"),
        ({"text": "/new", "attachments": (Attachment(kind="image", name="a.png"),)}, "message"),
        ({"text": "/new", "kind": "internal"}, "internal"),
    ],
)
def test_a_command_is_a_row_of_its_own_kind(door, event, kind):
    fields = {name: value for name, value in event.items() if name != "text"}
    door.accept(door.event(event["text"], "m1", **fields))

    assert door.item(1).kind == kind


def test_a_control_row_that_is_no_command_is_kept_where_somebody_sees_it(door):
    (result,) = door.accept(door.event("approve it", "m1", kind="control"))

    item = door.item(result.id)
    assert (item.status, item.error) == ("quarantined", "a control row that is no command")


def test_one_text_is_no_set_of_identities():
    with pytest.raises(TypeError, match=r"identities are several texts, such as \('abc',\), not str"):
        MessageEvent(source=SessionSource(platform="feishu"), text="hello", identities="abc", received_at=1)


def test_a_kind_that_does_not_exist_is_refused_where_it_is_written():
    with pytest.raises(ValueError, match="kind"):
        MessageEvent(source=SessionSource(platform="feishu"), text="hello", kind="mesage", received_at=1)
