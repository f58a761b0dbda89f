"""A process that is asked to leave, or cannot write: turns end in time or wait for the next server, leases are free."""

from __future__ import annotations

import asyncio

import hermes_core.turns.worker as worker_module
from hermes_hookspecs.errors import StoreFull
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.messages import KIND_RECOVERY, USER, ToolCall
from hermes_hookspecs.operations import Finish
from hermes_hookspecs.principal import operator
from hermes_hookspecs.testing.agents import FakeTool, Gate, ScriptedAgent, ask_for, call, echo, pause


def serve_until_it_leaves(hall, agent, gate, wait_for, leaves):
    """Serve ``agent`` until it stands at the gate, then ask the process to leave."""

    async def scene():
        task = asyncio.create_task(hall.app.work(hall.served(), agent=agent))
        await wait_for(gate.reached)
        await leaves(task)

    asyncio.run(scene())


def test_a_turn_that_ends_in_time_is_answered_and_delivered_before_its_process_leaves(open_hall, wait_for, wait_until):
    hall = open_hall({"turns.drain_s": 20})
    gate = Gate()

    async def scene():
        task = asyncio.create_task(hall.app.work(hall.served(), agent=ScriptedAgent(pause(gate), echo())))
        await hall.accept("first", "second")
        await wait_for(gate.reached)
        task.cancel()
        await asyncio.sleep(0)
        gate.open()
        await asyncio.wait({task})
        assert task.cancelled()

    asyncio.run(scene())

    assert hall.sender.texts() == ["first"]
    assert [hall.item(number).status for number in (1, 2)] == ["done", "pending"]
    assert hall.work(ScriptedAgent(echo())) == ["first", "second"]


def test_a_turn_that_does_not_end_in_time_waits_for_the_next_server_which_answers_once(open_hall, wait_for, leaves):
    hall = open_hall({"turns.drain_s": 0})
    gate = Gate()
    hall.say("hello")

    serve_until_it_leaves(hall, ScriptedAgent(call("look", "c1", effect="write"), pause(gate)), gate, wait_for, leaves)

    assert (hall.item(1).status, hall.sender.texts()) == ("pending", [])
    assert hall.app.store.lease(hall.lineage()).holder is None
    assert hall.app.store.servers() == ()
    assert hall.work(ScriptedAgent(echo())) == ["hello"]
    assert hall.turns() == [("interrupted", 1), ("done", 2)]
    rows = hall.app.store.messages(hall.lineage(), operator())
    assert [row.kind for row in rows if row.role == USER] == ["", KIND_RECOVERY]
    began, ended = hall.pairs()
    assert [outcome for _, outcome in ended] == ["interrupted", "done"]
    assert began == [turn for turn, _ in ended]


def test_a_process_that_leaves_while_a_tool_runs_that_writes_tells_the_sender(open_hall, wait_for, leaves):
    hall = open_hall({"turns.drain_s": 0})
    gate = Gate()
    hall.say("pay")
    calls = ask_for(ToolCall(id="c1", name="pay", effect="write"))

    serve_until_it_leaves(hall, ScriptedAgent(calls, pause(gate)), gate, wait_for, leaves)

    (notice,) = hall.work(ScriptedAgent(echo()))
    assert "while pay ran" in notice
    assert hall.item(1).status == "done"


def test_being_asked_to_leave_again_and_again_is_bounded_like_dying(open_hall, wait_for, leaves):
    hall = open_hall({"turns.drain_s": 0, "gateway.recovery_attempts": 1})
    hall.say("hello")

    for _ in range(2):
        gate = Gate()
        serve_until_it_leaves(hall, ScriptedAgent(pause(gate)), gate, wait_for, leaves)

    (notice,) = hall.work(ScriptedAgent(echo()))
    assert "interrupted 2 times" in notice


def test_messages_that_wait_while_nobody_serves_are_answered_by_the_next_process(hall):
    hall.say("one")
    assert hall.work(ScriptedAgent(echo())) == ["one"]
    hall.say("two")

    assert hall.sender.texts() == ["one"]
    assert hall.work(ScriptedAgent(echo())) == ["one", "two"]


class Full:
    """A store whose disk is full when a turn is to be finished, a number of times."""

    def __init__(self, store, times):
        self._store, self.times = store, times

    def __getattr__(self, name):
        return getattr(self._store, name)

    def perform(self, operation):
        if isinstance(operation, Finish) and self.times:
            self.times -= 1
            failed = asyncio.get_running_loop().create_future()
            failed.set_exception(StoreFull("no space left"))
            return failed
        return self._store.perform(operation)


def test_an_answer_that_a_full_disk_kept_from_being_stored_is_stored_and_sent_when_there_is_room(
    hall, monkeypatch, wait_until
):
    monkeypatch.setattr(worker_module, "_AFTER_FAULT_S", 0.0)
    hall.say("hello")
    hall.app._store = Full(hall.app.store, 3)

    async def scene():
        async with hall.serving(ScriptedAgent(echo())):
            await wait_until(hall.sender.texts)

    asyncio.run(scene())

    assert hall.sender.texts() == ["hello"]
    assert hall.app.store.lease(hall.lineage()).holder is None
    began, ended = hall.pairs()
    assert (len(began), [outcome for _, outcome in ended]) == (1, ["done"])


def test_a_tool_is_not_called_again_by_the_retry_of_a_turn_that_had_its_result(open_hall, wait_for, leaves):
    tool = FakeTool("pay", effect="write")

    class Tools:
        @hookimpl
        def hermes_tools(self):
            return [tool]

    hall = open_hall({"turns.drain_s": 0}, plugins=[Tools()])
    gate = Gate()
    hall.say("pay")

    serve_until_it_leaves(hall, ScriptedAgent(call("pay", "c1"), pause(gate)), gate, wait_for, leaves)

    assert hall.work(ScriptedAgent(echo())) == ["pay"]
    assert len(tool.calls) == 1
