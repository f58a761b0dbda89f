"""A profile on disk whose rows a stranger with SQLite may hurt, and other processes that come, write and die."""

from __future__ import annotations

import os
import subprocess
import sys
from hashlib import sha256

import apsw
import pytest

from hermes_core import open_app
from hermes_hookspecs.source import SessionSource

PATIENCE_S = 60
PRELUDE = """
import sys
from hermes_core import open_app
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import SessionSource

ALL = operator()
HOME = sys.argv[1]
ALICE = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_alice")
FAST = {"storage.durability": "normal"}


def say(word):
    print(word, flush=True)


def hear():
    return sys.stdin.readline().strip()


"""


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


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def open_home(home):
    """Return a function that opens the home once more in this process; all are closed when the test ends."""
    apps = []

    def open_(settings=None, **options):
        chosen = {"storage.durability": "normal", "agent.runner": "echo"} | (settings or {})
        apps.append(open_app(home, plugins=False, environ={}, overrides=chosen, **options))
        return apps[-1]

    yield open_
    for app in apps:
        app.close()


@pytest.fixture
def app(open_home):
    return open_home()


@pytest.fixture
def alice():
    return SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_alice", user_name="小艾")


@pytest.fixture
def bob():
    return SessionSource(platform="feishu", chat_id="oc_2", user_id="ou_bob")


@pytest.fixture
def sql(home):
    """Return a function that runs a statement on the file as a stranger with SQLite would, without foreign keys."""

    def run(statement, *bindings):
        connection = apsw.Connection(str(home / "state.db"))
        connection.set_busy_timeout(10_000)
        try:
            connection.execute("PRAGMA foreign_keys = OFF").fetchall()
            return connection.execute(statement, bindings).fetchall()
        finally:
            connection.close()

    return run


@pytest.fixture
def texts(sql):
    """Return a function that gives a sum over every text of every message, for the rows that are there now."""

    def read(below=None):
        rows = sql(
            "SELECT id, role, content, sent, tool_calls, tool_call_id, reasoning, attachments, hidden FROM messages"
            " WHERE id <= coalesce(?, id) ORDER BY id",
            below,
        )
        return len(rows), sha256(repr(rows).encode()).hexdigest()

    return read


@pytest.fixture
def start(home):
    """Return a function that starts a Python program behind PRELUDE; what still runs at the end is killed."""
    running = []

    def start(code, *arguments):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HERMES_", "PYTHONPATH"))}
        process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + code, str(home), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**kept, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
        )
        running.append(process)
        return Program(process)

    yield start
    for process in running:
        process.kill()
        process.communicate()
