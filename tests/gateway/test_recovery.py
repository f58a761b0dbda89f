"""What becomes of a turn whose process died in it: tried again where that is harmless, told to its sender otherwise."""

from __future__ import annotations

import asyncio

import attrs
import pytest

from hermes_core.inbox.door import waiting_draft
from hermes_hookspecs.operations import Accept, Revoke
from hermes_hookspecs.source import SessionSource
from hermes_hookspecs.testing.agents import ScriptedAgent, echo, recite

TERMINAL = SessionSource(platform="cli", chat_id="pts-1", user_id="me")


def roles(hall, lineage_id):
    return [role for role, _ in hall.rows(lineage_id)]


def test_a_message_whose_turn_died_is_answered_once_and_stands_once_in_the_transcript(hall):
    lineage_id = hall.die("hello")

    assert hall.work(ScriptedAgent(echo())) == ["hello"]
    assert hall.said(lineage_id) == ["hello"]
    assert hall.turns(lineage_id) == [("interrupted", 1), ("done", 2)]
    assert hall.work(ScriptedAgent(echo())) == ["hello"]


def test_a_retry_begins_with_a_note_and_the_agent_sees_what_was_finished(hall):
    hall.die("hello", calls=[("c1", "look", "write")], results=[("c1", "it is there")])

    (window,) = hall.work(ScriptedAgent(recite()))

    assert "tool: it is there" in window
    assert "Attempt 2 to answer “hello”" in window.splitlines()[-1]
    assert window.count("user: hello") == 1


@pytest.mark.parametrize("effect", ["read", "idempotent"])
def test_an_open_call_that_may_be_repeated_is_no_reason_to_wait(hall, effect):
    hall.die("hello", calls=[("c1", "look", effect)])

    assert hall.work(ScriptedAgent(echo())) == ["hello"]


def test_an_open_call_that_may_have_taken_effect_parks_its_message_and_the_next_one_goes_on(hall):
    lineage_id = hall.die("pay the bill", calls=[("c1", "look", "read"), ("c2", "pay", "write")])
    hall.say("and now?")
    agent = ScriptedAgent(echo())

    notice, answer = hall.work(agent)

    assert ("interrupted while pay ran" in notice, answer) == (True, "and now?")
    assert [turn.text for turn in agent.turns] == ["and now?"]
    assert roles(hall, lineage_id) == ["user", "assistant", "tool", "tool", "assistant", "user", "assistant"]
    assert hall.work(agent) == [notice, answer]


@pytest.mark.parametrize(("deaths", "attempts", "answered"), [(2, 2, True), (3, 2, False), (1, 0, False), (1, 1, True)])
def test_retries_are_bounded_by_the_setting(open_hall, deaths, attempts, answered):
    hall = open_hall({"gateway.recovery_attempts": attempts})
    lineage_id = hall.die("hello", attempts=deaths)
    agent = ScriptedAgent(echo())

    (told,) = hall.work(agent)

    assert (told == "hello") is answered
    assert ("Send a message to go on" in told) is not answered
    assert hall.said(lineage_id) == ["hello"]


def test_a_younger_message_does_not_share_the_fate_of_one_that_is_tried_again(open_hall):
    hall = open_hall({"inbox.busy": "merge"})
    hall.die("poison", attempts=2)
    hall.say("harmless")
    agent = ScriptedAgent(echo())

    assert hall.work(agent) == ["poison", "harmless"]


def test_the_turn_of_a_process_elsewhere_is_taken_over_after_one_ttl_of_silence(
    open_hall, clock, elsewhere, wait_until
):
    hall = open_hall({"turns.lease_ttl_s": 30}, clock=clock)
    hall.die("hello", holder=elsewhere)

    async def scene():
        async with hall.serving(ScriptedAgent(echo())):
            await wait_until(hall.app.store.servers)
            clock.advance(29)
            await wait_until(lambda: hall.app.store.servers()[0].beats)
            assert not hall.sender.texts()
            await wait_until(lambda: clock.advance(1) or hall.sender.texts())

    asyncio.run(scene())

    assert hall.sender.texts() == ["hello"]
    assert hall.turns() == [("interrupted", 1), ("done", 2)]


def test_maintenance_closes_dead_turns_although_nobody_serves(hall):
    lineage_id = hall.die("pay", calls=[("c1", "pay", "write")])

    assert hall.app.maintain().recovered == 1
    assert hall.app.maintain().recovered == 0
    assert hall.turns(lineage_id) == [("interrupted", 1)]
    assert hall.app.store.lease(lineage_id).holder is None
    assert len(hall.work(ScriptedAgent(echo()))) == 1


