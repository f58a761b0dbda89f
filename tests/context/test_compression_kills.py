"""A process that is killed while it compresses: the parent or the child is there, never neither, never both."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import pytest

from hermes_core import open_app
from hermes_hookspecs.messages import KIND_SUMMARY
from hermes_hookspecs.ports.agent import AssistantStep
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import SessionSource

ALL = operator()
SOURCE = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1")
LONG = "and so on with many words about the weather in the mountains " * 8
MOST_COMMITS = 8

BY_HAND = """
import asyncio
asyncio.run(app.compress_session(entry.lineage_id, SOURCE))
"""
IN_A_TURN = """
app.ask("question 9", SOURCE, entry=entry, agent=lambda turn: "fine")
"""
TOO_LONG = """
from hermes_hookspecs.errors import ContextOverflow
def narrow(turn):
    if sum(len(row.content) for row in turn.messages) > 9000:
        raise ContextOverflow("too long", limit_tokens=2250)
    return "fine"
app.ask("question 9 " + "x" * 40_000, SOURCE, entry=entry, agent=narrow)
"""
BACK = """
import asyncio
asyncio.run(app.uncompress_session(entry.lineage_id, SOURCE))
"""
PROGRAM = """
import sys
from hermes_core import open_app
from hermes_hookspecs.source import SessionSource
SOURCE = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1")
settings = {{"compression.hygiene_hard_message_limit": int(sys.argv[2])}}
with open_app(sys.argv[1], plugins=False, environ={{}}, overrides=settings) as app:
    entry = app.get_or_create_session(SOURCE, touch_activity=False)
{body}
"""


class Answers:
    name = "answers"
    model = None

    async def run(self, turn):
        yield AssistantStep(content=f"fine. {LONG}")


def _open(home, **settings):
    return open_app(home, plugins=False, environ={}, overrides={"compression.enabled": False, **settings})


def _prepare(home, *, compressed=False):
    import asyncio

    with _open(home) as app:
        for number in range(9):
            entry = app.ask(f"question {number}. {LONG}", SOURCE, agent=Answers()).entry
        if compressed:
            asyncio.run(app.compress_session(entry.lineage_id, SOURCE))
    return entry.lineage_id


def _run(home, body, point, count, limit, action="kill"):
    """Run a program that has a fault at the count-th visit of a point; return whether it ended of it."""
    program = PROGRAM.format(body="\n".join(f"    {line}" for line in body.strip().splitlines()))
    paths = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", program, str(home), str(limit)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=os.environ | {"HERMES_FAULT_POINTS": f"{point}:{action}:{count}", "PYTHONPATH": paths},
    )
    assert done.returncode in ({0, -signal.SIGKILL} if action == "kill" else {1}), done.stderr
    return done.returncode != 0


def _look(home, lineage_id, before):
    """Check that one tip goes on and that nothing is missing; return how many sessions there are."""
    with _open(home) as app:
        app.maintain()
        seen = []

        def reading(turn):
            seen.append(turn)
            return "fine"

        app.ask("still there?", SOURCE, agent=reading)
        segments = app.store.segments(lineage_id, ALL)
        rows = app.store.messages(lineage_id, ALL)
        lineage = app.store.lineage(lineage_id, ALL)
        assert [one.id for one in segments if one.ended_at is None] == [lineage.tip]
        assert [one.parent_session_id for one in segments[1:]] == [one.id for one in segments[:-1]]
        assert [row.content for row in rows if row.content.startswith("question")][:9] == [
            f"question {n}. {LONG}" for n in range(9)
        ]
        assert lineage.message_count == len(rows) == sum(one.message_count for one in segments)
        assert lineage.segments == len(segments)
        summaries = [row for row in rows if row.kind == KIND_SUMMARY]
        assert len(summaries) == sum(1 for one in segments[1:] if one.kept_from and one.id in _with_summary(summaries))
        assert seen[0].session.id == lineage.tip
        sent = [row for row in seen[0].messages if row.kind == KIND_SUMMARY]
        assert len(sent) <= 1
        assert len(seen[0].messages) < 24
        return len(segments) - before


def _with_summary(summaries):
    return {row.session_id for row in summaries}


@pytest.mark.parametrize(
    ("body", "limit", "compressed"),
    [
        pytest.param(BY_HAND, 5000, False, id="by hand"),
        pytest.param(IN_A_TURN, 12, False, id="in a turn"),
        pytest.param(TOO_LONG, 5000, False, id="too long to be sent"),
        pytest.param(BACK, 5000, True, id="taken back"),
    ],
)
@pytest.mark.parametrize("point", ["compress.before", "compress.stored"])
def test_a_kill_right_before_leaves_the_parent_and_one_right_behind_the_child(tmp_path, point, body, limit, compressed):
    home = tmp_path / "home"
    lineage_id = _prepare(home, compressed=compressed)

    assert _run(home, body, point, 1, limit)

    assert _look(home, lineage_id, 2 if compressed else 1) == (point == "compress.stored")


@pytest.mark.parametrize("fault", ["raise-full", "raise-unknown"])
def test_a_store_that_refuses_leaves_the_parent_and_the_turn_goes_on_when_it_can(tmp_path, fault):
    home = tmp_path / "home"
    lineage_id = _prepare(home)

    _run(home, IN_A_TURN, "compress.before", 1, 12, action=fault)

    assert _look(home, lineage_id, 1) == 0


@pytest.mark.parametrize(
    ("body", "limit", "compressed", "point"),
    [
        pytest.param(BY_HAND, 5000, False, "group.begun", id="by hand, before its commits"),
        pytest.param(IN_A_TURN, 12, False, "group.begun", id="in a turn, before its commits"),
        pytest.param(IN_A_TURN, 12, False, "group.committed", id="in a turn, behind its commits"),
        pytest.param(TOO_LONG, 5000, False, "group.begun", id="too long, before its commits"),
    ],
)
def test_a_kill_leaves_the_parent_or_the_child(tmp_path, point, body, limit, compressed):
    made = []
    lineage_id = _prepare(tmp_path / "prepared", compressed=compressed)
    for count in range(1, MOST_COMMITS):
        home = tmp_path / str(count)
        shutil.copytree(tmp_path / "prepared", home)
        killed = _run(home, body, point, count, limit)
        made.append(_look(home, lineage_id, 2 if compressed else 1))
        if not killed:
            break

    assert not killed, "the program has more commits than this test kills at"
    assert set(made) == {0, 1}
    assert made == sorted(made), "once the child is there it stays"


IMPORTS = """
import asyncio
from hermes_hookspecs.errors import HermesError
from hermes_hookspecs.markers import hookimpl
"""
TWO_AT_ONCE = """
def slow(rows):
    print("ready", flush=True)
    sys.stdin.readline()
    return f"summary of {len(rows)} rows"

class Summariser:
    name = "slow"
    async def summarise(self, rows, *, previous, focus):
        return await asyncio.to_thread(slow, rows)

class Plugin:
    @hookimpl
    def hermes_summarisers(self):
        return [Summariser()]

app.hooks.host.register("test.slow", Plugin())
try:
    asyncio.run(app.compress_session(entry.lineage_id, SOURCE))
    print("made")
except HermesError as error:
    print(type(error).__name__)
"""


def test_two_processes_that_compress_at_once_make_one_child(tmp_path):
    home = tmp_path / "home"
    lineage_id = _prepare(home)
    body = "\n".join(f"    {line}" for line in TWO_AT_ONCE.strip().splitlines())
    program = IMPORTS + PROGRAM.format(body=body)
    both = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(home), "5000"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        for _ in range(2)
    ]

    assert [one.stdout.readline() for one in both] == ["ready\n"] * 2
    for one in both:
        one.stdin.write("go on\n")
        one.stdin.flush()
    said = sorted(one.communicate(timeout=60)[0].strip() for one in both)

    assert said[1] == "made"
    assert said[0] in {"Conflict", "LeaseBusy"}
    assert _look(home, lineage_id, 1) == 1
