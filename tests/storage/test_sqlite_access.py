"""Tables of plugins in the store's file, and the janitor that looks after them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import apsw
import pytest

from hermes_core.storage.memory import MemoryBackend
from hermes_core.storage.sqlite.backend import SqliteBackend
from hermes_core.storage.sqlite.database import Database
from hermes_core.storage.sqlite.janitor import Janitor, janitor_file
from hermes_hookspecs.errors import HermesError, StorageError, StoreDamaged, StoreRefused, StoreStopped
from hermes_hookspecs.ports.sqlite import sqlite_access
from hermes_hookspecs.ports.store import StoreOptions
from hermes_hookspecs.principal import Principal
from hermes_hookspecs.testing.scene import ALL, Scene, saying

FIRST = "CREATE TABLE notes_texts (id INTEGER PRIMARY KEY, text TEXT NOT NULL)"
SECOND = "CREATE TABLE notes_marks (id INTEGER PRIMARY KEY); INSERT INTO notes_marks VALUES (7)"
ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c"
SOON_S = 20


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.db"


@pytest.fixture
def open_store(path):
    opened = []

    def open_one():
        opened.append(SqliteBackend().open(StoreOptions(path=path)))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store):
    return open_store()


@pytest.fixture
def access(store):
    return sqlite_access(store)


def _tables(access):
    with access.read() as reader:
        return {row[0] for row in reader.all("SELECT name FROM sqlite_schema WHERE type = 'table'")}


def _fill(store):
    scene = Scene(store)
    entry = scene.enter()
    begun = scene.begin(entry.lineage_id, scene.accept("hello", entry.session_key, lineage_id=entry.lineage_id))
    scene.append(begun, saying("there"))
    return entry.lineage_id


# ------------------------------------------------------------------ migrations


def test_a_store_that_is_no_file_offers_no_access(tmp_path):
    store = MemoryBackend().open(StoreOptions(path=tmp_path / "unused"))

    assert sqlite_access(store) is None


def test_steps_are_taken_once_and_remembered(access):
    assert access.migrate("notes", (FIRST,)) == 0
    assert access.migrate("notes", (FIRST, SECOND)) == 1
    assert access.migrate("notes", (FIRST, SECOND)) == 2

    assert access.version("notes") == 2
    assert access.plugins() == (("notes", 2),)
    with access.read() as reader:
        assert reader.all("SELECT id FROM notes_marks") == [(7,)]


def test_tables_of_a_newer_plugin_are_refused_and_not_touched(access):
    access.migrate("notes", (FIRST, SECOND))

    with pytest.raises(StoreRefused, match="version 2, this plugin knows 1"):
        access.migrate("notes", (FIRST,))

    assert access.version("notes") == 2
    assert {"notes_texts", "notes_marks"} <= _tables(access)


def test_a_step_that_fails_leaves_nothing(access):
    with pytest.raises(StorageError):
        access.migrate("notes", (f"{FIRST}; INSERT INTO nowhere VALUES (1)",))

    assert access.version("notes") == 0
    assert "notes_texts" not in _tables(access)


@pytest.mark.parametrize("name", ["texts", "notesmore", "messages_fts"])
def test_a_table_with_a_foreign_name_is_refused(access, name):
    with pytest.raises(StorageError, match="its tables begin notes_"):
        access.migrate("notes", (f"CREATE TABLE {name} (id INTEGER PRIMARY KEY)",))

    assert name not in _tables(access)


def test_the_reserved_names_are_for_the_plugin_that_has_them(access):
    access.migrate("fts5", ("CREATE VIRTUAL TABLE messages_fts USING fts5 (text)",))

    assert "messages_fts_data" in _tables(access)


def test_several_processes_may_migrate_at_once(access, open_store):
    accesses = [access, *(sqlite_access(open_store()) for _ in range(3))]
    barrier = threading.Barrier(len(accesses), timeout=SOON_S)
    failed = []

    def migrate(one):
        barrier.wait()
        try:
            one.migrate("notes", (FIRST, SECOND))
        except HermesError as error:
            failed.append(error)

    threads = [threading.Thread(target=migrate, args=(one,)) for one in accesses]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON_S)

    assert failed == []
    assert access.version("notes") == 2


# ------------------------------------------------------------------ steps


def test_a_step_moves_the_watermark_only_from_where_it_was_expected(store, access):
    access.migrate("notes", (FIRST,))
    _fill(store)

    def put(text):
        return lambda writer: writer.run("INSERT INTO notes_texts (text) VALUES (?)", (text,))

    taken = access.advance("notes", put("one"), expected=0, watermark=2)
    again = access.advance("notes", put("two"), expected=0, watermark=2)

    assert (taken, again) == (True, False)
    assert access.watermark("notes") == 2
    with access.read() as reader:
        assert reader.all("SELECT text FROM notes_texts") == [("one",)]


def test_a_step_that_fails_does_not_move_the_watermark(access):
    access.migrate("notes", (FIRST,))

    with pytest.raises(StorageError):
        access.advance("notes", lambda writer: writer.run("INSERT INTO nowhere VALUES (1)"), expected=0, watermark=9)

    assert access.watermark("notes") == 0


def test_a_plugin_that_comes_later_begins_at_the_newest_change(store, access):
    _fill(store)

    access.migrate("notes", (FIRST,))

    with access.read() as reader:
        assert reader.one("SELECT max(id) FROM changes") == (access.watermark("notes"),)
    assert access.watermark("notes") > 0


def test_a_step_cannot_end_the_transaction(access):
    with pytest.raises(StorageError):
        access.apply(lambda writer: writer.run("COMMIT"))


# ------------------------------------------------------------------ reads


def test_a_read_ends_when_its_time_is_over_and_the_connection_stays_good(access):
    with pytest.raises(TimeoutError), access.read(budget_s=0.05) as reader:
        reader.all(ENDLESS)

    with access.read() as reader:
        assert reader.one("SELECT 1") == (1,)


def test_a_long_read_of_a_plugin_keeps_no_transcript_waiting(store, access):
    lineage_id = _fill(store)
    begun, done = threading.Event(), threading.Event()

    def read_long():
        with access.read() as reader:
            reader.one("SELECT 1")
            begun.set()
            done.wait(SOON_S)

    threads = [threading.Thread(target=read_long) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert begun.wait(SOON_S)
    try:
        assert [row.content for row in store.messages(lineage_id, ALL)] == ["hello", "there"]
    finally:
        done.set()
        for thread in threads:
            thread.join(SOON_S)


def test_a_read_sees_one_state(store, access):
    access.migrate("notes", (FIRST,))
    with access.read() as reader:
        before = reader.one("SELECT count(*) FROM messages")
        _fill(store)
        after = reader.one("SELECT count(*) FROM messages")

    assert before == after == (0,)


def test_a_reader_cannot_write(access):
    access.migrate("notes", (FIRST,))

    with pytest.raises(StorageError), access.read() as reader:
        reader.all("INSERT INTO notes_texts (text) VALUES ('x')")


def test_who_may_see_what_is_the_rule_of_the_store(access):
    condition, bindings = access.visible(Principal())

    assert (condition, bindings) == ("FALSE", ())
    assert access.visible(ALL) == ("TRUE", ())


def test_a_closed_store_reads_nothing(store, access):
    store.close()

    with pytest.raises(StoreStopped), access.read():
        raise AssertionError


# ------------------------------------------------------------------ dropping


def test_tables_of_an_absent_plugin_can_be_dropped(access):
    access.migrate("fts5", ("CREATE VIRTUAL TABLE messages_fts USING fts5 (text); CREATE TABLE fts5_x (id)",))
    access.migrate("notes", (FIRST,))

    assert access.drop("fts5")

    assert [name for name in _tables(access) if "fts5" in name or "messages_fts" in name] == []
    assert access.plugins() == (("notes", 1),)
    assert not access.drop("fts5")


@pytest.mark.parametrize("lost", ["DELETE FROM plugin_schema WHERE plugin = 'fts5'", "DROP TABLE plugin_schema"])
def test_tables_that_are_not_registered_any_more_are_dropped_by_their_names(access, lost):
    """Their plugin could not make them anew, and nothing could remove them."""
    make = "CREATE VIRTUAL TABLE messages_fts USING fts5 (text); CREATE TABLE fts5_x (id)"
    access.migrate("fts5", (make,))
    access.migrate("fts5_more", ("CREATE TABLE fts5_more_texts (id)",))
    access.apply(lambda writer: writer.run(lost))

    assert access.drop("fts5")

    if "DELETE" in lost:
        assert "fts5_more_texts" in _tables(access)
    assert access.migrate("fts5", (make,)) == 0
    assert access.version("fts5") == 1


DAMAGES = {
    "settings": "DROP TABLE messages_fts_config",
    "format": "UPDATE messages_fts_config SET v = 99 WHERE k = 'version'",
    "data": "DELETE FROM messages_fts_data",
    "segments": "DROP TABLE messages_fts_idx",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_tables_are_dropped_too(store, access, path, damage):
    lineage_id = _fill(store)
    access.migrate("fts5", ("CREATE VIRTUAL TABLE messages_fts USING fts5 (text)",))
    access.apply(lambda writer: writer.run("INSERT INTO messages_fts VALUES ('hello')"))
    breaker = apsw.Connection(str(path))
    breaker.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    breaker.execute(DAMAGES[damage])
    breaker.close()

    assert access.drop("fts5")
    access.migrate("fts5", ("CREATE VIRTUAL TABLE messages_fts USING fts5 (text)",))

    with access.read() as reader:
        assert reader.all("SELECT * FROM messages_fts WHERE messages_fts MATCH 'hello'") == []
    assert store.integrity() == []
    assert len(store.messages(lineage_id, ALL)) == 2


def test_a_damaged_table_is_told_as_such(access, path):
    access.migrate("fts5", ("CREATE VIRTUAL TABLE messages_fts USING fts5 (text)",))
    breaker = apsw.Connection(str(path))
    breaker.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    breaker.execute("DELETE FROM messages_fts_data")
    breaker.close()

    with pytest.raises(StoreDamaged), access.read() as reader:
        reader.all("SELECT * FROM messages_fts WHERE messages_fts MATCH 'x'")


MANY = (
    "; ".join(f"CREATE TABLE fts5_t{number} (id INTEGER PRIMARY KEY, text TEXT)" for number in range(9)),
    "CREATE VIRTUAL TABLE messages_fts USING fts5 (text)",
)


@pytest.fixture
def steps(monkeypatch):
    """How many rows each transaction changed; ``steps.most`` transactions are let through."""
    steps = Steps()
    apply = Database.apply

    def counting(database, work, **named):
        if len(steps) >= steps.most:
            raise StoreStopped("killed here")

        def counted(tx):
            before = tx.one("SELECT total_changes()")[0]
            result = work(tx)
            steps.append(tx.one("SELECT total_changes()")[0] - before)
            return result

        return apply(database, counted, **named)

    monkeypatch.setattr(Database, "apply", counting)
    return steps


class Steps(list):
    most = 1 << 30


def test_what_is_dropped_goes_in_small_steps(access, steps):
    access.migrate("fts5", MANY)
    texts = [(number, "hello " * 40) for number in range(2000)]
    access.apply(lambda writer: writer.run_many("INSERT INTO fts5_t3 VALUES (?, ?)", texts))
    access.apply(lambda writer: writer.run_many("INSERT INTO messages_fts (rowid, text) VALUES (?, ?)", texts))
    steps.clear()

    access.drop("fts5")
    while access.clear_dropped(budget_s=0.01):
        continue

    assert _tables(access).isdisjoint({"messages_fts", "fts5_t3"})
    assert not [name for name in _tables(access) if name.startswith("dropped")]
    assert len(steps) > 40
    assert max(steps) <= 120


@pytest.mark.parametrize("most", range(4))
def test_a_drop_that_was_killed_is_gone_on_with(store, access, steps, most):
    lineage_id = _fill(store)
    access.migrate("fts5", MANY)
    steps.most = len(steps) + most
    with pytest.raises(StoreStopped):
        access.drop("fts5")
    steps.most = Steps.most

    assert access.plugins() == (("fts5", 2),)
    assert access.drop("fts5")
    access.migrate("fts5", MANY)

    assert access.plugins() == (("fts5", 2),)
    assert store.integrity() == []
    assert len(store.messages(lineage_id, ALL)) == 2


# ------------------------------------------------------------------ the janitor


def _janitor(store, *chores):
    return Janitor(store.path, store.change_mark, chores)


def test_one_of_several_is_elected_and_the_next_one_when_it_leaves(store):
    first, second = _janitor(store), _janitor(store)

    elected = (first.elect(), second.elect())
    first.close()

    assert elected == (True, False)
    assert second.elect()
    second.close()


HOLDER = """
import sys
from hermes_core.storage.sqlite.database import Database
from hermes_core.storage.sqlite.janitor import Janitor
janitor = Janitor(sys.argv[1], lambda: 0, ())
print(janitor.elect(), flush=True)
sys.stdin.readline()
"""


def test_a_janitor_that_is_killed_makes_room_for_another(store):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, store.path],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
    )  # fmt: skip
    mine = _janitor(store)
    try:
        assert holder.stdout.readline() == "True\n"
        assert not mine.elect()
    finally:
        holder.kill()
        holder.communicate(timeout=SOON_S)

    assert mine.elect()
    mine.close()
    assert os.path.exists(janitor_file(store.path))


def test_the_thread_works_until_nothing_is_left_and_again_when_somebody_commits(store):
    idle, again = threading.Event(), threading.Event()
    left = [3]
    calls = []

    def chore(budget_s):
        calls.append(budget_s)
        left[0] = max(0, left[0] - 1)
        if left[0] == 0:
            (again if idle.is_set() else idle).set()
        return left[0]

    janitor = _janitor(store, chore)
    janitor.start()
    try:
        assert idle.wait(SOON_S)
        _fill(store)
        assert again.wait(SOON_S)
    finally:
        janitor.close()

    assert len(calls) >= 4
    assert not janitor.is_elected


def test_a_chore_that_fails_keeps_no_other_from_being_done(store, caplog):
    done = []

    def broken(_budget_s):
        raise RuntimeError("broken")

    def good(_budget_s):
        done.append(True)
        return 0

    janitor = _janitor(store, broken, good)

    left = [janitor.work_once(), janitor.work_once()]

    assert left == [0, 0]
    assert done == [True, True]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    janitor.close()
