"""What models use beside the agent of a turn: every cent of it counts to the session that it was used for."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hermes_core import open_app
from hermes_core.context.tokens import measurement_of
from hermes_hookspecs.errors import AgentFailed
from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.messages import Attachment
from hermes_hookspecs.metering import report_usage
from hermes_hookspecs.ports.agent import AssistantStep, UsageReport
from hermes_hookspecs.ports.platform import ServedEntrance
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import Entrance, SessionSource
from hermes_hookspecs.testing.platform import RecordingSender
from hermes_hookspecs.toolbox import AskedCall, Toolbox
from hermes_hookspecs.tools import tool
from hermes_hookspecs.turns import Usage

ALICE = SessionSource(platform="api_server", chat_id="c1", user_id="alice")
OWN = Usage(model="big", input_tokens=100, output_tokens=10, estimated_cost_usd=1.0)
BESIDE = Usage(model="small", input_tokens=7, output_tokens=3, estimated_cost_usd=0.25)
PATIENCE_S = 60


@tool(effect="read")
def ponder() -> str:
    """Ask another model."""
    report_usage(BESIDE)
    return "pondered"


class Talker:
    """Answers, and reports what its own model used; with ``tools`` it calls them first."""

    name, model = "talker", "big"

    def __init__(self, *tools, fails=False, reports=True):
        self._tools, self._fails, self._reports = {one.name: one for one in tools}, fails, reports

    async def run(self, turn):
        box = Toolbox(turn, self._tools)
        if self._tools:
            calls = box.calls([AskedCall(name=name) for name in self._tools])
            yield AssistantStep(tool_calls=calls)
            async for result in box.run(calls):
                yield result
        if self._fails:
            raise RuntimeError("no model today")
        if self._reports:
            yield UsageReport(usage=OWN)
        yield AssistantStep(content="fine " * 50)


class Dying(Talker):
    """Is killed behind its first step, with what its model and a describer used."""

    async def run(self, turn):
        yield UsageReport(usage=OWN)
        box = Toolbox(turn, {"ponder": ponder})
        yield AssistantStep(tool_calls=box.calls([AskedCall(name="ponder")]))
        os.kill(os.getpid(), signal.SIGKILL)


class Helpers:
    """A describer, a provider, a summariser and a titler that ask a model."""

    name, kinds, before_start = "helpers", ("image",), None

    def __init__(self, *, title=None):
        self._title = title
        self.titled = threading.Event()

    @hookimpl
    def hermes_attachment_describers(self):
        return (self,)

    @hookimpl
    def hermes_summarisers(self):
        return (self,)

    @hookimpl
    def hermes_titlers(self):
        return (self,) if self._title else ()

    @hookimpl
    def hermes_after_title_change(self, title):
        self.titled.set()

    async def describe(self, attachment, data):
        await asyncio.to_thread(report_usage, BESIDE)
        return "a cat"

    async def summarise(self, rows, *, previous, focus):
        report_usage(BESIDE)
        return "Goals: none."

    async def title(self, rows):
        report_usage(BESIDE)
        return self._title


@pytest.fixture
def opened(tmp_path):
    """Return a function that opens a profile with a plugin."""
    apps = []

    def opened(plugin=None, **overrides):
        app = open_app(tmp_path / "home", plugins=False, environ={}, overrides=overrides)
        apps.append(app)
        if plugin is not None:
            app.hooks.host.register("test.helpers", plugin)
        return app

    yield opened
    for app in apps:
        app.close()


def counted(app):
    """Return calls, tokens in and money of the only session, and that its own counters say the same."""
    entry = app.get_or_create_session(ALICE)
    total = app.usage_of(operator(), lineage_id=entry.lineage_id)
    sessions = app.store.segments(entry.lineage_id, operator())
    assert sum(one.input_tokens or 0 for one in sessions) == (total.usage.input_tokens or 0)
    assert sum(one.estimated_cost_usd or 0 for one in sessions) == total.known_cost_usd
    return total.calls, total.usage.input_tokens, total.known_cost_usd


def test_what_a_tool_used_counts_to_its_turn(opened):
    app = opened()

    result = app.ask("go", ALICE, agent=Talker(ponder))

    assert counted(app) == (2, 107, 1.25)
    assert (result.usage.input_tokens, result.usage.estimated_cost_usd, result.usage.model) == (107, 1.25, "big")
    assert [(one.usage, one.late) for one in app.store.usage(result.turn.id)] == [(BESIDE, True), (OWN, False)]


def test_what_was_used_counts_although_the_turn_failed(opened):
    app = opened()

    with pytest.raises(AgentFailed):
        app.ask("go", ALICE, agent=Talker(ponder, fails=True))

    assert counted(app) == (1, 7, 0.25)


def test_what_a_description_took_counts_to_the_turn_of_its_message_once(opened):
    app = opened(Helpers())
    picture = Attachment(kind="image", sha256=app.attachments.put(b"\x89PNG\r\n\x1a\n"))

    app.ask("look", ALICE, agent=Talker(), attachments=(picture,))
    app.ask("and?", ALICE, agent=Talker())

    assert counted(app) == (3, 207, 2.25)


def test_what_a_summary_took_counts_to_the_turn_that_needed_it(opened):
    app = opened(Helpers(), **{"compression.hygiene_hard_message_limit": 9, "compression.keep": 0.2})
    for _ in range(4):
        app.ask("question", ALICE, agent=Talker())
    before = counted(app)

    result = app.ask("question", ALICE, agent=Talker())  # too many rows by now

    assert (before, counted(app)) == ((4, 400, 4.0), (6, 507, 5.25))
    assert [one.usage for one in app.store.usage(result.turn.id)] == [OWN, BESIDE]
    assert len(app.store.segments(result.turn.lineage_id, operator())) == 2


def test_what_a_summary_took_counts_that_a_person_asked_for(opened):
    app = opened(Helpers())
    for _ in range(6):
        entry = app.ask("question", ALICE, agent=Talker()).entry

    report = asyncio.run(app.compress_session(entry.lineage_id, ALICE))

    assert report.refusal == ""
    assert counted(app) == (7, 607, 6.25)


KILLED = """
import asyncio, sys
from hermes_core import open_app
from hermes_hookspecs.messages import Attachment
from hermes_hookspecs.source import SessionSource
sys.path.insert(0, sys.argv[2])
from test_side_usage import ALICE, Dying, Helpers, Talker, ponder
with open_app(sys.argv[1], plugins=False, environ={}) as app:
    app.hooks.host.register("test.helpers", Helpers())
    if sys.argv[3] == "compress":
        entry = app.get_or_create_session(ALICE)
        asyncio.run(app.compress_session(entry.lineage_id, ALICE))
    picture = Attachment(kind="image", sha256=app.attachments.put(b"\\x89PNG\\r\\n\\x1a\\n"))
    agent = Dying() if sys.argv[3] == "die" else Talker(ponder)
    app.ask("look", ALICE, agent=agent, attachments=(picture,))
