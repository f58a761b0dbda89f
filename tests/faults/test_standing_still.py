"""Processes that stand still and go on later, of this machine and of another one with the same name."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import apsw
import pytest
from fault_harness.facts import gather
from fault_harness.ledgers import Ledgers
from fault_harness.rules import check

from hermes_core.faultpoints import VARIABLE

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks the kernel for stopped children")

TTL_S = 1.0
PROGRAM = """
import asyncio, sys
from fault_harness.agent import ScriptedAgent
from fault_harness.ledgers import Ledgers
from fault_harness.mutants import mutate
from fault_harness.script import source_of
from fault_harness.sending import PlatformSender
from fault_harness.worker import ABILITIES, Orders, opened, work_to_the_end
from hermes_hookspecs.errors import HermesError
from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.ports.platform import ServedEntrance
from hermes_hookspecs.source import Entrance

folder, name, text, ttl_s, mutant = sys.argv[1:]
mutate(mutant)
ledgers = Ledgers(folder)
served = [ServedEntrance(entrance=Entrance("chatA"), sender=PlatformSender(ledgers.sends.path), abilities=ABILITIES)]

async def main(app):
    event = MessageEvent(source=source_of("a1"), text=text, identities=(f"a1/{name}",), received_at=app.clock.now())
    await app.accept([event])
    ledgers.acks.write(name=f"a1/{name}")
    print("accepted", flush=True)
    await work_to_the_end(app, served, ScriptedAgent(ledgers))

orders = Orders(home=f"{folder}/home", folder=folder, seed=1, slot=0, durability="normal", ttl_s=float(ttl_s))
with opened(orders) as app:
    asyncio.run(main(app))
"""
ASKER = """
import sys
from hermes_core import SessionSource, open_app

with open_app(sys.argv[1], plugins=False, environ={}, overrides={"storage.busy_timeout_s": 0.5}) as app:
    app.ask("hello", SessionSource(platform="cli", chat_id="t", user_id="me"), agent="echo")
"""
READS = "#0.1 26"
"""A text for which the agent calls tools that only read, in more than one step."""


@pytest.fixture
def start(tmp_path):
    """Start the program with a message; at the end whatever still runs is killed."""
    running = []

    def start_one(name, text, *, fault="", mutant="", before=()):
        process = subprocess.Popen(
            [*before, sys.executable, "-c", PROGRAM, str(tmp_path), name, text, str(TTL_S), mutant],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {VARIABLE: fault, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        running.append(process)
        return process

    yield start_one
    for process in running:
        process.kill()
        process.communicate()


@pytest.fixture
def ledgers(tmp_path):
    return Ledgers(str(tmp_path))


def _wait_until_it_stands_still(process):
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)


def _ended(process):
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out


def _ask(tmp_path, sql):
    connection = apsw.Connection(str(tmp_path / "home" / "state.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def test_the_text_of_these_tests_has_steps_that_may_be_repeated():
    from fault_harness.script import steps_of

    steps = steps_of(READS)
    assert len(steps) > 1
    assert {effect for step in steps for effect in step.effects} <= {"read", "idempotent"}


def _one_stands_still_while_another_takes_over(start, ledgers, point, mutant=""):
    """Let the first of two processes go on only when the second has ended."""
    frozen = start("0.1", READS, fault=f"{point}:stop", mutant=mutant)
    _wait_until_it_stands_still(frozen)
    ledgers.deaths.write(pid=frozen.pid, how="frozen")
    _ended(start("0.2", "#0.2"))
    frozen.send_signal(signal.SIGCONT)
    return frozen


@pytest.mark.parametrize("point", ["begin.stored", "step.stored", "finish.before"])
def test_who_stood_still_for_longer_than_a_lease_writes_nothing_more(start, ledgers, tmp_path, point):
    frozen = _one_stands_still_while_another_takes_over(start, ledgers, point)
    _ended(frozen)

    facts = gather(tmp_path / "home" / "state.db", ledgers)
    assert check(facts) == []
    assert [turn.outcome for turn in facts.turns] == ["interrupted", "done", "done"]


def test_without_the_fence_who_stood_still_writes_behind_the_turns_of_others(start, ledgers, tmp_path):
    frozen = _one_stands_still_while_another_takes_over(start, ledgers, "step.before", "no-fence")
    frozen.communicate(timeout=60)

    broken = {breach.rule for breach in check(gather(tmp_path / "home" / "state.db", ledgers))}
    assert "rows of turns are not mixed" in broken


def test_who_stands_still_inside_a_transaction_delays_others_within_their_bound_and_loses_nothing(
    start, ledgers, tmp_path
):
    _ended(start("0.1", "#0.1"))
    frozen = start("0.2", "#0.2", fault="group.begun:stop")
    _wait_until_it_stands_still(frozen)

    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", ASKER, str(tmp_path / "home")],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    took_s = time.monotonic() - began
    frozen.send_signal(signal.SIGCONT)
    _ended(frozen)

    assert "StoreBusy" in done.stderr.splitlines()[-1], done.stderr
    assert f"process {frozen.pid}" in done.stderr.splitlines()[-1]
    assert took_s < 20
    facts = gather(tmp_path / "home" / "state.db", ledgers)
    assert check(facts) == []
    assert [row.text for row in facts.inbox] == ["#0.1", "#0.2"]


def test_the_holder_in_another_container_is_left_its_time_although_its_process_cannot_be_seen(start, ledgers, tmp_path):
    probe = subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("making a pid namespace needs root")
    elsewhere = start(
        "0.1", READS, fault="step.stored:hang", before=("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    )
    assert elsewhere.stdout.readline() == "accepted\n"
    deadline = time.monotonic() + 20
    while not _ask(tmp_path, "SELECT 1 FROM messages WHERE role = 'assistant'"):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    ((holder,),) = _ask(tmp_path, "SELECT lease_holder FROM lineages WHERE lease_holder IS NOT NULL")
    for sending in (json.loads(holder)["pid"], elsewhere.pid):
        ledgers.deaths.write(pid=sending, how="elsewhere")
    elsewhere.kill()

    killed = time.monotonic()
    _ended(start("0.2", "#0.2"))
    took_s = time.monotonic() - killed

    assert json.loads(holder)["host"] == os.uname().nodename
    assert took_s > TTL_S
    facts = gather(tmp_path / "home" / "state.db", ledgers)
    assert check(facts) == []
    assert [turn.outcome for turn in facts.turns] == ["interrupted", "done", "done"]
