"""Group C: the lease at every way out; what a dead process leaves; commands in the middle of a turn."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import attrs
import pytest

from hermes_core.inbox.door import entrance_of
from hermes_core.leases import holder_here
from hermes_hookspecs.errors import AgentFailed, LeaseBusy, LeaseLost
from hermes_hookspecs.ids import new_turn_id
from hermes_hookspecs.messages import ASSISTANT, USER
from hermes_hookspecs.operations import Begin, Begun
from hermes_hookspecs.principal import operator
from hermes_hookspecs.testing.agents import Gate, ScriptedAgent, echo, fail, pause, recite

ALL = operator()
PATIENCE_S = 60
AT_WORK = """
async def agent(turn):
    say("working")
    await asyncio.Event().wait()
    return "never"


import asyncio
with open_app(HOME, plugins=False, overrides={"storage.durability": "normal"}) as app:
    app.ask("m1", ALICE, agent=agent)
"""


async def reached(gate):
    assert await asyncio.to_thread(gate.reached.wait, PATIENCE_S)


async def until(condition):
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.002)


def outcomes(app, entry):
    return [turn.outcome for turn in app.store.turns(entry.lineage_id, ALL)]


# ------------------------------------------------------------------ C03, C04, C06


def test_c03_c04_c06_who_waited_in_vain_is_told_who_is_in_the_way_and_changes_nothing(open_quick, alice):
    app = open_quick()
    app.settings = attrs.evolve(app.settings, turns=attrs.evolve(app.settings.turns, lease_wait_s=0.3))
    entry = app.get_or_create_session(alice)
    gate, seen = Gate(), []

    def never(turn):
        seen.append(turn.text)
        return "ran unserialised"

    async def scene():
        holder = asyncio.create_task(app.ask_async("m1", alice, agent=ScriptedAgent(pause(gate), echo())))
        await reached(gate)
        before = app.store.lease(entry.lineage_id)
        waiter = asyncio.create_task(app.ask_async("m2", alice, agent=never))
        with pytest.raises(LeaseBusy, match=rf"process {before.holder.pid} .*send it again") as refused:
            await waiter
        assert refused.value.exit_code == 75
        assert app.store.lease(entry.lineage_id).token == before.token
        gate.open()
        await holder
        return (await app.ask_async("m3", alice, agent="echo")).text

    assert asyncio.run(scene()) == "echo 2: m3"
    assert (seen, app.store.inbox_item(2).status) == ([], "withdrawn")


# ------------------------------------------------------------------ C05


@pytest.mark.parametrize("way_out", ["stop", "cancel", "exception", "new"])
def test_c05_every_way_out_of_a_turn_frees_the_lease(app, alice, way_out):
    entry = app.get_or_create_session(alice)
    gate = Gate()
    script = [fail(RuntimeError("broken"))] if way_out == "exception" else [pause(gate), echo()]

    async def scene():
        asked = asyncio.create_task(app.ask_async("m1", alice, agent=ScriptedAgent(*script)))
        if way_out != "exception":
            await reached(gate)
            assert f"running in {app.store.lease(entry.lineage_id).holder.describe()}" == app.turn_state(
                entry.lineage_id
            )
        if way_out == "stop":
            assert (await app.command("/stop", alice, entry)).text == "Stopped."
        elif way_out == "new":
            await app.command("/new", alice, entry)
        elif way_out == "cancel":
            asked.cancel()
        with suppress(LeaseLost, AgentFailed, asyncio.CancelledError):
            await asked
        assert app.store.lease(entry.lineage_id).holder is None
        assert app.turn_state(entry.lineage_id) == ""
        return (await app.ask_async("next", alice, agent="echo")).text

    assert asyncio.run(scene()).endswith(": next")


# ------------------------------------------------------------------ C08, C17


def test_c08_a_lease_of_a_killed_process_is_taken_over_at_once(app, alice, start):
    other = start(AT_WORK)
    assert other.hear() == "working"
    entry = app.get_or_create_session(alice)

    other.kill()

    assert app.turn_state(entry.lineage_id).startswith("interrupted in")
    assert app.ask("m2", alice, agent="echo").waited_s < 5
    assert outcomes(app, entry) == ["interrupted", "done"]


def test_c08_a_process_that_was_given_a_dead_ones_number_holds_nothing(app, alice):
    entry = app.get_or_create_session(alice)
    me = holder_here(entrance_of(alice), entry.session_key)
    now = app.clock.now()
    begin = Begin(
        lineage_id=entry.lineage_id,
        turn_id=new_turn_id(now),
        holder=attrs.evolve(me, started=str(int(me.started) - 1)),
        now=now,
        ttl_ms=30_000,
        maintenance=True,
    )
    assert isinstance(app.store.apply(begin), Begun)

    assert app.maintain().recovered == 1
    assert app.store.lease(entry.lineage_id).holder is None


def test_c17_what_a_process_left_open_is_closed_at_the_next_start(open_home, alice, start):
    other = start(AT_WORK)
    assert other.hear() == "working"
    other.kill()
    app = open_home()
    entry = app.get_or_create_session(alice)

    assert app.maintain().recovered == 1

    assert outcomes(app, entry) == ["interrupted"]
    assert app.store.inbox_item(1).status == "done"
    assert [row.role for row in app.store.messages(entry.lineage_id, ALL)] == [USER, ASSISTANT]
    assert app.ask("m2", alice, agent="echo").text == "echo 2: m2"


# ------------------------------------------------------------------ C10, C11, C12

IN_A_TURN = """
import asyncio, os, signal
from hermes_hookspecs.messages import ToolCall
from hermes_hookspecs.ports.agent import AssistantStep, ToolResult
from hermes_hookspecs.ports.platform import ServedEntrance
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.testing.platform import RecordingSender

