"""What people see and decide of an agent at work: requests for approval, calls of tools, jobs, and who answers."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading

import attrs
import pytest

from hermes_core import open_app
from hermes_hookspecs.errors import ApprovalNotFound
from hermes_hookspecs.jobs import CANCELLED, DONE, LOST
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.messages import ToolCall
from hermes_hookspecs.ports.agent import AssistantStep, ToolResult
from hermes_hookspecs.principal import ADMIN, operator
from hermes_hookspecs.source import SessionSource
from hermes_hookspecs.testing.agents import FakeTool

ALICE = SessionSource(platform="api_server", chat_id="c1", user_id="alice")
BOB = SessionSource(platform="api_server", chat_id="c2", user_id="bob")
CALL = ToolCall(id="c1", name="remove", arguments='{"path": "/tmp/x"}', effect="write")
PATIENCE_S = 60


class Remover:
    """Asks before it calls its tool, and answers with what it was told."""

    name = "remover"
    model = None

    async def run(self, turn):
        yield AssistantStep(tool_calls=(CALL,))
        refusal = await turn.approvals.ask(CALL, FakeTool("remove", effect="write"), turn)
        yield ToolResult(call_id="c1", name="remove", content=refusal or "removed")
        yield AssistantStep(content=f"told: {refusal or 'yes'}")


class Ear:
    def __init__(self):
        self.heard = []

    @hookimpl
    def hermes_after_tool_call(self, turn, call, result):
        self.heard.append((turn.id, call.tool_calls[0].name, result.content))


@pytest.fixture
def app(tmp_path):
    with open_app(tmp_path / "home", plugins=False, environ={}) as app:
        yield app


def asked(app, decide):
    """Run a turn that asks; ``decide`` is called with the request on a thread of its own."""

    def on_approval(approval):
        threading.Thread(target=decide, args=(approval,)).start()

    return asyncio.run(app.ask_async("remove it", ALICE, agent=Remover(), on_approval=on_approval))


@pytest.mark.parametrize(("approve", "answer"), [(True, "told: yes"), (False, "said no.")])
def test_a_call_waits_for_the_answer_of_its_person(app, approve, answer):
    result = asked(app, lambda one: app.oversight.answer(one.id, ALICE, approve=approve))

    assert answer in result.text
    (row,) = app.oversight.audit(operator())
    assert (row.entry.tool_name, row.turn_id) == ("remove", result.turn.id)


def test_somebody_else_can_neither_see_nor_answer_a_request(app):
    said = []

    def decide(approval):
        for reference in (approval.id, "nothing"):
            with pytest.raises(ApprovalNotFound) as refused:
                app.oversight.answer(reference, BOB, approve=True)
            said.append(str(refused.value).replace(reference, "ID"))
        assert app.oversight.approvals(BOB) == ()
        app.oversight.answer(approval.id, ALICE, approve=False)

    asked(app, decide)

    assert len(said) == 2
    assert said[0] == said[1], "whoever may not answer is told what somebody is told who guesses"


def test_an_admin_by_a_plugin_may_answer_for_somebody_else(app):
    boss = attrs.evolve(BOB, roles=(ADMIN,))

    result = asked(app, lambda one: app.oversight.answer(one.id, boss, approve=True))

    assert "told: yes" in result.text


def test_an_admin_of_the_list_for_commands_may_answer_for_somebody_else(tmp_path):
    with open_app(
        tmp_path / "admins", plugins=False, environ={}, overrides={"commands.admins": ("api_server:bob",)}
    ) as app:
        result = asked(app, lambda one: app.oversight.answer(one.id, BOB, approve=True))

    assert "told: yes" in result.text


def test_a_turn_that_is_stopped_while_it_asks_leaves_no_open_request(app):
    def decide(approval):
        app.stop_turn(approval.lineage_id, reason="enough")

    with pytest.raises(Exception, match=r"lost|stopped"):
        asked(app, decide)

    assert app.oversight.approvals(ALICE) == ()


def test_who_listens_hears_of_each_call_with_its_rows(app):
    ear = Ear()
    app.hooks.host.register("test.ear", ear)

    result = asked(app, lambda one: app.oversight.answer(one.id, ALICE, approve=True))
    app.hooks.flush()

    assert ear.heard == [(result.turn.id, "remove", "removed")]


# --- jobs


class Starter:
    """Begins a job and answers with its id."""

    name = "starter"
    model = None

    def __init__(self, work):
        self._work = work

    async def run(self, turn):
        job = await turn.jobs.start(self._work, kind="count", label="counts the whales")
        yield AssistantStep(content=job.id)


class Listener:
    name = "listener"
    model = None

    async def run(self, turn):
        self.seen = [message.content for message in turn.messages]
        yield AssistantStep(content="heard")


def settled(app, job_id):
    """Return a job once it has ended."""
    done = threading.Event()
    for _ in range(PATIENCE_S * 20):
        job = app.store.job(job_id)
        if job.settled_at is not None:
            return job
        done.wait(0.05)
    raise AssertionError(f"{job_id} does not end")


def test_a_session_hears_with_its_next_turn_what_came_of_its_job(app):
    async def work():
        return "52 whales"

    started = app.ask("count", ALICE, agent=Starter(work))
    job = settled(app, started.text)
    listener = Listener()
    app.ask("and?", BOB, agent=listener)
    unheard = "\n".join(listener.seen)
    app.ask("and?", ALICE, agent=listener)

    assert (job.status, job.result) == (DONE, "52 whales")
    assert "whales" not in unheard
    assert "52 whales" in "\n".join(listener.seen)


def test_a_job_that_somebody_cancels_is_cancelled(app):
    async def work():
        await asyncio.Event().wait()

    job_id = app.ask("count", ALICE, agent=Starter(work)).text

    app.oversight.cancel_job(job_id, operator())

    assert settled(app, job_id).status == CANCELLED


DYING = """
import asyncio, sys
from hermes_core import open_app
from hermes_hookspecs.ports.agent import AssistantStep
from hermes_hookspecs.source import SessionSource

