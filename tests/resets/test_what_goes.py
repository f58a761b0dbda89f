"""What a reset takes along, what it hands on, and that it waits for nobody."""

from __future__ import annotations

import asyncio
from threading import Event

import attrs
import pytest
from resets_scene import CHAT, IDLE, accept, serve

from hermes_hookspecs.messages import KIND_SUMMARY
from hermes_hookspecs.ports.agent import AssistantStep
from hermes_hookspecs.ports.platform import ServedEntrance
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.testing.platform import RecordingSender

ALL = operator()
OTHER = attrs.evolve(CHAT, chat_id="oc_2", user_id="ou_2")
ALWAYS = {"session_reset.carry_over": "always"}
AUTOMATIC = {"session_reset.carry_over": "automatic"}


def first_row(app, entry):
    return app.store.messages(entry.lineage_id, ALL)[0]


# ------------------------------------------------------------------ what is handed on


def test_nothing_is_carried_over_unless_asked_for(opened):
    app = opened()
    app.ask("please fix the pump", CHAT)
    app.leave_session(CHAT, None)

    after = app.ask("hello", CHAT).entry

    assert first_row(app, after).content == "hello"


def test_a_summary_is_the_first_marked_row_of_the_next_session_and_the_model_sees_it(opened):
    app = opened(ALWAYS)
    before = app.ask("please fix the pump in /srv/pump.py", CHAT).entry
    app.leave_session(CHAT, before)

    seen = []
    after = app.ask("and now?", CHAT, agent=lambda turn: seen.extend(turn.messages) or "ok").entry

    row = first_row(app, after)
    assert (row.kind, row.turn_id, row.session_id) == (KIND_SUMMARY, None, after.session_id)
    assert "please fix the pump" in row.content
    assert "It is background" in seen[0].content
    assert seen[0].content.endswith(row.content)
    assert [one.content for one in seen[1:]] == ["and now?"]
    assert app.store.lineage(after.lineage_id, ALL).preview == "and now?"
    assert len(app.store.messages(before.lineage_id, ALL)) == 2


def test_it_is_carried_over_once(opened):
    app = opened(ALWAYS)
    app.ask("please fix the pump", CHAT)
    app.leave_session(CHAT, None)
    app.ask("please paint the wall", CHAT)
    app.leave_session(CHAT, None)

    third = app.ask("third", CHAT).entry

    assert "paint the wall" in first_row(app, third).content
    assert app.get_or_create_session(CHAT, force_new=True).created
    assert app.ask("fourth", CHAT).entry.lineage_id != third.lineage_id


def test_automatic_carries_over_what_a_policy_ended_and_not_what_a_person_left(opened, clock):
    app = opened(IDLE | AUTOMATIC)
    app.ask("please fix the pump", CHAT)
    clock.advance(2 * 3600)
    after_policy = app.ask("good morning", CHAT).entry
    app.leave_session(CHAT, None)
    after_person = app.ask("hello", CHAT).entry

    assert "please fix the pump" in first_row(app, after_policy).content
    assert first_row(app, after_person).content == "hello"


def test_nobody_elses_conversation_is_carried_over(opened):
    app = opened(ALWAYS)
    app.ask("a secret", CHAT)
    app.leave_session(CHAT, None)

    other = app.ask("hello", OTHER).entry

    assert first_row(app, other).content == "hello"


def test_new_needs_no_summary_and_where_none_can_be_made_the_session_begins_without(opened, monkeypatch):
    """Case E12."""
    app = opened(ALWAYS)
    app.ask("please fix the pump", CHAT)

    def broken(*_):
        raise RuntimeError("summariser is down")

    monkeypatch.setattr("hermes_core.context.summaries.extract", broken)
    left = app.leave_session(CHAT, None)
    after = app.ask("hello", CHAT).entry

    assert left.summary.message_count == 2
    assert first_row(app, after).content == "hello"


# ------------------------------------------------------------------ what goes


def test_what_holds_for_one_conversation_survives_a_restart_and_goes_with_the_reset(opened, backend):
    app = opened()
    entry = app.ask("hello", CHAT).entry
    app.conversations.set_for(entry.lineage_id, "model", "gpt-x")
    app.conversations.set_for(entry.lineage_id, "home", "oc_9")
    app.conversations.set_for(entry.lineage_id, "home", None)
    if backend != "memory":
        app.close()
        app = opened()

    before = dict(app.conversations.settings_of(entry.lineage_id))
    app.leave_session(CHAT, None)

    assert before == {"model": "gpt-x"}
    assert app.conversations.settings_of(entry.lineage_id) == {}
    assert app.conversations.settings_of(app.ask("again", CHAT).entry.lineage_id) == {}


def test_a_policy_that_keeps_keeps_it_too(opened, clock):
    app = opened(IDLE)
    entry = app.ask("hello", CHAT).entry
    app.conversations.set_for(entry.lineage_id, "model", "gpt-x")

    app.maintain()
    kept = dict(app.conversations.settings_of(entry.lineage_id))
    clock.advance(2 * 3600)
    app.maintain()

    assert kept == {"model": "gpt-x"}
    assert app.conversations.settings_of(entry.lineage_id) == {}


# ------------------------------------------------------------------ what is closed