"""


@pytest.mark.parametrize(
    ("what", "point", "more"),
    [
        ("ask", "finish.stored", (3, 114, 1.5)),
        ("die", "finish.stored", (2, 107, 1.25)),
        ("compress", "compress.before", (1, 7, 0.25)),
    ],
)
def test_a_kill_loses_nothing_of_what_was_used_before_the_last_step(opened, tmp_path, what, point, more):
    app = opened()
    for _ in range(6):
        app.ask("question", ALICE, agent=Talker())
    before = counted(app)
    app.close()

    killed = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "home"), str(Path(__file__).parent), what],
        env=os.environ | {"HERMES_FAULT_POINTS": f"{point}:kill"},
        check=False,
        timeout=PATIENCE_S,
    )

    assert killed.returncode == -signal.SIGKILL
    assert counted(opened()) == tuple(was + now for was, now in zip(before, more, strict=True))


def test_what_a_title_took_counts(opened):
    helpers = Helpers(title="Cats")
    app = opened(helpers)

    app.ask("go", ALICE, agent=Talker())

    assert helpers.titled.wait(PATIENCE_S)
    assert counted(app) == (2, 107, 1.25)


def test_what_a_job_used_counts_to_the_turn_that_began_it(opened):
    app = opened()

    class Starter(Talker):
        async def run(self, turn):
            job = await turn.jobs.start(work, kind="count", label="counts")
            yield AssistantStep(content=job.id)

    def work():
        report_usage(BESIDE)
        return "52"

    job_id = app.ask("go", ALICE, agent=Starter()).text
    wait = threading.Event()
    for _ in range(PATIENCE_S * 20):
        if app.store.job(job_id).settled_at is not None:
            break
        wait.wait(0.05)

    assert counted(app) == (1, 7, 0.25)


def test_tokens_of_other_prompts_measure_no_prompt_of_the_session(opened):
    app = opened()
    told = app.ask("go", ALICE, agent=Talker(ponder))
    measured = measurement_of(app.store, app.store.messages(told.entry.lineage_id, operator()))
    silent = app.ask("go", ALICE, agent=Talker(ponder, reports=False))

    assert (measured.turn_id, measured.tokens) == (told.turn.id, 100)
    assert silent.usage.input_tokens == 7
    assert measurement_of(app.store, app.store.messages(told.entry.lineage_id, operator())) is None


def test_what_messages_of_a_platform_took_counts_to_their_own_turn_alone(opened, tmp_path):
    app = opened(Helpers(), **{"inbox.batch_window_s": 0.0})
    picture = Attachment(kind="image", sha256=app.attachments.put(b"\x89PNG\r\n\x1a\n"))

    def look(number):
        return MessageEvent(
            source=ALICE,
            text=f"look {number}",
            attachments=(picture,),
            identities=(f"m{number}",),
            received_at=app.clock.now(),
        )

    class Chatty(Talker):
        async def run(self, turn):
            if turn.text == "look 1":
                await app.accept([look(2)])  # it waits behind this turn, at the same worker
            async for event in super().run(turn):
                yield event

    async def scene():
        await app.accept([look(1)])
        served = ServedEntrance(entrance=Entrance("api_server"), sender=RecordingSender(tmp_path / "record"))
        await app.work([served], agent=Chatty(), until_idle=True)

    asyncio.run(scene())

    turns = app.store.turns(app.get_or_create_session(ALICE).lineage_id, operator())
    assert [[one.usage for one in app.store.usage(turn.id)] for turn in turns] == [[OWN, BESIDE]] * 2
    assert counted(app) == (4, 214, 2.5)
