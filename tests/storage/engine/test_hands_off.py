from __future__ import annotations

import os
import shutil
import time

import apsw
import pytest

from hermes_core.storage.sqlite.checkpoint import Checkpointer
from hermes_core.storage.sqlite.database import Database
from hermes_core.storage.sqlite.wal import WalFile
from hermes_hookspecs.errors import StoreStopped


def note(text: str):
    return lambda transaction: transaction.insert("INSERT INTO notes(text) VALUES (?)", (text,))


def test_a_log_that_was_removed_stops_the_writer_before_it_loses_rows(database):
    database.apply(note("before"))
    os.remove(database.path + "-wal")

    with pytest.raises(StoreStopped, match=r"-wal was removed"):
        database.apply(note("after"))
    with pytest.raises(StoreStopped, match=r"-wal was removed"):
        database.submit(note("later"))


def test_a_log_that_was_replaced_is_not_written_and_not_removed(path, database, tmp_path):
    database.apply(note("before"))
    other = str(tmp_path / "other-wal")
    shutil.copy(path + "-wal", other)
    os.replace(other, path + "-wal")

    with pytest.raises(StoreStopped, match="replaced"):
        database.apply(note("after"))
    database.close()

    assert os.path.exists(path + "-wal")


def test_a_database_file_that_was_replaced_stops_the_writer(path, database, tmp_path):
    database.apply(note("before"))
    other = str(tmp_path / "other.db")
    shutil.copy(path, other)
    os.replace(other, path)

    with pytest.raises(StoreStopped, match="replaced"):
        database.apply(note("after"))


def test_a_changed_schema_version_stops_the_writer(database):
    database.apply(note("before"))
    other = apsw.Connection(database.path)
    other.execute("PRAGMA user_version = 9").fetchall()

    with pytest.raises(StoreStopped, match="schema 9"):
        database.apply(note("after"))
    # nothing is left locked by the one who stopped
    other.execute("BEGIN IMMEDIATE; ROLLBACK").fetchall()
    other.close()


def test_the_last_to_close_leaves_one_file_and_the_others_leave_the_log_alone(path, schema, database):
    database.apply(note("a"))
    second = Database.open(path, schema=schema)
    second.apply(note("b"))

    second.close()
    assert os.path.exists(path + "-wal")
    database.apply(note("c"))
    database.close()

    assert not os.path.exists(path + "-wal")
    reopened = Database.open(path, schema=schema)
    with reopened.read() as reader:
        assert reader.one("SELECT group_concat(text, '') FROM notes") == ("abc",)
    reopened.close()


def test_the_log_is_emptied_while_writing_goes_on(path, schema):
    database = Database.open(path, schema=schema)
    database._checkpointer.close(1)
    database._checkpointer = Checkpointer(path, limit_pages=32)
    database._writer._grown = database._checkpointer.notice
    deadline = time.monotonic() + 20
    seen = [0]

    # until the log has been started anew three times
    restarts = 0
    while restarts < 3:
        assert time.monotonic() < deadline
        database.apply(note(f"{time.monotonic_ns()} {'x' * 3000}"))
        pages = database._writer._committer.wal_pages
        restarts += pages < seen[-1]
        seen.append(pages)

    assert max(seen) < 1000
    assert database.integrity() == []
    database.close()


def test_a_reader_that_stays_keeps_the_log_but_stops_nobody(path, schema, database):
    database.apply(note("a"))
    with database.read() as reader:
        reader.one("SELECT 1 FROM notes")
        database.apply(note("b"))
        database.checkpoint()
        database.apply(note("c"))
        assert reader.one("SELECT count(*) FROM notes") == (1,)

    database.checkpoint()
    assert database.apply(note("d")) == 4


WRITER = """
import sys
db = Database.open(sys.argv[1], schema=SCHEMA)
number = 0
print("ready", flush=True)
while True:
    number += 1
    db.apply(note(f"steady-{number}"))
    if number % 50 == 0:
        print(number, flush=True)
"""

VISITOR = """
import os, signal, sys
name, kind = sys.argv[2], sys.argv[3]
db = Database.open(sys.argv[1], schema=SCHEMA)
if kind == "reads":
    with db.read() as reader:
        reader.one("SELECT count(*) FROM notes")
else:
    for number in range(3):
        db.apply(note(f"{name}-{number}"))
        print(f"{name}-{number}", flush=True)
if kind == "killed":
    for number in range(3, 2000):
        db.submit(note(f"{name}-{number}"))
    os.kill(os.getpid(), signal.SIGKILL)
db.close()
"""


def test_many_short_visitors_and_kills_beside_a_steady_writer_lose_nothing(path, start, schema):
    steady = start(WRITER, path)
    assert steady.stdout.readline() == "ready\n"
    acknowledged: set[str] = set()
    for batch in range(14):
        visitors = [start(VISITOR, path, f"visitor-{batch}-{kind}", kind) for kind in ("reads", "writes", "killed")]
        for visitor in visitors:
            out, err = visitor.communicate(timeout=60)
            assert visitor.returncode in {0, -9}, err
            acknowledged.update(out.split())
    steady.kill()
    out, err = steady.communicate(timeout=30)
    assert err == ""
    last = int(out.split()[-1])
    acknowledged.update(f"steady-{number}" for number in range(1, last + 1))

    database = Database.open(path, schema=schema)
    with database.read() as reader:
        stored = [row[0] for row in reader.all("SELECT text FROM notes")]
        assert reader.one("PRAGMA journal_mode") == ("wal",)
    assert len(acknowledged) > 14 * 6
    assert acknowledged <= set(stored)
    assert database.integrity() == []
    database.close()


def test_files_are_looked_at_anew_once_their_folder_has_changed(path, database, tmp_path):
    database.apply(note("before"))
    later = [time.time() + 60]
    files = WalFile(path, clock=lambda: later[0])
    looks = []
    look_at = os.stat

    def counting(name):
        looks.append(str(name))
        return look_at(name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "stat", counting)
        assert files.trouble() is None
        looks.clear()
        assert files.trouble() is None

        assert looks == [os.path.dirname(path)]

    # the folder's times are trusted by now: what happens in it has to change them
    other = str(tmp_path / "other-wal")
    shutil.copy(path + "-wal", other)
    os.replace(other, path + "-wal")
    assert "replaced" in (files.trouble() or "")
    files.close()


def test_a_folder_that_has_just_changed_is_not_trusted(path, database, tmp_path):
    database.apply(note("before"))
    files = WalFile(path, clock=lambda: os.stat(os.path.dirname(path)).st_ctime + 0.01)

    assert files.trouble() is None
    assert files._settled is None
    files.close()
