from __future__ import annotations

import apsw
import pytest

from hermes_core.storage.sqlite.database import Database
from hermes_core.storage.sqlite.migrate import Migration, Schema
from hermes_hookspecs.errors import StorageError, StoreBusy, StoreDamaged, StoreRefused, StoreStopped

STEPS = [
    Migration(1, "CREATE TABLE notes(id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT)"),
    Migration(2, "ALTER TABLE notes ADD COLUMN size INTEGER NOT NULL DEFAULT 7; CREATE INDEX by_size ON notes(size)"),
    Migration(3, "CREATE TABLE tags(note INTEGER NOT NULL REFERENCES notes(id) ON DELETE CASCADE, tag TEXT)"),
    Migration(
        4,
        """
        CREATE TABLE new_notes(
            id INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT NOT NULL, size INTEGER NOT NULL DEFAULT 7
        );
        INSERT INTO new_notes(id, text, size) SELECT id, coalesce(text, ''), size FROM notes;
        DROP TABLE notes;
        ALTER TABLE new_notes RENAME TO notes;
        """,
        additive=False,
    ),
]


def upto(version: int) -> Schema:
    return Schema(application_id=5, migrations=STEPS[:version])


def structure(path: str) -> tuple[object, ...]:
    connection = apsw.Connection(path)
    try:
        return (
            connection.execute("PRAGMA user_version").fetchall(),
            connection.execute("SELECT name, sql FROM sqlite_schema ORDER BY name").fetchall(),
        )
    finally:
        connection.close()


def open_and_close(path: str, schema: Schema, **options: float) -> None:
    Database.open(path, schema=schema, **options).close()


def alter(path: str, sql: str) -> None:
    connection = apsw.Connection(path)
    connection.execute(sql).fetchall()
    connection.close()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_older_schema_is_brought_up_with_its_rows(path, version):
    database = Database.open(path, schema=upto(version))
    database.apply(lambda t: t.run("INSERT INTO notes(text) VALUES ('old')"))
    if version == 3:
        database.apply(lambda t: t.run("INSERT INTO tags VALUES (1, 'kept')"))
    database.close()

    database = Database.open(path, schema=upto(4))

    with database.read() as reader:
        assert reader.all("SELECT id, text, size FROM notes") == [(1, "old", 7)]
        # rebuilding a table must not delete what refers to it
        assert reader.all("SELECT tag FROM tags") == ([("kept",)] if version == 3 else [])
    database.close()


def test_opening_again_changes_nothing(path):
    open_and_close(path, upto(4))
    with open(path, "rb") as file:
        before = file.read()

    open_and_close(path, upto(4))

    with open(path, "rb") as file:
        assert file.read() == before


def test_the_first_command_after_an_upgrade_may_be_one_that_only_reads(path):
    open_and_close(path, upto(1))

    database = Database.open(path, schema=upto(3))

    with database.read() as reader:
        assert reader.all("SELECT size FROM notes") == []
    database.close()


def test_a_step_that_fails_leaves_the_file_at_the_step_before(path):
    open_and_close(path, upto(2))
    before = structure(path)
    broken = Schema(application_id=5, migrations=[*STEPS[:2], Migration(3, "CREATE TABLE a(x); SELECT nonsense")])

    with pytest.raises(StorageError, match="schema"):
        Database.open(path, schema=broken)

    assert structure(path) == before
    open_and_close(path, upto(3))


def test_a_program_killed_inside_a_step_leaves_the_file_at_the_step_before(path, start):
    program = start(
        """
import os, signal, sys
import hermes_core.storage.sqlite.migrate as migrate
real = migrate.number
schema = Schema(application_id=5, migrations=[Migration(1, "CREATE TABLE one(x)"), Migration(2, "CREATE TABLE two(x)")])
def die(connection, path, schema, step):
    connection.execute(step.sql).fetchall()
    if step.version == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    connection.execute("PRAGMA application_id = 5; PRAGMA user_version = 1").fetchall()
migrate._take_step = die
Database.open(sys.argv[1], schema=schema)
""",
        path,
    )
    program.communicate(timeout=30)
    assert program.returncode == -9

    schema = Schema(
        application_id=5, migrations=[Migration(1, "CREATE TABLE one(x)"), Migration(2, "CREATE TABLE two(x)")]
    )
    assert structure(path)[0] == [(1,)]
    open_and_close(path, schema)
    assert structure(path)[0] == [(2,)]