class Starter:
    name, model = "starter", None
    async def run(self, turn):
        job = await turn.jobs.start(asyncio.Event().wait, kind="count", label="counts")
        yield AssistantStep(content=job.id)

app = open_app(sys.argv[1], plugins=False, environ={})
source = SessionSource(platform="api_server", chat_id="c1", user_id="alice")
print(app.ask("count", source, agent=Starter()).text, flush=True)
input()
"""


def test_a_job_whose_process_was_killed_is_closed_as_lost_and_its_session_told(app, tmp_path):
    child = subprocess.Popen(
        [sys.executable, "-c", DYING, str(tmp_path / "home")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    job_id = child.stdout.readline().strip()
    alive = app.maintain(), app.store.job(job_id).settled_at
    child.send_signal(signal.SIGKILL)
    child.communicate()

    app.maintain()
    listener = Listener()
    app.ask("and?", ALICE, agent=listener)

    assert alive[1] is None
    assert app.store.job(job_id).status == LOST
    assert job_id in "\n".join(listener.seen)


# --- who answers


class Ready(Listener):
    name = "abacus"
    ready = True


class Unready(Listener):
    name = "aardvark"
    ready = False
    setup = "set a model in\nconfig.toml"


def plugin_with(*agents):
    class Plugin:
        @hookimpl
        def hermes_agents(self):
            return agents

    return Plugin()


def test_the_first_agent_that_is_ready_answers_where_nobody_chose(app):
    app.hooks.host.register("test.agents", plugin_with(Unready(), Ready()))

    assert app.ask("hello", ALICE).text == "heard"
    assert app.default_agent == "abacus"
    assert app.agent_setup() == ""


def test_where_none_is_ready_the_built_in_one_answers_and_it_is_said_what_is_missing(app):
    app.hooks.host.register("test.agents", plugin_with(Unready()))

    assert app.default_agent == "recall"
    assert app.agent_setup() == "set a model in config.toml"