def test_maintenance_leaves_a_message_that_may_be_tried_again_to_whoever_serves_it(hall):
    hall.die("hello")

    hall.app.maintain()

    assert hall.item(1).status == "pending"
    assert hall.work(ScriptedAgent(echo())) == ["hello"]


def test_an_interrupted_turn_is_told_as_finished_exactly_once(hall):
    lineage_id = hall.die("hello")

    hall.work(ScriptedAgent(echo()))
    hall.app.maintain()

    began, ended = hall.pairs()
    dead, alive = [turn.id for turn in hall.app.store.turns(lineage_id, hall.app.principal(TERMINAL))]
    assert began == [alive]
    assert sorted(ended) == sorted([(dead, "interrupted"), (alive, "done")])


@pytest.mark.parametrize("ends_it", ["/new", "/stop"])
def test_the_end_of_a_dead_turn_is_told_by_the_command_that_ends_it(hall, ends_it):
    hall.die("hello")
    hall.say(ends_it)

    hall.work(ScriptedAgent(echo()))

    began, ended = hall.pairs()
    assert (began, [outcome for _, outcome in ended]) == ([], ["stopped"])


def test_recovery_never_walks_behind_a_reset(hall):
    hall.die("hello")
    hall.say("/new", "in the new session")
    agent = ScriptedAgent(echo())

    texts = hall.work(agent)

    assert [turn.text for turn in agent.turns] == ["in the new session"]
    assert texts[-1] == "in the new session"
    assert "hello" not in texts


def test_a_stopped_turn_is_no_work_for_recovery(hall):
    lineage_id = hall.die("hello")
    hall.app.store.apply(Revoke(lineage_id=lineage_id, now=hall.clock.now(), reason="stopped"))

    assert hall.work(ScriptedAgent(echo())) == []
    assert hall.turns(lineage_id) == [("stopped", 1)]


# --- terminals


def test_a_terminal_leaves_a_chats_dead_turn_to_whoever_serves_the_chat(hall, wait_until):
    lineage_id = hall.die("from the chat")
    entry = hall.app.resume_session(TERMINAL, lineage_id)

    async def scene():
        async with hall.serving(ScriptedAgent(echo())):
            await wait_until(hall.app.store.servers)
            return await hall.app.ask_async("from the terminal", TERMINAL, entry=entry, agent="echo")

    asyncio.run(scene())

    assert hall.sender.texts() == ["from the chat"]
    assert hall.said(lineage_id) == ["from the chat", "from the terminal"]
    assert [outcome for outcome, _ in hall.turns(lineage_id)] == ["interrupted", "done", "done"]


def test_a_terminal_passes_over_a_chats_dead_turn_that_nobody_serves(hall):
    lineage_id = hall.die("from the chat")
    entry = hall.app.resume_session(TERMINAL, lineage_id)

    hall.app.ask("from the terminal", TERMINAL, entry=entry, agent="echo")

    assert hall.item(1).status == "pending"
    assert hall.work(ScriptedAgent(echo())) == ["from the chat"]
    assert [attempt for _, attempt in hall.turns(lineage_id)] == [1, 1, 2]


def test_a_terminal_that_takes_over_a_parked_turn_tells_the_chat(hall):
    lineage_id = hall.die("pay", calls=[("c1", "pay", "write")])
    entry = hall.app.resume_session(TERMINAL, lineage_id)

    hall.app.ask("what was that?", TERMINAL, entry=entry, agent="echo")

    (notice,) = hall.work(ScriptedAgent(echo()))
    assert "while pay ran" in notice


def test_the_message_of_a_terminal_that_died_holds_no_chat_up_and_is_answered_to_nobody(hall, dead_process):
    lineage_id = hall.app.get_or_create_session(hall.source()).lineage_id
    entry = hall.app.resume_session(TERMINAL, lineage_id)
    draft = waiting_draft(
        hall.app.hooks,
        "from the terminal",
        TERMINAL,
        session_key=entry.session_key,
        lineage_id=lineage_id,
        now=hall.clock.now(),
    )
    draft = attrs.evolve(draft, waiter=attrs.evolve(draft.waiter, **dead_process))
    hall.app.store.apply(Accept(drafts=(draft,), now=hall.clock.now()))
    hall.say("from the chat")

    assert hall.work(ScriptedAgent(echo())) == ["from the chat"]
    assert hall.said(lineage_id) == ["from the chat"]


def test_the_end_of_a_dead_turn_that_a_newer_message_interrupts_is_told_once(open_hall):
    hall = open_hall({"inbox.busy": "interrupt"})
    hall.die("first")

    hall.say("second")
    hall.app.hooks.flush()

    assert [values["turn"].outcome for values in hall.ear.told("after_turn_finish")] == ["stopped"]
