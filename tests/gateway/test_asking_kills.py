"""``kill -9`` while a person is asked, and while a job runs: real processes, real signals, one store."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys

import pytest

from hermes_hookspecs.errors import ApprovalNotFound
from hermes_hookspecs.jobs import LOST
from hermes_hookspecs.messages import NOT_APPROVED_RESULT, NOT_BEGUN_RESULT, ToolCall
from hermes_hookspecs.ports.agent import AssistantStep, ToolResult
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import SessionSource
from hermes_hookspecs.testing.agents import FakeTool, ScriptedAgent, recite
from hermes_hookspecs.testing.platform import RecordingSender

PATIENCE_S = 60
CALL = ToolCall(id="c1", name="remove", arguments='{"path": "/x"}', effect="write")
TERMINAL = SessionSource(platform="cli", chat_id="pts-1", chat_type="dm", user_id="ming")
PRELUDE = """
import asyncio, os, signal, sys
from hermes_core import open_app
from hermes_hookspecs.ports.agent import AssistantStep
from hermes_hookspecs.ports.platform import ServedEntrance
from hermes_hookspecs.source import Entrance, SessionSource
from hermes_hookspecs.testing.platform import RecordingSender
from hermes_hookspecs.toolbox import AskedCall, Toolbox
from hermes_hookspecs.tools import tool

HOME, RECORD, REMOVED = sys.argv[1:4]
TERMINAL = SessionSource(platform="cli", chat_id="pts-1", chat_type="dm", user_id="ming")


def say(*words):
    print(*words, flush=True)


@tool(effect="write", dangerous=True)
def remove(path: str) -> str:
    "Remove a file."
    with open(REMOVED, "a") as file:
        file.write(path)
    return "removed"


class Remover:
    name, model = "remover", None
    times = 1

    async def run(self, turn):
        box = Toolbox(turn, {"remove": remove})
        calls = box.calls([AskedCall(name="remove", arguments='{"path": "/x"}')] * self.times)
        yield AssistantStep(tool_calls=calls)
        async for result in box.run(calls):
            yield result
            yield AssistantStep(content=result.content)


def open_it():
    settings = {"storage.durability": "normal", "inbox.batch_window_s": 0.0}
    return open_app(HOME, plugins=False, environ={}, overrides=settings)


def work(agent, until_idle=True):
    with open_it() as app:
        served = [ServedEntrance(entrance=Entrance("feishu"), sender=RecordingSender(RECORD))]
        asyncio.run(app.work(served, agent=agent, until_idle=until_idle))


"""
JOB = """
class Starter:
    name, model = "starter", None

    async def run(self, turn):
        job = await turn.jobs.start(asyncio.Event().wait, kind="count", label="counts the whales")
        say(job.id)
        yield AssistantStep(content="begun")


