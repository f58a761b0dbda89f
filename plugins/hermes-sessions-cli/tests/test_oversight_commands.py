"""``hermes jobs`` and ``hermes audit``: what people see, at several widths, and what programs get."""

from __future__ import annotations

import asyncio
import json
import os

import attrs
import pytest
from wcwidth import wcswidth

from hermes_core.leases import holder_here
from hermes_hookspecs.ids import new_job_id
from hermes_hookspecs.jobs import RUNNING
from hermes_hookspecs.messages import ToolCall
from hermes_hookspecs.operations import EndJob, StartJob
from hermes_hookspecs.ports.agent import AssistantStep, ToolResult
from hermes_hookspecs.source import Entrance, SessionSource
from hermes_hookspecs.turns import Fence

FEISHU = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_ming", user_name="小明")
SLACK = SessionSource(platform="slack", chat_id="D1", scope_id="T1", user_id="U1", user_name="Ada")
PATIENCE_S = 60


class Worker:
    """Begins a job whose process is ``holder``; nobody runs it."""

    name, model = "worker", None

    def __init__(self, app, holder, kind, label):
        self._app, self._holder, self._kind, self._label = app, holder, kind, label

    async def run(self, turn):
        lineage_id, now = turn.turn.lineage_id, self._app.clock.now()
        starting = StartJob(
            fence=Fence(lineage_id, turn.turn.id, self._app.store.lease(lineage_id).token),
            job_id=new_job_id(now),
            kind=self._kind,
            label=self._label,
            holder=self._holder,
            source=turn.source,
            session_key=turn.turn.session_key,
            now=now,
        )
        job = await asyncio.to_thread(self._app.store.apply, starting)
        yield AssistantStep(content=job.id)


class Caller:
    """Calls tools, as it is told: ``(name, arguments, outcome, result)``."""

    name, model = "caller", None

    def __init__(self, calls):
        self._calls = calls

    async def run(self, turn):
        for at, (name, arguments, outcome, result) in enumerate(self._calls):
            call = ToolCall(id=f"c{at}", name=name, arguments=arguments, effect="write")
            yield AssistantStep(tool_calls=(call,))
            yield ToolResult(call_id=call.id, name=name, content=result, outcome=outcome, duration_ms=1234)
        yield AssistantStep(content="done")


HERE = holder_here(Entrance("feishu"), None)
DEAD = attrs.evolve(HERE, pid=os.getppid(), started="1")
FAR = attrs.evolve(HERE, host="laptop", boot_id="another boot", pid=812)


@pytest.fixture
def job(app):
    """Return a function that begins a job and, with ``status``, ends it; gives its id."""

    def job(label="counts the whales", kind="count", *, holder=HERE, source=FEISHU, status=RUNNING, reason=""):
        job_id = app.ask("go", source, agent=Worker(app, holder, kind, label)).text
        if status != RUNNING:
            app.store.apply(EndJob(job_id=job_id, status=status, now=app.clock.now(), reason=reason, result="52"))
        return job_id

    return job


@pytest.fixture
def called(app):
    """Return a function that lets an agent call tools in a conversation; gives the session's id."""
    return lambda *calls, source=FEISHU: app.ask("go", source, agent=Caller(calls)).entry.session_id


# ------------------------------------------------------------------ jobs


def test_no_job_is_one_friendly_line(hermes, job):
    none = hermes("jobs", "list")
    job(status="done")

    assert (none.status, none.out, none.err) == (0, "", "No job runs.\n")
    assert hermes("jobs", "list").err == "No job runs; --all shows those that have ended.\n"
    assert json.loads(hermes("jobs", "list", "--json").out) == []


def test_jobs_that_run_are_listed_newest_first_with_their_session_and_their_process(hermes, job, app):
    job("over", status="done")
    first, second, third = job("一"), job("two", holder=FAR), job("three", holder=DEAD)
    session_id = app.get_or_create_session(FEISHU).session_id

    head, *lines = hermes("jobs", "list").out.splitlines()

    assert head.split() == ["JOB", "SESSION", "STATE", "STARTED", "ENDED", "KIND", "LABEL"]
    assert [line.split()[0] for line in lines] == [third, second, first]
    assert {line.split()[1] for line in lines} == {session_id}
    assert [
        next(state for state in ("unknown host", "process is gone", "running") if state in line) for line in lines
    ] == ["process is gone", "unknown host", "running"]


