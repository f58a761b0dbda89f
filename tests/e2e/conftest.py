"""The installed script ``hermes`` as people run it: processes, pipes, terminals, full disks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest

PATIENCE_S = 60


class Ran(NamedTuple):
    """What one run left behind."""

    status: int
    out: str
    err: str


def program():
    script = Path(sys.executable).with_name("hermes")
    return [str(script)] if script.exists() else [sys.executable, "-m", "hermes_core.main"]


class Hermes:
    """The script over one home.

    :param home: its home. running: every process it has started, for the end of the test.
    """

    def __init__(self, home, running):
        self.home = home
        self._running = running

    def environment(self, more=None):
        unwanted = ("HERMES_", "PYTHONPATH", "TMUX", "STY", "COLUMNS", "WT_SESSION", "TERM_SESSION_ID")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
        return {**kept, "LC_ALL": "C.UTF-8", "HERMES_SESSIONS_HOME": str(self.home), **(more or {})}

    def start(self, *arguments, env=None, **more):
        """Start it and return the process; its streams are pipes of bytes, it has no terminal."""
        options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more}
        process = subprocess.Popen(
            [*program(), *arguments], env=self.environment(env), start_new_session=True, **options
        )
        self._running.append(process)
        return process

    def __call__(self, *arguments, stdin="", env=None, **more):
        """Run it to its end; what it wrote must be UTF-8."""
        process = self.start(*arguments, env=env, **more)
        out, err = process.communicate(stdin if isinstance(stdin, bytes) else stdin.encode(), timeout=PATIENCE_S)
        return Ran(process.returncode, (out or b"").decode(), (err or b"").decode())

    def json(self, *arguments, **more):
        """Run it to a good end and return what its ``--json`` says."""
        ran = self(*arguments, "--json", **more)
        assert ran.status == 0, ran.err
        return json.loads(ran.out)

    def exported(self):
        """Return every conversation as the export has it."""
        ran = self("sessions", "export", "-")
        assert ran.status == 0, ran.err
        return [json.loads(line) for line in ran.out.splitlines()]


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


@pytest.fixture
def running():
    processes = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def hermes(home, running):
    return Hermes(home, running)


@pytest.fixture
def is_one_line():
    """Return a check that a run told what is wrong in one line, and nothing else."""

    def check(ran, status, *words):
        assert ran.status == status, ran.err
        assert ran.out == ""
        assert ran.err.startswith("hermes: ")
        assert ran.err.count("\n") == 1, ran.err
        assert "Traceback" not in ran.err
        assert "this should not happen" not in ran.err
        for word in words:
            assert word in ran.err

    return check


@pytest.fixture
def hermes_at(running):
    """Return a function that gives the script over another home."""
    return lambda folder: Hermes(folder, running)


@pytest.fixture
def python(hermes, running):
    """Return a function that starts a Python program that is spoken with line by line."""

    def start(code, *arguments):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(hermes.home), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=hermes.environment({"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}),
        )
        running.append(process)
        return process

    return start


@pytest.fixture
def spawn(hermes):
    """Return a function that starts the script on a terminal of its own."""
    pexpect = pytest.importorskip("pexpect")
    children = []

    def run(*arguments, columns=100, env=None):
        command, *first = program()
        child = pexpect.spawn(
            command,
            [*first, *arguments],
            encoding="utf-8",
            dimensions=(30, columns),
            timeout=30,
            env=hermes.environment({"TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", **(env or {})}),
        )
        children.append(child)
        return child

    yield run
    for child in children:
        child.close(force=True)


@pytest.fixture
def sql(home):
    """Return a function that runs statements on the database file, as a stranger with SQLite would."""

    def run(statements, *, path=None):
        connection = apsw.Connection(str(path or home / "state.db"))
        connection.set_busy_timeout(10_000)
        try:
            return connection.execute(statements).fetchall()
        finally:
            connection.close()

    return run


@pytest.fixture
def site(tmp_path):
    """Return a function that leaves a plugin in a folder, as an installer would, and one that takes it away again."""
    folder = tmp_path / "site"
    folder.mkdir()

    def add(name, code):
        module = f"x_{name.replace('-', '_')}"
        (folder / f"{module}.py").write_text(f"from hermes_hookspecs.markers import hookimpl\n{code}", encoding="utf-8")
        info = folder / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: x-{name}\nVersion: 1.0\n", encoding="utf-8")
        (info / "entry_points.txt").write_text(f"[hermes.plugins.v1]\n{name} = {module}:Plugin\n", encoding="utf-8")

    add.env = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    return add
