"""``kill -9`` in the middle of a turn, and two processes on one store: real processes, real signals."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from hermes_hookspecs.principal import operator
from hermes_hookspecs.testing.agents import ScriptedAgent, echo, recite
from hermes_hookspecs.testing.platform import RecordingSender

PATIENCE_S = 60
PRELUDE = """
import asyncio, os, signal, sys
from hermes_core import open_app
from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.messages import ToolCall
from hermes_hookspecs.ports.agent import AssistantStep, ToolResult
from hermes_hookspecs.ports.platform import ServedEntrance
from hermes_hookspecs.source import Entrance, SessionSource
from hermes_hookspecs.testing.platform import RecordingSender

HOME, RECORD = sys.argv[1:3]
SENDER = RecordingSender(RECORD)


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def work(agent, until_idle=True):
    settings = {"storage.durability": "normal", "inbox.batch_window_s": 0.0}
    with open_app(HOME, plugins=False, environ={}, overrides=settings) as app:
        served = [ServedEntrance(entrance=Entrance("feishu"), sender=SENDER)]
        asyncio.run(app.work(served, agent=agent, until_idle=until_idle))


"""


def agent_with_a_tool(effect, *, dies):
    return f"""
async def agent(turn):
    yield AssistantStep(tool_calls=(ToolCall(id=turn.turn.id, name="restart", effect="{effect}"),))
    {"die()" if dies == "in the call" else ""}
    yield ToolResult(call_id=turn.turn.id, name="restart", content="restarted")
    {"die()" if dies == "behind the result" else ""}
    yield AssistantStep(content="done")


work(agent)
"""


@pytest.fixture
def backend():
    return "sqlite"


@pytest.fixture
def record(tmp_path):
    return tmp_path / "record"


@pytest.fixture
def house(open_hall, record):
    """A hall whose platform is shared with other processes."""
    hall = open_hall()
    hall.sender = RecordingSender(record)
    return hall


@pytest.fixture
def start(tmp_path, record):
    """Return a function that starts a program on the same home; what still runs at the end is killed."""
    running = []

    def start(code):
        process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + code, str(tmp_path / "home"), str(record)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.communicate()


def killed(process):
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == -9, err


def test_a_call_that_writes_and_kills_its_process_is_never_repeated_and_the_session_goes_on(house, start):
    house.say("restart yourself", "are you there?")

    killed(start(agent_with_a_tool("write", dies="in the call")))

    agent = ScriptedAgent(echo())
    notice, answer = house.work(agent)
    assert ("while restart ran" in notice, answer) == (True, "are you there?")
    assert [turn.text for turn in agent.turns] == ["are you there?"]
    assert house.turns() == [("interrupted", 1), ("done", 1)]


def test_a_call_that_may_be_repeated_and_kills_its_process_is_repeated_a_bounded_number_of_times(house, start):
    house.say("restart yourself")
    code = agent_with_a_tool("idempotent", dies="in the call").replace(
        "work(agent)",
        """
for _ in range(4):
    child = os.fork()  # of a process that has opened nothing: four restarts for the price of one
    if child == 0:
        work(agent)
        os._exit(0)
    print(os.waitpid(child, 0)[1])
""",
    )

    out, err = start(code).communicate(timeout=PATIENCE_S)

    assert out.split() == ["9", "9", "9", "0"], err
    (notice,) = house.sender.texts()
    assert "interrupted 3 times" in notice
    assert house.turns() == [("interrupted", attempt) for attempt in (1, 2, 3)]
    rows = house.app.store.messages(house.lineage(), operator())
    assert [row.content for row in rows if row.role == "user" and not row.kind] == ["restart yourself"]


def test_a_crash_behind_a_result_goes_on_from_there(house, start):
    house.say("restart yourself")

    killed(start(agent_with_a_tool("write", dies="behind the result")))

    (window,) = house.work(ScriptedAgent(recite()))
    assert "tool: restarted" in window
    assert window.count("user: restart yourself") == 1


def test_two_processes_serve_one_entrance_and_nothing_overlaps_or_is_said_twice(house, start, tmp_path):
    counts = tmp_path / "counts"
    code = f"""
async def agent(turn):
    path = {str(counts)!r}
    with open(path, "a") as file:
        file.write(f"+ {{turn.turn.lineage_id}} {{turn.text}}\\n")
    await asyncio.sleep(0)
    with open(path, "a") as file:
        file.write(f"- {{turn.turn.lineage_id}} {{turn.text}}\\n")
    return turn.text


print("ready", flush=True)
work(agent, until_idle=False)
"""
    processes = [start(code), start(code)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"

    async def scene():
        for number in range(20):
            await house.accept(house.event(f"m{number}", f"oc_{number % 4}"))
        async with asyncio.timeout(PATIENCE_S):
            while len(house.sender.texts()) < 20:  # noqa: ASYNC110 - what is waited for happens in other processes
                await asyncio.sleep(0.01)

    asyncio.run(scene())

    assert sorted(house.sender.texts()) == sorted(f"m{number}" for number in range(20))
    for chat in range(4):
        lineage_id = house.lineage(f"oc_{chat}")
        own = [line.split() for line in counts.read_text().splitlines() if lineage_id in line]
        texts = [f"m{number}" for number in range(chat, 20, 4)]
        assert [(sign, text) for sign, _, text in own] == [(sign, text) for text in texts for sign in "+-"]
        assert house.said(lineage_id) == texts


def test_the_next_process_takes_over_at_once_from_one_that_is_killed(house, start):
    code = """
async def agent(turn):
    print("working", flush=True)
    await asyncio.Event().wait()
    yield


work(agent, until_idle=False)
"""
    house.say("hello")
    process = start(code)
    assert process.stdout.readline() == "working\n"

    async def scene():
        async with house.serving(ScriptedAgent(echo())):
            process.kill()
            async with asyncio.timeout(10):
                while not house.sender.texts():  # noqa: ASYNC110 - the record is a file
                    await asyncio.sleep(0.01)

    asyncio.run(scene())

    assert house.sender.texts() == ["hello"]
    assert house.turns() == [("interrupted", 1), ("done", 2)]