@pytest.mark.parametrize("width", [80, 120])
def test_jobs_fit_a_terminal_in_every_script(hermes, job, monkeypatch, width):
    job("counts", status="failed", reason="no sea today")
    job("数鲸鱼" * 60, "数数", holder=DEAD)
    monkeypatch.setattr("hermes_cli.front_end.width_of", lambda out: width)

    lines = hermes("jobs", "list", "--all").out.splitlines()

    assert max(map(wcswidth, lines)) <= width
    assert [line.split()[0] for line in lines[:2]] == ["JOB", "KIND:"]
    assert "process is gone" in lines[2]
    assert lines[3].startswith("    数数: 数鲸鱼数鲸鱼")
    assert lines[3].endswith("…")
    assert lines[5] == "    count: counts (no sea today)"


def test_a_list_of_one_session_and_of_a_limit_says_what_is_left_out(hermes, job, app):
    mine, _other = job(), job(source=SLACK)
    session_id = app.get_or_create_session(FEISHU).session_id

    of_session = json.loads(hermes("jobs", "list", "--session", session_id, "--json").out)
    limited = hermes("jobs", "list", "--limit", "1")

    assert [one["job_id"] for one in of_session] == [mine]
    assert len(limited.out.splitlines()) == 2
    assert limited.err == "more (--limit shows more)\n"
    assert hermes("jobs", "list", "--session", "nothing").status == 1


def test_a_job_as_json_has_the_names_of_the_table(hermes, job):
    job_id = job("数鲸鱼\x1b[2J", status="failed", reason="no sea")

    ran = hermes("jobs", "list", "--all", "--json")

    (record,) = json.loads(ran.out)
    assert "\x1b" not in ran.out
    assert record["label"] == "数鲸鱼\x1b[2J"
    assert {"job_id", "session_id", "lineage_id", "turn_id", "kind", "status", "started_at", "told"} <= set(record)
    assert (record["job_id"], record["status"], record["reason"]) == (job_id, "failed", "no sea")
    assert (record["result"], record["source"]) == ("52", "feishu")


def test_cancelling_asks_the_process_and_a_second_time_changes_nothing(hermes, job):
    job_id = job()

    once, again = hermes("jobs", "cancel", job_id), hermes("jobs", "cancel", job_id[:20])

    for ran in (once, again):
        assert (ran.status, ran.out) == (0, "")
        assert ran.err == f"{job_id} (counts the whales) is asked to end; its session is told when it has\n"
    assert json.loads(hermes("jobs", "list", "--json").out)[0]["state"] == "ending"


def test_cancelling_a_job_whose_process_is_gone_closes_it_as_lost(hermes, job):
    job_id = job(holder=DEAD)

    ran = hermes("jobs", "cancel", job_id)

    assert (ran.status, ran.err) == (0, f"{job_id} (counts the whales) is closed as lost: its process is gone\n")
    assert json.loads(hermes("jobs", "list", "--all", "--json").out)[0]["status"] == "lost"


def test_what_cannot_be_cancelled_is_told_and_keeps_the_others_from_nothing(hermes, job):
    over, runs = job(status="done"), job()

    ran = hermes("jobs", "cancel", "nothing", over, runs)

    assert ran.status == 1
    assert "there is no job 'nothing'" in ran.err
    assert f"{over} (counts the whales) has ended already: done" in ran.err
    assert f"{runs} (counts the whales) is asked to end" in ran.err


def test_a_beginning_of_several_ids_is_ambiguous(hermes, job):
    job(), job()

    assert hermes("jobs", "cancel", "J2").status == 2
    assert hermes("jobs", "cancel", "").status == 1
    assert hermes("jobs", "cancel").status == 2


def test_a_job_of_a_living_process_ends_when_another_process_cancels_it(app, script):
    async def work():
        await asyncio.Event().wait()

    class Starter:
        name, model = "starter", None

        async def run(self, turn):
            yield AssistantStep(content=(await turn.jobs.start(work, kind="count", label="counts")).id)

    job_id = app.ask("go", FEISHU, agent=Starter()).text

    ran = script("jobs", "cancel", job_id, "--json")

    assert (ran.status, json.loads(ran.out)[0]["job_id"]) == (0, job_id)
    assert ended(app, job_id).status == "cancelled"


def ended(app, job_id):
    from threading import Event

    for _ in range(PATIENCE_S * 20):
        job = app.store.job(job_id)
        if job.settled_at is not None:
            return job
        Event().wait(0.05)
    raise AssertionError(f"{job_id} does not end")


# ------------------------------------------------------------------ audit

REMOVED = ("remove", '{"path": "/tmp/周报"}', "answered", "已删除")
REFUSED = ("send", '{"to": "all"}', "refused", "Error: send was not called: 小明 said no.")


def test_no_call_is_one_friendly_line(hermes):
    ran = hermes("audit")

    assert (ran.status, ran.out, ran.err) == (0, "", "No tool was called yet.\n")
    assert json.loads(hermes("audit", "--json").out) == []


