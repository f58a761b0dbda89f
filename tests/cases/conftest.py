"""What the cases stand on: profiles on disk, the script ``hermes``, and other processes that wait for a word."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import apsw
import pytest

from hermes_core import open_app
from hermes_core.search.history import SearchingHistory
from hermes_hookspecs.ids import LineageId
from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.ports.platform import ServedEntrance
from hermes_hookspecs.principal import operator
from hermes_hookspecs.session_search import session_search
from hermes_hookspecs.source import Entrance, SessionSource
from hermes_hookspecs.testing.platform import RecordingSender

PATIENCE_S = 60
PRELUDE = """
import sys
from hermes_core import open_app
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import SessionSource

ALL = operator()
HOME = sys.argv[1]
ALICE = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_alice")


def say(word):
    print(word, flush=True)


def hear():
    return sys.stdin.readline().strip()


"""


class Ran(NamedTuple):
    """What one run of a program left behind."""

    status: int
    out: str
    err: str


class Program:
    """A Python program in a process of its own, which is spoken with line by line."""

    def __init__(self, process):
        self.process = process

    def hear(self):
        return self.process.stdout.readline().strip()

    def say(self, word="go on"):
        self.process.stdin.write(f"{word}\n")
        self.process.stdin.flush()

    def kill(self):
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def end(self):
        """Wait for its end, which must be a good one, and return the rest of what it said."""
        out, err = self.process.communicate(timeout=PATIENCE_S)
        assert self.process.returncode == 0, err
        return out.split()


def clean_environment():
    """Return the environment without settings of whoever runs the tests."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("HERMES_", "PYTHONPATH"))}


@pytest.fixture(autouse=True)
def _no_settings_of_the_caller(monkeypatch):
    for name in list(os.environ):
        if name.startswith("HERMES_"):
            monkeypatch.delenv(name)


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def open_home(home):
    """Return a function that opens the home once more in this process; all are closed when the test ends."""
    apps = []

    def open_(**options):
        apps.append(open_app(home, plugins=False, **options))
        return apps[-1]

    yield open_
    for app in apps:
        app.close()


@pytest.fixture
def app(open_home):
    return open_home()


@pytest.fixture
def alice():
    return SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_alice")


@pytest.fixture
def bob():
    return SessionSource(platform="feishu", chat_id="oc_2", user_id="ou_bob")


@pytest.fixture
def terminal():
    return SessionSource(platform="cli", chat_id="pts-1", user_id="me", user_name="me")


@pytest.fixture
def start(home):
    """Return a function that starts a Python program behind PRELUDE; what still runs at the end is killed."""
    running = []

    def start(code, *arguments):
        process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + code, str(home), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**clean_environment(), "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
        )
        running.append(process)
        return Program(process)

    yield start
    for process in running:
        process.kill()
        process.communicate()


@pytest.fixture
def hermes(home):
    """Return a function that runs the installed script over the home."""
    pytest.importorskip("hermes_cli", reason="the script needs the terminal entrance")
    script = Path(sys.executable).with_name("hermes")
    program = [str(script)] if script.exists() else [sys.executable, "-m", "hermes_core.main"]

    def run(*arguments, stdin="", env=None):
        done = subprocess.run(
            [*program, *arguments],
            input=stdin.encode(),
            capture_output=True,
            check=False,
            timeout=PATIENCE_S,
            env={**clean_environment(), "HERMES_SESSIONS_HOME": str(home), **(env or {})},
            start_new_session=True,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture(scope="session")
def by_tool():
    """Return a function that gives what the tool ``session_search`` answers a model of the operator's."""

    def by_tool(app, **arguments):
        history = SearchingHistory(app.store, lambda: app.search_index, operator(), LineageId("none"))
        return json.loads(asyncio.run(session_search.call(arguments, SimpleNamespace(history=history))))

    return by_tool


@pytest.fixture
def spawn(home):
    """Return a function that starts the script on a terminal of its own."""
    pexpect = pytest.importorskip("pexpect")
    children = []

    def run(*arguments, columns=80):
        child = pexpect.spawn(
            sys.executable,
            ["-m", "hermes_core.main", *arguments],
            encoding="utf-8",
            dimensions=(24, columns),
            timeout=PATIENCE_S,
            env={**clean_environment(), "HERMES_SESSIONS_HOME": str(home), "TERM": "xterm-256color"},
        )
        children.append(child)
        return child

    yield run
    for child in children:
        child.close(force=True)


@pytest.fixture
def sql(home):
    """Return a function that runs one statement on the database file, as a stranger with SQLite would."""

    def run(statement, *bindings):
        connection = apsw.Connection(str(home / "state.db"))
        connection.set_busy_timeout(10_000)
        try:
            return connection.execute(statement, bindings).fetchall()
        finally:
            connection.close()

    return run


@pytest.fixture
def site(tmp_path):
    """Return a function that leaves a plugin in a folder, as an installer would; ``site.folder`` is for PYTHONPATH."""
    folder = tmp_path / "site"
    folder.mkdir()

    def add(name, code, *, entry=None):
        module = f"x_{name}"
        (folder / f"{module}.py").write_text(f"from hermes_hookspecs.markers import hookimpl\n{code}", encoding="utf-8")
        info = folder / f"x_{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: x-{name}\nVersion: 1.0\n", encoding="utf-8")
        (info / "entry_points.txt").write_text(
            f"[hermes.plugins.v1]\n{name} = {entry or f'{module}:Plugin'}\n", encoding="utf-8"
        )

    add.folder = folder
    add.env = {"PYTHONPATH": str(folder)}
    return add


class Chats:
    """The chats of a home as the cases use them: texts come in, the real worker answers, a platform records."""

    def __init__(self, sender, source):
        self.sender, self._source = sender, source

    def event(self, app, text, identity, source=None):
        return MessageEvent(
            source=source or self._source, text=text, identities=(identity,), received_at=app.clock.now()
        )

    def accept(self, app, *texts, state=()):
        """Accept texts of one chat, each its own identity, and return the results."""
        return asyncio.run(app.accept([self.event(app, text, text) for text in texts], state=state))

    def served(self):
        return [ServedEntrance(entrance=Entrance("feishu"), sender=self.sender)]

    def work(self, app, agent="echo"):
        """Serve until nothing is left to do; return what the platform has received by then."""

        async def scene():
            async with asyncio.timeout(PATIENCE_S):
                await app.work(self.served(), agent=agent, until_idle=True)

        asyncio.run(scene())
        return self.sender.texts()


@pytest.fixture
def chats(tmp_path, alice):
    return Chats(RecordingSender(tmp_path / "record"), alice)


@pytest.fixture
def open_quick(open_home):
    """Return a function that opens the home with texts that are answered one by one, and quick commits."""

    def open_(settings=None, **options):
        chosen = {"inbox.batch_window_s": 0.0, "storage.durability": "normal"} | (settings or {})
        return open_home(overrides=chosen, environ={}, **options)

    return open_
