"""A fault in the middle of a group of eight operations: it is the fifth one's alone, and the others are stored."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import resource, signal, sys, threading
from hermes_core.storage.sqlite.database import Database
from hermes_core.storage.sqlite.migrate import Migration, Schema
from hermes_hookspecs.errors import StorageError

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path, kind = sys.argv[1:3]
schema = Schema(application_id=0x48535465, migrations=[
    Migration(1, "CREATE TABLE notes(id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL UNIQUE)")
])
database = Database.open(path, schema=schema)
database.apply(lambda t: t.run("INSERT INTO notes(text) VALUES ('first')"))
committer = database._writer._committer
connection, _, _ = committer._parts
raw = connection.raw
ADD = "INSERT INTO notes(text) VALUES (?)"
runs = []

def trusted(sql):
    connection._trusted = True
    try:
        return raw.execute(sql).fetchall()
    finally:
        connection._trusted = False

def good(number):
    return lambda t: (runs.append(number), t.insert(ADD, (str(number),)))[1]

def bad(t):
    runs.append("bad")
    t.run(ADD, ("half of it",))
    if kind == "full":
        pages = trusted("PRAGMA page_count")[0][0]
        trusted(f"PRAGMA max_page_count = {pages + 2}")
        try:
            t.run(ADD, ("x" * 200_000,))
        finally:
            trusted("PRAGMA max_page_count = 1000000")
    elif kind == "interrupt":
        raw.set_progress_handler(lambda: True, 1)
        try:
            t.run("INSERT INTO notes(text) SELECT text || ' again' FROM notes")
        finally:
            raw.set_progress_handler(None)
    elif kind == "read-only":
        trusted("PRAGMA query_only = 1")
        try:
            t.run(ADD, ("more",))
        finally:
            trusted("PRAGMA query_only = 0")
    elif kind == "io":
        # A small cache makes SQLite write in the middle of the operation, where the file may not grow.
        trusted("PRAGMA cache_size = 5")
        trusted("PRAGMA cache_spill = 1")
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limit[1]))
        try:
            for n in range(60):
                t.run(ADD, (f"{n} " + "x" * 4000,))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limit)
            trusted("PRAGMA cache_size = -16384")

inside, go = threading.Event(), threading.Event()
database.submit(lambda t: (inside.set(), go.wait(10)))
inside.wait(10)
futures = [database.submit(bad if n == 4 else good(n)) for n in range(8)]
go.set()
errors = [future.exception(20) for future in futures]
print([type(error).__name__ if error else "" for error in errors])
print(isinstance(errors[4], StorageError), "\\n" in str(errors[4]))
with database.read() as reader:
    print([text for (text,) in reader.all("SELECT text FROM notes ORDER BY id")])
print(runs.count("bad"), database.apply(good("after")) > 0, database.integrity())
database.close()
"""


@pytest.mark.parametrize(
    ("kind", "error"), [("read-only", "StorageError"), ("full", "StoreFull"), ("io", ""), ("interrupt", "StorageError")]
)
def test_a_fault_in_a_group_of_eight_fails_one_operation_and_no_other(tmp_path, kind, error):
    pytest.importorskip("resource", reason="needs limits on the size of files")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "home" / "state.db"), kind],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )

    assert done.returncode == 0, done.stderr
    outcomes, ours, texts, rest = done.stdout.splitlines()
    outcomes = eval(outcomes)
    assert [outcome for n, outcome in enumerate(outcomes) if n != 4] == [""] * 7
    assert outcomes[4]
    assert outcomes[4] == (error or outcomes[4])
    assert ours == "True False"
    assert eval(texts) == ["first", "0", "1", "2", "3", "5", "6", "7"]
    assert rest.endswith("True []")