def test_in_a_pipe_a_call_is_one_line_newest_first(hermes, called):
    session_id = called(REMOVED, REFUSED)

    head, refused, removed = hermes("audit").out.splitlines()

    assert head.split() == ["WHEN", "OUTCOME", "TOOK", "SESSION", "WHO", "WHERE", "TOOL", "ARGUMENTS", "RESULT"]
    assert refused.split()[1] == "refused"
    assert removed.split()[1:] == [
        "answered", "1.2", "s", session_id, "小明", "feishu", "remove", '{"path":', '"/tmp/周报"}', "已删除",
    ]  # fmt: skip


@pytest.mark.parametrize("width", [80, 120])
def test_calls_fit_a_terminal_in_every_script(hermes, called, monkeypatch, width):
    source = attrs.evolve(FEISHU, user_name="小明" * 40)
    session_id = called(("remove", "周" * 500, "timed out", "报" * 500), REMOVED, source=source)
    monkeypatch.setattr("hermes_cli.front_end.width_of", lambda out: width)

    lines = hermes("audit").out.splitlines()

    assert max(map(wcswidth, lines)) <= width
    assert [line.split()[0] for line in lines[:3]] == ["WHEN", "TOOL", "RESULT"]
    assert session_id in lines[3]
    assert lines[4:6] == ['    remove  {"path": "/tmp/周报"}', "    已删除"]
    assert lines[7].startswith("    remove  周周")
    assert (lines[7][-1], lines[8][-1]) == ("…", "…")


def test_calls_are_chosen_by_session_tool_person_outcome_and_time(hermes, called):
    mine, other = called(REMOVED, REFUSED), called(REMOVED, source=SLACK)

    def chosen(*options):
        return [(one["session_id"], one["tool_name"]) for one in json.loads(hermes("audit", *options, "--json").out)]

    assert chosen("--session", mine) == [(mine, "send"), (mine, "remove")]
    assert chosen("--tool", "remove") == [(other, "remove"), (mine, "remove")]
    assert chosen("--person", "Ada") == chosen("--person", "U1") == [(other, "remove")]
    assert chosen("--outcome", "refused") == [(mine, "send")]
    assert chosen("--since", "1h", "--limit", "1") == [(other, "remove")]
    assert chosen("--until", "1h") == []
    assert hermes("audit", "--tool", "nothing").err == "None of these.\n"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--since", "tomorrow"), "option --since wants a date like"),
        (("--outcome", "fine"), "option --outcome wants one of running, answered"),
        (("--limit", "0"), "option --limit wants a whole number from 1"),
    ],
)
def test_a_wrong_option_is_one_line_and_exit_2(hermes, options, said):
    ran = hermes("audit", *options)

    assert (ran.status, ran.err.count("\n")) == (2, 1)
    assert said in ran.err


def test_a_call_as_json_has_the_names_of_the_table_and_commands_no_terminal(hermes, called):
    called(("remove", '"\x1b[2J"', "failed", "\u202egone"))

    ran = hermes("audit", "--json")

    (record,) = json.loads(ran.out)
    assert "\x1b" not in ran.out
    assert "\u202e" not in ran.out
    assert (record["arguments"], record["result"], record["outcome"]) == ('"\x1b[2J"', "\u202egone", "failed")
    assert (record["duration_ms"], record["user_name"], record["effect"], record["late"]) == (
        1234,
        "小明",
        "write",
        False,
    )
    assert {"id", "turn_id", "call_id", "started_at", "approval_id", "source", "session_key"} <= set(record)


def test_a_text_from_outside_commands_no_terminal(hermes, called, job):
    called(("rem\x1bove", "\x1b[2J", "failed", "\u202egone"))
    job("\x1b[2J", "a\x07b")

    assert "\x1b" not in hermes("audit").out + hermes("jobs", "list").out
    assert "\x07" not in hermes("jobs", "list").out


@pytest.mark.parametrize("columns", [80, 120])
def test_on_a_real_terminal_lists_fit_and_in_a_pipe_they_are_whole(spawn, script, called, job, columns):
    import re

    import pexpect

    called(("remove", '{"path": "' + "周报" * 100 + '"}', "answered", "已删除"))
    job("数鲸鱼" * 60)

    for command in (("audit",), ("jobs", "list")):
        child = spawn(*command, columns=columns)
        child.expect(pexpect.EOF)
        lines = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", child.before).replace("\r", "").splitlines()
        assert max(map(wcswidth, lines)) <= columns
        assert any("周报周报" in line or "数鲸鱼数鲸鱼" in line for line in lines)
    assert "数鲸鱼" * 60 in script("jobs", "list").out
