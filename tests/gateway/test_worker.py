"""Answering entrances: first in, first out; one answer a message; nobody else's turn; nobody stuck."""

from __future__ import annotations

import asyncio

import attrs
import pytest

import hermes_core.turns.worker as worker_module
from hermes_core.leases import holder_here
from hermes_core.turns.queue import LineageQueue, same_address
from hermes_hookspecs.errors import StoreBusy
from hermes_hookspecs.operations import ServeEntrances
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import Entrance, SessionSource
from hermes_hookspecs.testing.agents import Gate, ScriptedAgent, echo, fail, pause, say

FEISHU, SLACK = Entrance("feishu"), Entrance("slack")
TERMINAL = SessionSource(platform="cli", chat_id="pts-1", user_id="me")


def addresses(hall):
    return [(part.address.split(":")[3], part.text) for part in hall.sender.received()]


# --- order and place


def test_each_message_is_answered_once_where_it_came_from_and_in_order(hall):
    hall.say("one", hall.event("other", "oc_2"), "two", "three")

    hall.work(ScriptedAgent(echo()))

    assert sorted(addresses(hall)) == [("oc_1", "one"), ("oc_1", "three"), ("oc_1", "two"), ("oc_2", "other")]
    assert hall.said() == ["one", "two", "three"]
    assert hall.turns() == [("done", 1)] * 3
    assert [hall.item(number).status for number in (1, 2, 3, 4)] == ["done"] * 4


def test_chats_of_one_lineage_share_its_queue_and_each_gets_its_own_answers(hall):
    lineage_id = hall.app.get_or_create_session(hall.source()).lineage_id
    hall.link(hall.source("oc_2"), lineage_id)
    hall.say("a1", hall.event("b1", "oc_2"), "a2", hall.event("b2", "oc_2"))

    hall.work(ScriptedAgent(echo()))

    assert hall.said(lineage_id) == ["a1", "b1", "a2", "b2"]
    assert addresses(hall) == [("oc_1", "a1"), ("oc_2", "b1"), ("oc_1", "a2"), ("oc_2", "b2")]


def test_texts_said_in_one_go_are_answered_together_and_those_of_others_are_not(open_hall):
    hall = open_hall({"inbox.batch_window_s": 0.05, "routing.group_sessions_per_user": False})
    group = {"chat_type": "group", "user_name": "Ann"}
    bob = hall.source("oc_1", chat_type="group", user_id="ou_2", user_name="Bob")
    agent = ScriptedAgent(echo())
    hall.say(
        hall.event("one", source=hall.source(**group)),
        hall.event("two", source=hall.source(**group)),
        hall.event("from Bob", source=bob),
        hall.event("three", source=hall.source(**group)),
    )

    assert hall.work(agent) == ["one\ntwo", "from Bob", "three"]
    assert [turn.source.user_id for turn in agent.turns] == ["ou_1", "ou_2", "ou_1"]


def test_a_batch_is_held_for_its_window_whatever_becomes_of_the_wall_clock(open_hall, clock, wait_until):
    hall = open_hall({"inbox.batch_window_s": 0.02}, clock=clock)
    hall.say("hello")
    clock.set_now(clock.now() - 3_600_000)

    async def scene():
        async with hall.serving(ScriptedAgent(echo())):
            await wait_until(lambda: hall.item(1).lineage_id)
            assert hall.sender.texts() == []  # the window is the test's own, and has not passed
            await wait_until(lambda: clock.advance(0.01) or hall.sender.texts())

    asyncio.run(scene())

    assert hall.sender.texts() == ["hello"]


@pytest.mark.parametrize(("policy", "turns"), [("merge", ["one", "two\nthree"]), ("queue", ["one", "two", "three"])])
def test_what_comes_during_a_turn_is_answered_together_only_where_that_is_said(open_hall, wait_for, policy, turns):
    hall = open_hall({"inbox.busy": policy})
    gate = Gate()
    agent = ScriptedAgent(pause(gate), echo())

    async def scene():
        await hall.accept("one")
        serving = asyncio.create_task(hall.app.work(hall.served(), agent=agent, until_idle=True))
        await wait_for(gate.reached)
        await hall.accept("two", "three")
        gate.open()
        await serving

    asyncio.run(scene())

    assert hall.sender.texts() == turns