"""


@pytest.fixture
def record(tmp_path):
    return tmp_path / "record"


@pytest.fixture
def removed(tmp_path):
    return tmp_path / "removed"


@pytest.fixture
def backend():
    return "sqlite"


@pytest.fixture
def house(open_hall, record):
    """A hall whose platform is shared with other processes."""
    hall = open_hall()
    hall.sender = RecordingSender(record)
    return hall


@pytest.fixture
def start(tmp_path, record, removed):
    """Return a function that starts a program on the same home; what still runs at the end is killed."""
    running = []

    def start(code):
        process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + code, str(tmp_path / "home"), str(record), str(removed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
        )
        running.append(process)
        return process

    yield start
    for process in running:
        kill(process)


def kill(process):
    process.kill()
    process.communicate()


def asked(house):
    """Return the open request, once there is one."""
    from threading import Event

    for _ in range(PATIENCE_S * 20):
        found = house.app.store.approvals(is_open=True)
        if found:
            return found[0]
        Event().wait(0.05)
    raise AssertionError("nobody is asked")


def contents(app, lineage_id, role):
    return [row.content for row in app.store.messages(lineage_id, operator()) if row.role == role]


# --- requests


def test_a_request_of_a_killed_process_is_closed_its_call_did_not_run_and_the_message_is_tried_again(
    house, start, removed
):
    house.say("remove it")
    process = start("work(Remover())\n")
    request = asked(house)
    kill(process)

    with pytest.raises(ApprovalNotFound):  # the lease still stands; nobody waits for the answer
        house.app.oversight.answer(request.id, house.source(), approve=True)
    agent = ScriptedAgent(recite())
    texts = house.work(agent)

    assert [text for text in texts if "outcome" in text or "not known" in text] == []
    assert house.turns() == [("interrupted", 1), ("done", 2)]
    assert contents(house.app, house.lineage(), "tool") == [NOT_APPROVED_RESULT]
    assert NOT_APPROVED_RESULT in agent.turns[0].messages[2].content
    assert house.app.store.approval(request.id).status == "withdrawn"
    assert house.app.oversight.approvals(house.source()) == ()
    (row,) = house.app.oversight.audit(operator())
    assert (row.entry.outcome, row.entry.approval_id) == ("refused", request.id)
    assert not removed.exists()


def test_calls_behind_the_one_that_a_person_is_asked_for_did_not_begin_and_the_message_is_tried_again(
    house, start, removed
):
    house.say("remove it")
    process = start("Remover.times = 3\nwork(Remover())\n")
    asked(house)
    kill(process)

    house.work(ScriptedAgent(recite()))

    assert house.turns() == [("interrupted", 1), ("done", 2)]
    told = [NOT_APPROVED_RESULT, NOT_BEGUN_RESULT, NOT_BEGUN_RESULT]
    assert contents(house.app, house.lineage(), "tool") == told
    audited = [(row.entry.outcome, row.entry.result) for row in house.app.oversight.audit(operator())]
    assert audited == [("refused", text) for text in reversed(told)]
    assert not removed.exists()


def test_the_second_try_asks_anew_and_its_answer_counts_in_another_process(house, start, removed):
    house.say("remove it")
    process = start("work(Remover())\n")
    first = asked(house)
    kill(process)

    second_process = start("work(Remover())\n")
    second = asked_again(house, first)
    house.app.oversight.answer(second.id, house.source(), approve=True)
    out, _ = second_process.communicate(timeout=PATIENCE_S)

    assert second_process.returncode == 0, out
    assert house.sender.texts()[-1] == "removed"
    assert removed.read_text() == "/x"
    assert [one.status for one in house.app.store.approvals()] == ["approved", "withdrawn"]


def asked_again(house, before):
    from threading import Event

    for _ in range(PATIENCE_S * 20):
        found = [one for one in house.app.store.approvals(is_open=True) if one.id != before.id]
        if found:
            return found[0]
        Event().wait(0.05)
    raise AssertionError("nobody is asked anew")


class Removing:
    """Asks before it calls its tool, in this process."""

    name, model = "removing", None

    async def run(self, turn):
        yield AssistantStep(tool_calls=(CALL,))
        refusal = await turn.approvals.ask(CALL, FakeTool("remove", effect="write"), turn)
        yield ToolResult(call_id=CALL.id, name=CALL.name, content=refusal or "removed")


def test_a_process_that_is_asked_to_leave_while_a_person_is_asked_leaves_the_message_for_the_next_one(
    open_hall, wait_until
):
    house = open_hall({"turns.drain_s": 0.0})
    house.say("remove it")

    async def scene():
        async with house.serving(Removing()):
            await wait_until(lambda: house.app.store.approvals(is_open=True))

    asyncio.run(scene())

    assert house.app.store.approvals(is_open=True) == ()
    assert house.turns() == [("interrupted", 1)]
    assert contents(house.app, house.lineage(), "tool") == [NOT_APPROVED_RESULT]
    house.work(ScriptedAgent(recite()))
    assert house.turns() == [("interrupted", 1), ("done", 2)]


def test_an_approved_call_that_was_cut_off_may_have_run_and_its_sender_is_told(house, start):
    code = "remove.call = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\nwork(Remover())\n"
    house.say("remove it")
    process = start(code)
    request = asked(house)

    house.app.oversight.answer(request.id, house.source(), approve=True)
    process.communicate(timeout=PATIENCE_S)
    texts = house.work(ScriptedAgent(recite()))

    assert process.returncode == -9
    assert "while remove ran, and whether that took effect is not known" in texts[-1]
    assert house.turns() == [("interrupted", 1)]
    assert [row.entry.outcome for row in house.app.oversight.audit(operator())] == ["broken off"]


def test_a_request_at_a_terminal_that_was_killed_is_closed_by_the_next_turn(house, start, removed):
    code = """
