"""A real core over its store in memory for commands in this process; the installed script for everything else."""

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
    app = open_app(tmp_path / "home", overrides={"storage.backend": "memory"}, plugins=False)
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
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8"))
        status = CliFrontEnd().main(arguments, lambda **_: Lent(app))
        captured = capsys.readouterr()
        return Ran(status, captured.out, captured.err)

    return run


@pytest.fixture
def script(tmp_path):
    """Return a function that runs the script ``hermes`` in a process of its own, over a store on disk."""

    def run(*arguments, stdin="", env=None, timeout=60):
        data = stdin if isinstance(stdin, bytes) else stdin.encode()
        done = subprocess.run(
            [sys.executable, "-m", "hermes_core.main", *arguments],
            input=data,
            capture_output=True,
            check=False,
            timeout=timeout,
            env=environment(tmp_path, env),
            start_new_session=True,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def spawn(tmp_path):
    """Return a function that starts the script on a pseudo-terminal."""
    pexpect = pytest.importorskip("pexpect")
    children = []

    def start(*arguments, columns=80, env=None):
        child = pexpect.spawn(
            sys.executable,
            ["-m", "hermes_core.main", *arguments],
            encoding="utf-8",
            dimensions=(24, columns),
            timeout=30,
            env=environment(tmp_path, {"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", **(env or {})}),
        )
        children.append(child)
        return child

    yield start
    for child in children:
        child.close(force=True)


def environment(tmp_path, more):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HERMES_", "TMUX", "STY"))}
    return {**kept, "HERMES_SESSIONS_HOME": str(tmp_path / "home"), **(more or {})}
