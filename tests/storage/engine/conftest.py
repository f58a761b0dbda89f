from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes_core.storage.sqlite.database import Database
from hermes_core.storage.sqlite.migrate import Migration, Schema

APPLICATION_ID = 0x48535465
SCHEMA_TEXT = """
from hermes_core.storage.sqlite.database import Database
from hermes_core.storage.sqlite.migrate import Migration, Schema
SCHEMA = Schema(application_id=0x48535465, migrations=[Migration(1, '''
    CREATE TABLE notes(id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL UNIQUE);
    CREATE TABLE counters(name TEXT PRIMARY KEY, value INTEGER NOT NULL DEFAULT 0);
''')])
def note(text):
    return lambda t: t.insert("INSERT INTO notes(text) VALUES (?)", (text,))
"""


def steps() -> list[Migration]:
    return [
        Migration(
            1,
            """
            CREATE TABLE notes(id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL UNIQUE);
            CREATE TABLE counters(name TEXT PRIMARY KEY, value INTEGER NOT NULL DEFAULT 0);
            """,
        )
    ]


@pytest.fixture
def schema() -> Schema:
    return Schema(application_id=APPLICATION_ID, migrations=steps())


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "home" / "state.db")


@pytest.fixture
def database(path: str, schema: Schema) -> Iterator[Database]:
    opened = Database.open(path, schema=schema, busy_timeout_s=10)
    yield opened
    opened.close()


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a Python program that knows SCHEMA and note(); it is killed when the test ends."""
    running: list[subprocess.Popen[str]] = []

    def run(code: str, *arguments: str) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
        program = subprocess.Popen(
            [sys.executable, "-c", SCHEMA_TEXT + code, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        running.append(program)
        return program

    yield run
    for program in running:
        program.kill()
        program.communicate()


@pytest.fixture
def finish(start: Start) -> Callable[..., str]:
    """Run such a program to its end and give its output; it must succeed."""

    def run(code: str, *arguments: str) -> str:
        program = start(code, *arguments)
        out, err = program.communicate(timeout=60)
        assert program.returncode == 0, err
        return out

    return run