@pytest.mark.parametrize("other", [{"chat_id": "oc_2"}, {"account_id": "second"}, {"scope_id": "T2"}])
def test_what_one_sender_says_in_two_places_is_not_answered_together_under_one_key(hall, other):
    hall.say("here", hall.event("there", source=hall.source(**other)))
    here, there = hall.item(1), hall.item(2)
    there = attrs.evolve(there, session_key=here.session_key, entrance=here.entrance)

    assert same_address(here, here)
    assert not same_address(here, there)


# --- whose turn it is


def test_a_message_whose_entrance_nobody_serves_is_passed_over_and_keeps_its_place(hall):
    slack = hall.source("C1", platform="slack", scope_id="T1")
    lineage_id = hall.app.get_or_create_session(hall.source()).lineage_id
    hall.link(slack, lineage_id)
    hall.say(hall.event("first, from slack", source=slack), "second", hall.event("third, from slack", source=slack))
    agent = ScriptedAgent(echo())

    assert hall.work(agent, FEISHU) == ["second"]
    assert [hall.item(number).status for number in (1, 2, 3)] == ["pending", "done", "pending"]
    assert hall.work(agent, SLACK) == ["second", "first, from slack", "third, from slack"]


def test_whoever_serves_only_the_younger_message_waits_for_the_other_server(hall, wait_for, wait_until):
    slack = hall.source("C1", platform="slack", scope_id="T1")
    lineage_id = hall.app.get_or_create_session(hall.source()).lineage_id
    hall.link(slack, lineage_id)
    gate = Gate()

    async def scene():
        async with (
            hall.serving(ScriptedAgent(pause(gate), echo()), SLACK),
            hall.serving(ScriptedAgent(echo()), FEISHU),
        ):
            await wait_until(lambda: len(hall.app.store.servers()) == 2)
            await hall.accept(hall.event("older", source=slack), "younger")
            await wait_for(gate.reached)
            assert hall.sender.texts() == []
            gate.open()
            await wait_until(lambda: len(hall.sender.texts()) == 2)

    asyncio.run(scene())

    assert hall.said(lineage_id) == ["older", "younger"]


def behind_another_process(hall, others=60):
    """Leave messages of an entrance that another process serves, and one of ours behind them."""
    slack = hall.source("C1", platform="slack", scope_id="T1")
    lineage_id = hall.app.get_or_create_session(hall.source()).lineage_id
    hall.link(slack, lineage_id)
    holder = attrs.evolve(holder_here(SLACK, None), host="elsewhere", boot_id="elsewhere")
    hall.app.store.apply(ServeEntrances(entrances=(SLACK,), holder=holder, now=hall.clock.now()))
    hall.say(*(hall.event(f"s{number}", source=slack) for number in range(others)), "mine")
    return others + 1


@pytest.mark.parametrize("others", [1, 60])
def test_whoever_has_to_wait_for_another_process_rests_meanwhile(hall, monkeypatch, others):
    number = behind_another_process(hall, others)
    looks, looked = 0, LineageQueue.look

    def look(self, reader, own=None):
        nonlocal looks
        looks += 1
        return looked(self, reader, own)

    monkeypatch.setattr(LineageQueue, "look", look)

    async def scene():
        async with hall.serving("echo"):
            await asyncio.sleep(0.3)  # long for one who spins, short for one who rests

    asyncio.run(scene())

    assert hall.item(number).status == "pending"
    assert 1 <= looks < 10


@pytest.mark.parametrize("others", [1, 60])
def test_who_works_until_idle_does_not_wait_for_what_another_process_has_to_answer_first(hall, others):
    number = behind_another_process(hall, others)

    assert hall.work("echo") == []
    assert hall.item(number).status == "pending"


def test_a_terminal_and_a_chat_take_turns_in_one_session(hall, wait_for, wait_until):
    lineage_id = hall.app.get_or_create_session(hall.source()).lineage_id
    entry = hall.app.resume_session(TERMINAL, lineage_id)
    gate = Gate()

    async def scene():
        async with hall.serving(ScriptedAgent(pause(gate), echo()).then(echo())):
            await hall.accept("chat 1")
            await wait_for(gate.reached)
            asked = asyncio.create_task(hall.app.ask_async("terminal", TERMINAL, entry=entry, agent="echo"))
            await wait_until(lambda: hall.item(2))
            await hall.accept("chat 2")
            gate.open()
            await asked
            await wait_until(lambda: len(hall.sender.texts()) == 2)

    asyncio.run(scene())

    assert hall.said(lineage_id) == ["chat 1", "terminal", "chat 2"]
    assert hall.sender.texts() == ["chat 1", "chat 2"]


