"""Undo, redo and retry: what is taken back is kept, and comes back as it was."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import attrs
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hermes_core import open_app
from hermes_core.leases import holder_here
from hermes_hookspecs.errors import LeaseBusy
from hermes_hookspecs.ids import new_turn_id
from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.messages import USER, MessageDraft
from hermes_hookspecs.operations import Begin, Begun
from hermes_hookspecs.ports.platform import ServedEntrance
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import Entrance, SessionSource
from hermes_hookspecs.testing.platform import RecordingSender

ALL = operator()
TERMINAL = SessionSource(platform="cli", chat_id="pts-1")
CHAT = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1", chat_type="dm")


def counting():
    """Return an agent that never answers alike, so that two answers to one message can be told apart."""
    answers = iter(range(1, 1000))
    return lambda turn: f"answer {next(answers)} to {turn.text}"


def said(app, entry):
    return [row.content for row in app.store.messages(entry.lineage_id, ALL)]


@pytest.fixture
def talk(app):
    agent = counting()

    def say(text, entry=None):
        return app.ask(text, TERMINAL, entry=entry, agent=agent).entry

    return say


def test_an_undo_hides_the_last_turns_and_a_redo_brings_them_back(app, talk):
    for text in ("one", "two", "three"):
        entry = talk(text)
    whole = said(app, entry)

    taken = app.conversations.undo(entry.lineage_id, TERMINAL, turns=2)
    between = said(app, entry)
    brought = app.conversations.redo(entry.lineage_id, TERMINAL)

    assert (taken.turns, taken.text, brought.turns) == (2, "two", 2)
    assert between == whole[:2]
    assert said(app, entry) == whole
    assert app.store.lineage(entry.lineage_id, ALL).message_count == 6


def test_each_redo_brings_back_what_one_undo_took(app, talk):
    for text in ("one", "two", "three"):
        entry = talk(text)
    whole = said(app, entry)
    app.conversations.undo(entry.lineage_id, TERMINAL)
    app.conversations.undo(entry.lineage_id, TERMINAL)

    app.conversations.redo(entry.lineage_id, TERMINAL)
    first = said(app, entry)
    app.conversations.redo(entry.lineage_id, TERMINAL)

    assert first == whole[:4]
    assert said(app, entry) == whole
    assert app.conversations.redo(entry.lineage_id, TERMINAL).refusal


def test_once_something_new_is_said_nothing_is_brought_back(app, talk):
    entry = talk("one")
    talk("two")
    app.conversations.undo(entry.lineage_id, TERMINAL)
    talk("instead")
    now = said(app, entry)

    refused = app.conversations.redo(entry.lineage_id, TERMINAL)

    assert "something new was said" in refused.refusal
    assert said(app, entry) == now


def test_what_was_taken_back_is_not_sent_to_the_model_and_not_found(app, talk):
    entry = talk("the pump")
    talk("the valve")
    app.conversations.undo(entry.lineage_id, TERMINAL)

    seen = []
    app.ask("and now?", TERMINAL, agent=lambda turn: seen.extend(turn.messages) or "ok")

    assert [row.content for row in seen] == ["the pump", "answer 1 to the pump", "and now?"]
    assert app.session_search("valve").results == ()


def test_a_retry_has_the_message_answered_again_and_an_undo_brings_the_first_answer_back(app, talk):
    talk("one")
    entry = talk("two")
    before = said(app, entry)

    retried = app.conversations.retry(entry.lineage_id, TERMINAL)
    hidden = said(app, entry)
    talk(retried.again)
    again = said(app, entry)
    app.conversations.undo(entry.lineage_id, TERMINAL)
    back = said(app, entry)
    app.conversations.redo(entry.lineage_id, TERMINAL)

    assert retried.again == "two"
    assert hidden == before[:2]
    assert again == [*before[:2], "two", "answer 3 to two"]
    assert back == before
    assert said(app, entry) == again


def test_two_undos_of_a_retry_take_the_message_back_as_well(app, talk):
    entry = talk("one")
    whole = said(app, entry)
    for _ in range(2):
        talk(app.conversations.retry(entry.lineage_id, TERMINAL).again)

    app.conversations.undo(entry.lineage_id, TERMINAL, turns=2)
    first = said(app, entry)
    app.conversations.undo(entry.lineage_id, TERMINAL)

    assert first == whole
    assert said(app, entry) == []


def test_what_a_retry_left_behind_does_not_come_back_with_what_stood_around_it(app, talk):
    entry = talk("one")
    talk(app.conversations.retry(entry.lineage_id, TERMINAL).again)
    talk("two")
    whole = said(app, entry)

    app.conversations.undo(entry.lineage_id, TERMINAL, turns=9)
    app.conversations.redo(entry.lineage_id, TERMINAL)

    assert said(app, entry) == whole


def test_what_was_taken_back_for_good_does_not_come_back_with_what_stands_around_it(app, talk):
    entry = talk("one")
    talk("not this")
    app.conversations.undo(entry.lineage_id, TERMINAL)
    talk("two")
    whole = said(app, entry)

    app.conversations.undo(entry.lineage_id, TERMINAL, turns=2)
    app.conversations.redo(entry.lineage_id, TERMINAL)

    assert said(app, entry) == whole


def test_a_turn_that_runs_elsewhere_is_named_and_nothing_changes(app, talk):
    entry = talk("one")
    holder = holder_here(Entrance("slack"), None)
    now = app.clock.now()
    app.store.apply(
        Begin(
            lineage_id=entry.lineage_id,
            turn_id=new_turn_id(now),
            holder=holder,
            now=now,
            ttl_ms=30_000,
            maintenance=True,
        )
    )

    for change in (app.conversations.undo, app.conversations.redo, app.conversations.retry):
        with pytest.raises(LeaseBusy, match="slack"):
            change(entry.lineage_id, TERMINAL)

    assert len(said(app, entry)) == 2


@pytest.mark.parametrize("command", ["undo", "retry"])
def test_a_message_that_was_taken_back_is_not_tried_again(app, command):
    """A process died over a chat's message; before anybody tried it again, the terminal took it back."""
    entry = app.ask("zero", CHAT, agent=counting()).entry
    app.resume_session(TERMINAL, entry.lineage_id)
    interrupt(app, entry.lineage_id, "one")

    getattr(app.conversations, command)(entry.lineage_id, TERMINAL)

    assert serve(app) == []
    assert said(app, entry) == ["zero", "answer 1 to zero"]
    assert app.store.waiting(entry.lineage_id) == ()
    if command == "undo":
        app.conversations.redo(entry.lineage_id, TERMINAL)
        assert said(app, entry)[2] == "one"
        assert serve(app) == []


