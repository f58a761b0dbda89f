"""Fault points: nothing where nobody asked, and exactly what was asked for where somebody did."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import hermes_core
from hermes_core.faultpoints import ACTIONS, POINTS, VARIABLE, reach

PRODUCT = Path(hermes_core.__file__).parent
BY_ADAPTERS = {"ack"}
"""Points that are reached outside the product: by whoever acknowledges to a platform."""


def _run(asked, program):
    """Run a program that knows ``reach``; gives the finished process."""
    return subprocess.run(
        [sys.executable, "-c", f"from hermes_core.faultpoints import reach\n{program}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        env=os.environ | {VARIABLE: asked, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


def test_nothing_happens_where_nobody_asked(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)

    for name in POINTS:
        reach(name)


def test_every_point_is_somewhere_in_the_product():
    text = "\n".join(file.read_text(encoding="utf-8") for file in PRODUCT.rglob("*.py") if file.stem != "faultpoints")
    reached = {name for call in re.findall(r"reach\(([^)]*)\)", text) for name in re.findall(r'"([\w.]+)"', call)}

    assert reached == set(POINTS) - BY_ADAPTERS


def test_the_counted_visit_is_the_last_thing_that_a_process_does():
    done = _run("ack:kill:3", "for n in range(9): print(n, flush=True); reach('ack')")

    assert done.returncode == -signal.SIGKILL
    assert done.stdout.split() == ["0", "1", "2"]


def test_the_count_is_one_when_nothing_is_said_and_other_points_do_not_count():
    done = _run("ack:kill", "reach('accept.before'); print('here', flush=True); reach('ack'); print('there')")

    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "here\n")


@pytest.mark.parametrize(
    ("action", "error"),
    [("raise-full", "StoreFull"), ("raise-unknown", "StoreOutcomeUnknown"), ("interrupt", "KeyboardInterrupt")],
)
def test_an_error_is_raised_once(action, error):
    program = """
for n in range(3):
    try:
        reach('begin.before')
    except BaseException as error:
        print(n, type(error).__name__)
"""

    assert _run(f" ack:kill , begin.before:{action}:2 ", program).stdout.split() == ["1", error]


@pytest.mark.parametrize(("action", "goes_on"), [("stop", True), ("hang", False)])
def test_a_process_can_be_made_to_stand_still(action, goes_on):
    program = "from hermes_core.faultpoints import reach; print('before', flush=True); reach('ack'); print('behind')"
    environment = os.environ | {VARIABLE: f"ack:{action}", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout.readline() == "before\n"

    if goes_on:
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        process.send_signal(signal.SIGCONT)
        rest, _ = process.communicate(timeout=30)
        assert (process.returncode, rest) == (0, "behind\n")
    else:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
        process.kill()
        assert process.communicate()[0] == ""


@pytest.mark.parametrize("asked", ["ack", "nowhere:kill", "ack:jump", "ack:kill:0", "ack:kill:x", "ack:kill:2:3"])
def test_what_cannot_be_meant_is_refused_at_the_first_point(asked):
    done = _run(asked, "reach('accept.before')")

    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1
    assert "ConfigError" in last
    assert VARIABLE in last
    assert asked in last
    assert all(name in last for name in (*POINTS, *ACTIONS))
