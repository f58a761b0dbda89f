"""A turn that dies, or is sent away, while a person is asked: the call was never made, so nothing stands in the way."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys

import pytest

from hermes_hookspecs.approvals import APPROVED, DENIED, EXPIRED
from hermes_hookspecs.errors import ApprovalNotFound
from hermes_hookspecs.messages import ToolCall
from hermes_hookspecs.operations import AnswerApproval, AskApproval
from hermes_hookspecs.ports.agent import AssistantStep, ToolResult
from hermes_hookspecs.testing.agents import FakeTool, ScriptedAgent, echo
from hermes_hookspecs.turns import Fence

PATIENCE_S = 60
CALL = ToolCall(id="c1", name="pay", effect="write")
PROGRAM = """
import asyncio, os, signal, sys
from hermes_core import open_app
from hermes_hookspecs.messages import ToolCall
from hermes_hookspecs.ports.agent import AssistantStep, ToolResult
from hermes_hookspecs.ports.platform import ServedEntrance
from hermes_hookspecs.source import Entrance


class Deadly:
    async def send(self, part):
        print(part.text.splitlines()[0], flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


async def agent(turn):
    call = ToolCall(id="c1", name="pay", effect="write")
    yield AssistantStep(tool_calls=(call,))
    await turn.approvals.ask(call, None, turn)
    print("went on", flush=True)


with open_app(sys.argv[1], plugins=False, environ={}, overrides={"inbox.batch_window_s": 0.0}) as app:
    asyncio.run(app.work([ServedEntrance(entrance=Entrance("feishu"), sender=Deadly())], agent=agent))
"""


class Asker:
    """Asks before it pays, and writes down when it has paid."""

    name = "asker"
    model = None

    def __init__(self):
        self.paid = 0

    async def run(self, turn):
        yield AssistantStep(tool_calls=(CALL,))
        refusal = await turn.approvals.ask(CALL, FakeTool("pay", effect="write"), turn)
        self.paid += refusal is None
        yield ToolResult(call_id="c1", name="pay", content=refusal or "paid")
        yield AssistantStep(content="paid" if refusal is None else "not paid")


def _ask(hall, lineage_id):
    """Leave a request behind, as the turn did whose process is gone."""
    store, now = hall.app.store, hall.clock.now()
    fence = Fence(lineage_id, store.active_turn(lineage_id).id, store.lease(lineage_id).token)
    operation = AskApproval(
        fence=fence,
        approval_id="AAAA",
        call=CALL,
        source=hall.source(),
        session_key=None,
        now=now,
        expires_at=now + 600_000,
    )
    return store.apply(operation)


@pytest.mark.parametrize("status", ["open", DENIED, EXPIRED])
def test_a_message_whose_call_nobody_had_allowed_is_tried_again(hall, status):
    lineage_id = hall.die("pay the bill", calls=[("c1", "pay", "write")])
    asked = _ask(hall, lineage_id)
    if status != "open":
        hall.app.store.apply(AnswerApproval(approval_id=asked.id, status=status, now=hall.clock.now()))

    texts = hall.work(ScriptedAgent(echo()))

    assert texts == ["pay the bill"]
    assert hall.turns(lineage_id) == [("interrupted", 1), ("done", 2)]


def test_a_message_whose_call_was_allowed_is_parked(hall):
    lineage_id = hall.die("pay the bill", calls=[("c1", "pay", "write")])
    asked = _ask(hall, lineage_id)
    hall.app.store.apply(AnswerApproval(approval_id=asked.id, status=APPROVED, now=hall.clock.now()))

    (notice,) = hall.work(ScriptedAgent(echo()))

    assert "interrupted while pay ran" in notice


def test_a_call_that_was_not_asked_for_still_parks_a_message(hall):
    lineage_id = hall.die("pay the bill", calls=[("c1", "pay", "write"), ("c2", "ship", "write")])
    _ask(hall, lineage_id)

    (notice,) = hall.work(ScriptedAgent(echo()))

    assert "interrupted while ship ran" in notice


def test_a_request_whose_turn_died_cannot_be_allowed_any_more(hall):
    lineage_id = hall.die("pay the bill", calls=[("c1", "pay", "write")])
    asked = _ask(hall, lineage_id)
    hall.work(ScriptedAgent(echo()))

    with pytest.raises(ApprovalNotFound):
        hall.app.oversight.answer(asked.id, hall.source(), approve=True)

    assert hall.app.oversight.approvals(hall.source()) == ()


@pytest.mark.parametrize("backend", ["sqlite"])
def test_a_process_that_is_killed_while_it_asks_costs_nothing_but_a_second_question(hall, tmp_path, wait_until):
    hall.say("pay the bill")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "home")],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "May pay be called?\n"), done.stderr
    agent = Asker()
    seen = []

    async def scene():
        async with hall.serving(agent):
            await wait_until(lambda: _open_requests(hall, attempt=2))
            seen.extend(_open_requests(hall, attempt=2))
            hall.app.oversight.answer(seen[0].id, hall.source(), approve=True)
            await wait_until(lambda: "paid" in hall.sender.texts())

    asyncio.run(scene())

    assert (agent.paid, len(seen)) == (1, 1)
    assert hall.turns() == [("interrupted", 1), ("done", 2)]


def test_a_process_that_is_asked_to_leave_while_it_asks_lets_its_message_wait(open_hall, wait_until, leaves):
    hall = open_hall({"turns.drain_s": 0})
    hall.say("pay the bill")
    agent = Asker()

    async def scene():
        task = asyncio.create_task(hall.app.work(hall.served(), agent=agent))
        await wait_until(lambda: _open_requests(hall))
        await leaves(task)

    asyncio.run(scene())

    assert (hall.item(1).status, agent.paid) == ("pending", 0)
    assert hall.work(ScriptedAgent(echo()))[-1] == "pay the bill"
    assert not any("interrupted while" in text for text in hall.sender.texts())


def _open_requests(hall, attempt=1):
    """Return what is asked for in this attempt; the request of a dead process may not be closed yet."""
    found = [(one, hall.app.store.active_turn(one.lineage_id)) for one in hall.app.oversight.approvals(hall.source())]
    return [one for one, turn in found if turn is not None and (turn.id, turn.attempt) == (one.turn_id, attempt)]