def interrupt(app, lineage_id, text):
    """Accept a chat's message and leave its turn behind as a process does that has died."""
    now = app.clock.now()
    event = MessageEvent(source=CHAT, text=text, received_at=now, identities=("om_1",))
    (accepted,) = asyncio.run(app.accept([event]))
    app.desk.route_waiting(app.store.inbox_item(accepted.id))
    item = app.store.inbox_item(accepted.id)
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait(timeout=60)
    begun = app.store.apply(
        Begin(
            lineage_id=lineage_id,
            turn_id=new_turn_id(now),
            holder=attrs.evolve(holder_here(item.entrance, item.session_key), pid=child.pid),
            now=now,
            ttl_ms=30_000,
            drafts=(MessageDraft(role=USER, content=text, timestamp=now, inbox_id=item.id),),
        )
    )
    assert isinstance(begun, Begun)


def serve(app):
    sender = RecordingSender()
    served = [ServedEntrance(entrance=Entrance("feishu"), sender=sender)]
    asyncio.run(asyncio.wait_for(app.work(served, until_idle=True), 30))
    return sender.texts()


def test_an_undo_does_not_reach_behind_a_compression(app, talk):
    for number in range(8):
        entry = talk(f"message {number} " + "word " * 400)
    report = asyncio.run(app.compress_session(entry.lineage_id, TERMINAL))
    assert not report.refusal
    kept = app.context_report(report.session_id)

    app.conversations.undo(entry.lineage_id, TERMINAL, turns=1000)
    refused = app.conversations.undo(entry.lineage_id, TERMINAL)

    assert kept.messages
    assert "/uncompress" in refused.refusal
    left = said(app, entry)
    assert left[0].startswith("message 0")


