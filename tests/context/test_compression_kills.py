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


def _run(home, body, point, count, limit):
    """Run a program that dies at the count-th visit of a point; return whether it did."""
    program = PROGRAM.format(body="\n".join(f"    {line}" for line in body.strip().splitlines()))
    paths = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", program, str(home), str(limit)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=os.environ | {"HERMES_FAULT_POINTS": f"{point}:kill:{count}", "PYTHONPATH": paths},
    )
    assert done.returncode in {0, -signal.SIGKILL}, done.stderr
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
    ("body", "limit", "compressed", "point"),
    [
        pytest.param(BY_HAND, 5000, False, "group.begun", id="by hand, before its commits"),
        pytest.param(BY_HAND, 5000, False, "group.committed", id="by hand, behind its commits"),
        pytest.param(IN_A_TURN, 12, False, "group.begun", id="in a turn, before its commits"),
        pytest.param(IN_A_TURN, 12, False, "group.committed", id="in a turn, behind its commits"),
        pytest.param(BACK, 5000, True, "group.begun", id="taken back, before its commits"),
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