ROUNDS, UNANSWERED = int(sys.argv[2]), sys.argv[3]


async def agent(turn):
    for number in range(ROUNDS):
        yield AssistantStep(tool_calls=(ToolCall(id=f"c{number}", name="work", effect="write"),))
        say(f"worked {number}")
        yield ToolResult(call_id=f"c{number}", name="work", content=f"result {number}")
    if UNANSWERED:
        yield AssistantStep(tool_calls=(ToolCall(id="last", name="restart", effect=UNANSWERED),))
    os.kill(os.getpid(), signal.SIGKILL)


settings = {"inbox.batch_window_s": 0.0, "storage.durability": "normal"}
with open_app(HOME, plugins=False, overrides=settings) as app:
    served = [ServedEntrance(entrance=Entrance("feishu"), sender=RecordingSender())]
    asyncio.run(app.work(served, agent=agent, until_idle=True))
say("survived")
"""


def run_to_its_death(start, rounds, unanswered):
    """Return what a program said until it was killed, or ended."""
    out, _ = start(IN_A_TURN, str(rounds), unanswered).process.communicate(timeout=PATIENCE_S)
    return out.split("\n")[:-1]


def test_c10_what_was_interrupted_goes_first_and_never_beside_a_fresh_message(open_quick, chats, start):
    app = open_quick()
    chats.accept(app, "interrupted")
    run_to_its_death(start, 0, "")
    running, most, order = [], [], []

    async def agent(turn):
        running.append(turn.text)
        most.append(len(running))
        order.append(turn.text)
        await asyncio.sleep(0)
        running.remove(turn.text)
        return turn.text

    async def scene():
        async with asyncio.timeout(PATIENCE_S):
            work = asyncio.create_task(app.work(chats.served(), agent=agent))
            await app.accept([chats.event(app, "fresh", "fresh")])
            await until(lambda: len(chats.sender.texts()) == 2)
            work.cancel()
            await asyncio.wait({work})

    asyncio.run(scene())

    assert (order, max(most)) == (["interrupted", "fresh"], 1)
    assert chats.sender.texts() == ["interrupted", "fresh"]


def test_c11_a_step_that_ends_the_process_is_not_run_again_by_any_restart(open_quick, chats, start):
    app = open_quick()
    chats.accept(app, "restart yourself")

    runs = [run_to_its_death(start, 0, "write") for _ in range(3)]

    assert runs == [[], ["survived"], ["survived"]]
    (delivery,) = app.store.deliveries()
    assert "while restart ran" in delivery.text


def test_c12_finished_calls_survive_and_are_not_repeated(open_quick, chats, start):
    app = open_quick()
    chats.accept(app, "three rounds")

    assert run_to_its_death(start, 3, "read") == ["worked 0", "worked 1", "worked 2"]

    (window,) = chats.work(app, ScriptedAgent(recite()))
    assert [line for line in window.splitlines() if line.startswith("tool: ")][:3] == [
        f"tool: result {number}" for number in range(3)
    ]
    assert "outcome unknown" in window


# ------------------------------------------------------------------ C13, C16


def test_c13_a_reset_in_the_middle_of_a_turn_frees_its_place_and_both_later_messages_are_answered(open_quick, chats):
    app = open_quick()
    gate = Gate()
    agent = ScriptedAgent(pause(gate), echo()).then(echo())

    async def scene():
        async with asyncio.timeout(PATIENCE_S):
            work = asyncio.create_task(app.work(chats.served(), agent=agent))
            await app.accept([chats.event(app, "slow", "1")])
            await reached(gate)
            await app.accept([chats.event(app, "/new", "2")])
            await until(chats.sender.texts)
            gate.open()
            await app.accept([chats.event(app, text, text) for text in ("one", "two")])
            await until(lambda: len(chats.sender.texts()) == 3)
            work.cancel()
            await asyncio.wait({work})

    asyncio.run(scene())

    assert chats.sender.texts()[1:] == ["one", "two"]


def test_c16_two_calls_on_one_session_take_turns_whoever_makes_them(app, alice, bob):
    entry = app.get_or_create_session(alice)
    running, most = [], []

    async def agent(turn):
        running.append(turn.text)
        most.append(len(running))
        await asyncio.sleep(0.01)
        running.remove(turn.text)
        return turn.text

    with ThreadPoolExecutor() as threads:
        calls = [threads.submit(app.ask, f"m{number}", alice, entry=entry, agent=agent) for number in range(4)]
        assert sorted(call.result(PATIENCE_S).text for call in calls) == ["m0", "m1", "m2", "m3"]

    assert max(most) == 1
