"""A real core and its store on disk: commands run in this process, or as the script in one of their own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from typing import NamedTuple

import pytest

from hermes_cli.front_end import CliFrontEnd
from hermes_core.app import open_app
from hermes_hookspecs.source import SessionSource

FEISHU = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_ming", user_name="小明")


class Ran(NamedTuple):
    """What one run of the program left behind."""

    status: int
    out: str
    err: str


class Lent:
    """An app that stays open when the program closes it, so that the next command finds the same store."""

    def __init__(self, app):
        self._app = app

    def __enter__(self):
        return self._app

    def __exit__(self, *_):
        return None


@pytest.fixture(autouse=True)
def _no_settings_of_the_caller(monkeypatch):
    for name in list(os.environ):
        if name.startswith("HERMES_") or name in {"COLUMNS", "TMUX_PANE", "STY", "WT_SESSION", "TERM_SESSION_ID"}:
            monkeypatch.delenv(name)


@pytest.fixture
def app(tmp_path):
    app = open_app(tmp_path / "home", overrides={"agent.runner": "echo"}, plugins=False)
    yield app
    app.close()


@pytest.fixture
def say(app):
    """Return a function that sends a message from Feishu (or ``source``) and answers it; gives the result."""

    def say(text, answer="noted", *, source=FEISHU, entry=None):
        return app.ask(text, source, entry=entry, agent=lambda turn: answer)

    return say


@pytest.fixture
def hermes(app, capsys, monkeypatch):
    """Return a function that runs one command line over :func:`app` in this process."""

    def run(*arguments, stdin=""):
        data = stdin if isinstance(stdin, bytes) else stdin.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
        status = CliFrontEnd().main(arguments, lambda **_: Lent(app))
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return run


@pytest.fixture
def environment(tmp_path):
    """Return a function that gives the environment of a process over a home of this test's own."""

    def environment(more=None):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HERMES_")}
        return {**kept, "HERMES_SESSIONS_HOME": str(tmp_path / "home"), **(more or {})}

    return environment


@pytest.fixture
def start(environment):
    """Return a function that starts the script in a process of its own, away from any terminal."""
    children = []

    def start(*arguments, env=None, **streams):
        command = [sys.executable, "-m", "hermes_core.main", *arguments]
        streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
        child = subprocess.Popen(command, env=environment(env), start_new_session=True, **streams)
        children.append(child)
        return child

    yield start
    for child in children:
        child.kill()
        child.wait(30)
        for stream in (child.stdin, child.stdout, child.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture
def script(start):
    """Return a function that runs the script to its end, over a store on disk."""

    def run(*arguments, stdin="", env=None):
        child = start(*arguments, env=env, stdin=subprocess.PIPE)
        out, err = child.communicate(stdin if isinstance(stdin, bytes) else stdin.encode(), timeout=60)
        return Ran(child.returncode, out.decode(), err.decode())

    return run


@pytest.fixture
def spawn(environment):
    """Return a function that starts the script on a pseudo-terminal."""
    pexpect = pytest.importorskip("pexpect")
    children = []

    def spawn(*arguments, columns=80, env=None):
        child = pexpect.spawn(
            sys.executable,
            ["-m", "hermes_core.main", *arguments],
            encoding="utf-8",
            dimensions=(24, columns),
            timeout=30,
            env=environment({"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", **(env or {})}),
        )
        children.append(child)
        return child

    yield spawn
    for child in children:
        child.close(force=True)


TOYS = '''
from __future__ import annotations

import asyncio
import json

from hermes_hookspecs import hookimpl
from hermes_hookspecs.messages import ToolCall
from hermes_hookspecs.ports.agent import AssistantStep, Progress, TextDelta, ToolResult
from hermes_hookspecs.toolbox import AskedCall, Toolbox
from hermes_hookspecs.tools import tool


class Raising:
    name, model = "toy-raising", None

    async def run(self, turn):
        raise RuntimeError("no model today")
        yield


class Waiting:
    """Says that it has begun, and waits for ever."""

    name, model = "toy-waiting", None

    async def run(self, turn):
        yield TextDelta(text="begun\\n")
        await asyncio.Event().wait()


class Pieces:
    name, model = "toy-pieces", "toy-1"

    async def run(self, turn):
        yield Progress(label="looking")
        yield AssistantStep(content="Let me look.", tool_calls=(ToolCall(id="c1", name="look"),))
        yield ToolResult(call_id="c1", name="look", content="blue")
        for piece in ("It ", "is ", "blue."):
            yield TextDelta(text=piece)
        yield AssistantStep(content="It is blue.")


@tool(effect="write", dangerous=True)
def remove(path: str) -> str:
    """Remove a file.

    :param path: which one.
    """
    return f"{path} is gone"


class Asking:
    """Calls its dangerous tool once for each word, and answers with what came of it."""

    name, model = "toy-asking", None

    async def run(self, turn):
        box = Toolbox(turn, {"remove": remove})
        words = turn.text.split()
        for word in words:
            calls = box.calls([AskedCall(name="remove", arguments=json.dumps({"path": word}))])
            yield AssistantStep(tool_calls=calls)
            async for result in box.run(calls):
                yield result
                yield AssistantStep(content=f"told: {result.content}")


class ToyPlugin:
    @hookimpl
    def hermes_agents(self):
        return [Raising(), Waiting(), Pieces(), Asking()]
'''


@pytest.fixture
def toys(tmp_path):
    """Return variables with which the script finds the agents of :data:`TOYS`: ``toy-raising``, ``toy-asking``, ..."""
    folder = tmp_path / "toys"
    info = folder / "hermes_toys-0.1.dist-info"
    info.mkdir(parents=True)
    (folder / "hermes_toys.py").write_text(TOYS)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hermes-toys\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[hermes.plugins.v1]\ntoys = hermes_toys:ToyPlugin\n")
    return {"PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])}