def test_an_undo_of_more_turns_than_there_are_says_that_it_took_fewer(app, talk):
    talk("one")
    entry = talk("two")

    exact = asyncio.run(app.command("/undo 1", TERMINAL, entry)).text
    fewer = asyncio.run(app.command("/undo 5", TERMINAL, entry)).text

    assert exact == "Taken back: “two”. /redo brings it back."
    assert fewer == "Taken back: “one”. Nothing before that can be taken back here. /redo brings it back."


@pytest.mark.parametrize("turns", [1, 5])
def test_what_was_undone_before_a_compression_comes_back_behind_it_and_is_seen(app, talk, turns):
    for number in range(8):
        entry = talk(f"message {number} " + "word " * 400)
    app.conversations.undo(entry.lineage_id, TERMINAL, turns=turns)
    assert not asyncio.run(app.compress_session(entry.lineage_id, TERMINAL)).refusal

    brought = app.conversations.redo(entry.lineage_id, TERMINAL)
    seen = []
    app.ask("and now?", TERMINAL, agent=lambda turn: seen.extend(turn.messages) or "ok")

    assert brought.turns == turns
    asked = [row.content[:9].strip() for row in seen if row.role == USER and row.content.startswith("message")]
    assert asked[-turns:] == [f"message {number}" for number in range(8 - turns, 8)]


def test_after_a_restart_it_is_still_known(profile, backend):
    if backend == "memory":
        pytest.skip("this store does not outlive its process")
    app = profile()
    entry = app.ask("one", TERMINAL).entry
    app.ask("two", TERMINAL)
    app.conversations.undo(entry.lineage_id, TERMINAL)
    app.close()

    again = profile()
    again.conversations.redo(entry.lineage_id, TERMINAL)

    assert len(said(again, entry)) == 4


# ------------------------------------------------------------------ the law

steps = st.lists(st.sampled_from(["say", "undo", "undo 2", "redo", "retry"]), max_size=14)


@settings(max_examples=40, deadline=None, database=None)
@given(steps=steps)
@example(steps=["say", "undo", "say", "undo 2", "redo"])
@example(steps=["retry", "say", "undo 2", "undo", "redo", "redo"])
def test_a_redo_takes_an_undo_back_exactly_and_nothing_is_ever_lost(tmp_path_factory, steps):
    """A pile of views beside the real thing: what is seen is always the top of what the model says it is."""
    agent = counting()
    with open_app(
        tmp_path_factory.mktemp("undo"), overrides={"storage.backend": "memory"}, plugins=False, environ={}
    ) as app:
        entry = app.ask("begin", TERMINAL, agent=agent).entry
        past, undone, ever = [(said(app, entry), "say")], [], set(said(app, entry))
        for number, step in enumerate(steps):
            lineage_id = entry.lineage_id
            if step == "say":
                app.ask(f"message {number}", TERMINAL, agent=agent)
                past.append((said(app, entry), "say"))
                undone = []
            elif step == "retry":
                before = said(app, entry)
                again = app.conversations.retry(lineage_id, TERMINAL)
                if not before:
                    assert again.refusal
                    continue
                app.ask(again.again, TERMINAL, agent=agent)
                now = said(app, entry)
                assert now[:-2] == before[:-2]
                assert now[-2] == before[-2]
                assert now[-1] != before[-1]
                past.append((now, "retry"))
                undone = []
            elif step == "redo":
                done = app.conversations.redo(lineage_id, TERMINAL)
                assert bool(done.refusal) is not bool(undone)
                if undone:
                    past.extend(undone.pop())
            else:
                wanted = min(int(step[-1]) if step[-1].isdigit() else 1, len(past))
                done = app.conversations.undo(lineage_id, TERMINAL, turns=wanted or 1)
                assert done.turns == wanted
                if wanted:
                    undone.append(past[-wanted:])
                    past = past[:-wanted]
            assert said(app, entry) == (past[-1][0] if past else [])
            ever.update(said(app, entry))
            every = {row.content for row in app.store.messages(lineage_id, ALL, hidden=True)}
            assert ever <= every