class Holds:
    """An agent that keeps something open for each conversation, and lets go of it when it is told."""

    name, model = "holds", None

    def __init__(self, blocks=None, error=None):
        self.closed, self.began, self._blocks, self._error = [], Event(), blocks, error

    async def run(self, turn):
        yield AssistantStep(content=f"heard {turn.text}")

    def close_lineage(self, lineage_id):
        self.began.set()
        if self._blocks is not None:
            self._blocks.wait(60)
        if self._error is not None:
            raise self._error
        self.closed.append(lineage_id)


class HoldsOnALoop(Holds):
    async def close_lineage(self, lineage_id):
        await asyncio.sleep(0)
        self.closed.append(lineage_id)


@pytest.mark.parametrize("kind", [Holds, HoldsOnALoop])
def test_an_agent_is_told_once_when_its_conversation_is_let_go_of(opened, clock, kind):
    agent = kind()
    app = opened(IDLE)
    first = app.ask("hello", CHAT, agent=agent).entry
    app.leave_session(CHAT, None)
    app.leave_session(CHAT, None)
    second = app.ask("hello", CHAT, agent=agent).entry
    clock.advance(2 * 3600)
    app.maintain()
    app.close()

    assert agent.closed == [first.lineage_id, second.lineage_id]


def test_a_conversation_with_another_entrance_is_not_closed(opened):
    agent = Holds()
    app = opened()
    entry = app.ask("hello", CHAT, agent=agent).entry
    terminal = attrs.evolve(CHAT, platform="cli", chat_id="pts-1")
    app.resume_session(terminal, entry.lineage_id)

    app.leave_session(CHAT, None)
    app.desk.resets.closings.wait()
    between = list(agent.closed)
    app.leave_session(terminal, None)
    app.desk.resets.closings.wait()

    assert between == []
    assert agent.closed == [entry.lineage_id]


def test_an_agent_that_fails_to_let_go_is_logged_and_nothing_else(opened, caplog):
    app = opened()
    app.ask("hello", CHAT, agent=Holds(error=RuntimeError("no sandbox")))

    app.leave_session(CHAT, None)
    app.desk.resets.closings.wait()

    assert "no sandbox" in caplog.text
    assert app.ask("again", CHAT).text == "echo 1: again"


def test_while_a_close_blocks_for_a_minute_new_confirms_and_another_chat_is_answered(opened):
    """Case E02: nothing here may wait for the event that is set at the end."""
    release = Event()
    agent = Holds(blocks=release)
    app = opened({"session_reset.cleanup_timeout_s": 60})
    sender = RecordingSender()

    async def play():
        served = [ServedEntrance(entrance=Entrance("feishu"), sender=sender)]
        serving = asyncio.create_task(app.work(served, agent=agent))
        try:
            accept_ = app.accept
            from hermes_hookspecs.inbox import MessageEvent

            async def say(text, source):
                now = app.clock.now()
                await accept_([MessageEvent(source=source, text=text, received_at=now, identities=(text,))])

            await say("hello", CHAT)
            await _until(lambda: "heard hello" in sender.texts())
            await say("/new", CHAT)
            assert await asyncio.to_thread(agent.began.wait, 30)
            await say("are you there?", OTHER)
            await say("and here?", CHAT)
            await _until(lambda: {"heard are you there?", "heard and here?"} <= set(sender.texts()))
            assert any("Your next message begins a new session" in text for text in sender.texts())
            assert agent.closed == []
        finally:
            serving.cancel()
            await asyncio.wait({serving}, timeout=30)

    try:
        asyncio.run(play())
    finally:
        release.set()


def test_one_that_takes_too_long_is_left_behind_and_the_end_of_the_process_does_not_wait(opened, caplog):
    release = Event()
    agent = Holds(blocks=release)
    app = opened({"session_reset.cleanup_timeout_s": 0.05})
    app.ask("hello", CHAT, agent=agent)
    app.leave_session(CHAT, None)

    try:
        app.close()
        assert agent.closed == []
        assert "is left behind" in caplog.text
    finally:
        release.set()


async def _until(condition):
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.002)


# ------------------------------------------------------------------ which words reset


def test_reset_triggers_say_by_which_words_a_conversation_is_let_go_of(opened):
    app = opened({"session_reset.reset_triggers": ("/clear", "重新开始")})

    def run(text, entry=None):
        return asyncio.run(app.command(text, CHAT, entry))

    entry = app.ask("hello", CHAT).entry
    by_name = run("/clear", entry)
    entry = app.ask("hello", CHAT).entry
    by_word = run("  重新开始 ", entry)

    assert by_name.released
    assert by_word.released
    assert run("/new").failed
    assert run("please 重新开始") is None
    assert "/clear [TITLE]" in run("/help").text


def test_a_word_that_resets_is_a_command_in_a_chat_too(opened):
    app = opened({"session_reset.reset_triggers": ("start over",)})
    accept(app, "hello")
    serve(app)
    before = app.store.route(app.session_key(CHAT)).lineage_id

    accept(app, "Start  over")
    sender = serve(app)

    assert before is not None
    assert app.store.route(app.session_key(CHAT)).lineage_id is None
    assert any("Your next message begins a new session" in text for text in sender.texts())


def test_without_triggers_nobody_resets_by_a_word(opened):
    app = opened({"session_reset.reset_triggers": ()})
    entry = app.ask("hello", CHAT).entry

    assert asyncio.run(app.command("/new", CHAT, entry)).failed
    assert app.store.route(app.session_key(CHAT)).lineage_id == entry.lineage_id