with open_it() as app:
    ask = app.ask_async("remove it", TERMINAL, agent=Remover(), on_approval=lambda one: say(one.id))
    asyncio.run(ask)
"""
    process = start(code)
    request_id = process.stdout.readline().strip()
    kill(process)

    entry = house.app.get_or_create_session(TERMINAL)
    house.app.ask("and?", TERMINAL, entry=entry, agent=ScriptedAgent(recite()))

    assert house.app.store.approval(request_id).status == "withdrawn"
    assert contents(house.app, entry.lineage_id, "tool") == [NOT_APPROVED_RESULT]
    assert not removed.exists()


# --- jobs


def test_a_job_of_a_killed_terminal_is_lost_and_its_next_turn_in_another_process_hears_so(house, start):
    code = (
        JOB + 'with open_it() as app:\n    app.ask("count", TERMINAL, agent=Starter())\n    say("ready")\n    input()\n'
    )
    process = start(code)
    job_id = process.stdout.readline().strip()
    assert process.stdout.readline() == "ready\n"
    kill(process)

    told = house.app.ask("and?", TERMINAL, agent=ScriptedAgent(recite())).text

    job = house.app.store.job(job_id)
    assert (job.status, job.told) == (LOST, True)
    assert f"[Background job {job_id} (counts the whales) ended: lost" in told
    house.app.ask("and?", TERMINAL, agent=ScriptedAgent(recite()))
    said = contents(house.app, job.lineage_id, "user")
    assert len([text for text in said if job_id in text]) == 1, "it is told once"


def test_a_job_of_a_killed_gateway_is_lost_and_its_session_answers_it_elsewhere(house, start):
    house.say("count")
    process = start(JOB + "work(Starter(), until_idle=False)\n")
    job_id = process.stdout.readline().strip()
    sent(house, "begun")
    kill(process)

    house.app.maintain()
    agent = ScriptedAgent(recite())
    house.work(agent)

    assert house.app.store.job(job_id).status == LOST
    (turn,) = agent.turns
    assert turn.text.startswith(f"[Background job {job_id} (counts the whales) ended: lost")
    assert house.app.maintain().recovered == 0


def sent(house, text):
    """Wait until the platform has a text."""
    from threading import Event

    for _ in range(PATIENCE_S * 20):
        if text in house.sender.texts():
            return
        Event().wait(0.05)
    raise AssertionError(f"{text!r} is not sent")


def test_a_job_of_a_living_process_is_nobody_elses_to_close(house, start):
    code = (
        JOB + 'with open_it() as app:\n    app.ask("count", TERMINAL, agent=Starter())\n    say("ready")\n    input()\n'
    )
    process = start(code)
    job_id = process.stdout.readline().strip()
    assert process.stdout.readline() == "ready\n"

    house.app.maintain()
    house.app.ask("and?", TERMINAL, agent=ScriptedAgent(recite()))

    assert house.app.store.job(job_id).status == "running"
    assert house.app.oversight.job_state(house.app.store.job(job_id)) == "running"
    kill(process)
    assert house.app.oversight.job_state(house.app.store.job(job_id)) == "process is gone"