def test_a_column_that_a_renumbered_migration_left_out_is_added(path):
    open_and_close(path, Schema(application_id=5, migrations=[STEPS[0], Migration(2, "CREATE TABLE other(x)")]))
    alter(path, "INSERT INTO notes(text) VALUES ('kept')")

    database = Database.open(path, schema=upto(2))

    with database.read() as reader:
        assert reader.all("SELECT text, size FROM notes") == [("kept", 7)]
    database.close()
    before = structure(path)
    open_and_close(path, upto(2))
    assert structure(path) == before


def test_a_missing_column_that_cannot_be_added_is_named(path):
    open_and_close(path, upto(1))
    wanted = Schema(
        application_id=5, migrations=[Migration(1, "CREATE TABLE notes(id INTEGER PRIMARY KEY, must TEXT NOT NULL)")]
    )

    with pytest.raises(StoreDamaged, match="notes lacks its column must"):
        Database.open(path, schema=wanted)


def test_a_newer_file_is_refused_unchanged(path):
    open_and_close(path, upto(3))
    before = structure(path)

    with pytest.raises(StoreRefused, match="newer version"):
        Database.open(path, schema=upto(2))

    assert structure(path) == before


def test_an_older_program_stops_writing_when_a_newer_one_has_migrated(path):
    older = Database.open(path, schema=upto(1))
    older.apply(lambda t: t.run("INSERT INTO notes(text) VALUES ('before')"))

    newer = Database.open(path, schema=upto(2))

    with pytest.raises(StoreStopped, match="schema 2"):
        older.apply(lambda t: t.run("INSERT INTO notes(text) VALUES ('after')"))
    with older.read() as reader:
        assert reader.all("SELECT text FROM notes") == [("before",)]
    newer.apply(lambda t: t.run("INSERT INTO notes(text) VALUES ('new')"))
    older.close()
    newer.close()


def test_a_step_that_is_not_additive_waits_until_no_older_program_has_it_open(path, start):
    open_and_close(path, upto(3))
    older = start(
        """
import sys
from hermes_core.storage.sqlite.gate import OpenMark
import time
mark = OpenMark(sys.argv[1])
assert mark.share_until(time.monotonic() + 5)
print("open", flush=True)
sys.stdin.readline()
""",
        path,
    )
    assert older.stdout.readline() == "open\n"

    with pytest.raises(StoreBusy, match="alone"):
        Database.open(path, schema=upto(4), busy_timeout_s=0.2)

    assert structure(path)[0] == [(3,)]
    older.stdin.write("\n")
    older.stdin.flush()
    open_and_close(path, upto(4))
    assert structure(path)[0] == [(4,)]


def test_a_journal_mode_that_was_switched_off_is_switched_on_again(path):
    open_and_close(path, upto(1))
    alter(path, "PRAGMA journal_mode = DELETE")

    open_and_close(path, upto(1))

    connection = apsw.Connection(path)
    assert connection.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
    connection.close()


def test_the_gate_held_too_long_at_opening_is_an_error_that_names_the_holder(path, start):
    open_and_close(path, upto(1))
    holder = start(
        """
import sys
from hermes_core.storage.sqlite.gate import Gate
gate = Gate(sys.argv[1])
gate.acquire()
print("held", flush=True)
sys.stdin.readline()
""",
        path,
    )
    assert holder.stdout.readline() == "held\n"

    with pytest.raises(StoreBusy, match=f"process {holder.pid}"):
        Database.open(path, schema=upto(2), busy_timeout_s=0.2)
    # a file that needs nothing does not go through the gate
    open_and_close(path, upto(1), busy_timeout_s=0.2)


def test_migrations_are_numbered_without_a_gap():
    with pytest.raises(ValueError, match="numbered"):
        Schema(application_id=5, migrations=[STEPS[0], STEPS[2]])