def test_two_workers_of_one_entrance_never_overlap_and_answer_each_message_once(hall, wait_until):
    running, most = [], []

    async def agent(turn):
        running.append(turn.turn.lineage_id)
        most.append(running.count(turn.turn.lineage_id))
        await asyncio.sleep(0)
        running.remove(turn.turn.lineage_id)
        return turn.text

    async def scene():
        async with hall.serving(agent), hall.serving(agent):
            for number in range(12):
                await hall.accept(hall.event(f"m{number}", f"oc_{number % 3}"))
            await wait_until(lambda: len(hall.sender.texts()) == 12)

    asyncio.run(scene())

    assert sorted(hall.sender.texts()) == sorted(f"m{number}" for number in range(12))
    assert max(most) == 1
    assert hall.said(hall.lineage("oc_0")) == ["m0", "m3", "m6", "m9"]


def test_a_worker_goes_on_when_another_one_of_its_process_leaves(open_hall, wait_until, leaves):
    hall = open_hall({"turns.lease_ttl_s": 600, "turns.lease_renew_s": 300})  # no beat tells it sooner
    slack = hall.source("C1", platform="slack", scope_id="T1")

    async def scene():
        other = asyncio.create_task(hall.app.work(hall.served(SLACK), agent="echo"))
        async with hall.serving("echo", FEISHU):
            await wait_until(lambda: len(hall.app.store.servers()) == 2)
            await leaves(other)
            await hall.accept("still there?", hall.event("anybody?", source=slack))
            await wait_until(hall.sender.texts)
            assert [str(one.entrance) for one in hall.app.store.servers()] == ["feishu"]
        assert not hall.app.store.servers()

    asyncio.run(scene())

    assert hall.sender.texts() == ["echo 1: still there?"]


# --- what goes wrong


def test_a_failing_agent_is_told_once_and_the_next_message_goes_on(hall):
    agent = ScriptedAgent(fail(RuntimeError("secret detail"))).then(echo())
    hall.say("one", "two")

    notice, answer = hall.work(agent)

    assert "could not be answered" in notice
    assert "secret detail" not in notice
    assert answer == "two"
    assert hall.turns() == [("failed", 1), ("done", 1)]
    assert hall.work(agent) == [notice, answer]


def test_an_agent_without_an_answer_sends_nothing_and_its_message_is_done(hall):
    hall.say("hello")

    assert hall.work(lambda turn: "") == []
    assert (hall.item(1).status, hall.turns()) == ("done", [("done", 1)])


def test_a_message_of_a_new_chat_gets_a_session_although_its_policy_changed_meanwhile(open_hall):
    before = open_hall({"routing.group_sessions_per_user": True})
    if not before.app.store.durable:
        pytest.skip("a restart needs a store that survives it")
    group = before.source(chat_type="group")
    before.say(before.event("hello", source=group))
    key = before.item(1).session_key
    before.app.close()
    after = open_hall({"routing.group_sessions_per_user": False})

    assert after.work("echo") == ["echo 1: hello"]
    assert after.app.store.route(key).lineage_id == after.item(1).lineage_id


class Faulty:
    """A store whose reads and writes fail for a while."""

    def __init__(self, store, faults):
        self._store, self.faults = store, faults

    def __getattr__(self, name):
        return getattr(self._store, name)

    def _fails(self):
        if self.faults:
            self.faults -= 1
            raise StoreBusy("a stranger holds the lock")

    def submit_read(self, read):
        def checked(reader):
            self._fails()
            return read(reader)

        return self._store.submit_read(checked)


def test_a_worker_outlives_a_store_that_does_not_answer_for_a_while(hall, monkeypatch, wait_until):
    monkeypatch.setattr(worker_module, "_AFTER_FAULT_S", 0.0)
    hall.say("hello")
    hall.app._store = Faulty(hall.app.store, 5)

    assert hall.work(ScriptedAgent(say("here"))) == ["here"]
    assert hall.app.store.faults == 0


def test_the_principal_and_the_place_of_a_turn_are_those_of_its_message(hall):
    agent = ScriptedAgent(echo())
    hall.say("one", hall.event("two", "oc_2"))

    hall.work(agent)

    assert {(turn.text, turn.source.chat_id) for turn in agent.turns} == {("one", "oc_1"), ("two", "oc_2")}
    assert all(turn.principal == hall.app.principal(turn.source) != operator() for turn in agent.turns)
