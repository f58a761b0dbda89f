from __future__ import annotations

import threading

import apsw
import pytest

from hermes_core.storage.sqlite.database import Database
from hermes_hookspecs.errors import StorageError, StoreBusy, StoreDamaged, StoreStopped


def note(text: str):
    return lambda transaction: transaction.insert("INSERT INTO notes(text) VALUES (?)", (text,))


def test_all_statements_of_a_read_see_one_state(database):
    database.apply(note("first"))

    with database.read() as reader:
        before = reader.one("SELECT count(*) FROM notes")
        database.apply(note("meanwhile"))
        after = reader.one("SELECT count(*) FROM notes")

    assert before == after == (1,)
    with database.read() as reader:
        assert reader.one("SELECT count(*) FROM notes") == (2,)


def test_one_gives_the_first_row_or_none(database):
    with database.read() as reader:
        assert reader.one("SELECT 1 UNION SELECT 2") == (1,)
        assert reader.one("SELECT 1 WHERE 0") is None
        assert reader.one("SELECT :a", {"a": b"x"}) == (b"x",)


def test_reads_cannot_write(database):
    with pytest.raises(StorageError), database.read() as reader:
        reader.all("INSERT INTO notes(text) VALUES ('sneaked')")

    with database.read() as reader:
        assert reader.all("SELECT * FROM notes") == []


def test_an_error_inside_a_read_is_of_our_tree_and_the_reader_is_used_again(path, schema):
    database = Database.open(path, schema=schema, readers=1)
    for _ in range(3):
        with pytest.raises(StorageError), database.read() as reader:
            reader.all("SELECT nonsense")
        with pytest.raises(KeyError), database.read() as reader:
            raise KeyError

    with database.read() as reader:
        assert reader.one("SELECT 1") == (1,)
    database.close()


def test_reads_beyond_the_pool_wait_for_one_to_end(path, schema):
    database = Database.open(path, schema=schema, readers=2, busy_timeout_s=10)
    inside, go, done = threading.Barrier(3), threading.Event(), []

    def read() -> None:
        with database.read() as reader:
            inside.wait(10)
            go.wait(10)
            done.append(reader.one("SELECT 1"))

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    inside.wait(10)
    waiting = threading.Thread(target=lambda: done.append(database.read().__enter__().one("SELECT 3")))
    waiting.start()

    assert done == []
    go.set()
    for thread in (*threads, waiting):
        thread.join(10)

    assert sorted(done) == [(1,), (1,), (3,)]
    assert len(database._readers._known) == 2
    database.close()


def test_a_read_that_waits_too_long_says_so(path, schema):
    database = Database.open(path, schema=schema, readers=1, busy_timeout_s=0.1)

    with database.read(), pytest.raises(StoreBusy, match="readers were busy"):
        database.read().__enter__()
    database.close()


def test_a_read_in_progress_ends_well_when_the_store_is_closed(database):
    with database.read() as reader:
        database.close()
        assert reader.one("SELECT 1") == (1,)

    with pytest.raises(StoreStopped):
        database.read().__enter__()


def test_data_version_changes_with_every_commit_of_anybody(database, finish):
    first = database.data_version()
    assert database.data_version() == first

    database.apply(note("own"))
    second = database.data_version()
    finish(
        "import sys; db = Database.open(sys.argv[1], schema=SCHEMA); db.apply(note('theirs')); db.close()",
        database.path,
    )

    assert second != first
    assert database.data_version() != second


@pytest.fixture
def broken_text(database):
    connection = apsw.Connection(database.path)
    connection.execute(
        """
        INSERT INTO notes(text) VALUES ('good 好'), (CAST(x'e4bda0e5a5' AS TEXT)), (CAST(x'00ff41' AS TEXT)), ('last')
        """
    ).fetchall()
    connection.close()
    return database


def test_text_that_is_not_utf8_is_shown_with_replacements_and_breaks_no_query(broken_text):
    with broken_text.read() as reader:
        rows = reader.all("SELECT id, text, id, x'ff', 1.5, NULL FROM notes WHERE id < ? ORDER BY id DESC;", (4,))
        named = reader.one("SELECT text FROM notes WHERE id = :id -- one\n", {"id": 2})
        common = reader.all("WITH n AS (SELECT text AS t FROM notes) SELECT t, t FROM n LIMIT 3")

    assert rows == [
        (3, "\0\ufffdA", 3, b"\xff", 1.5, None),
        (2, "你\ufffd", 2, b"\xff", 1.5, None),
        (1, "good 好", 1, b"\xff", 1.5, None),
    ]
    assert named == ("你\ufffd",)
    assert len(common) == 3


def test_operations_read_such_text_too(broken_text):
    assert broken_text.apply(lambda t: t.all("SELECT text FROM notes ORDER BY id"))[1] == ("你\ufffd",)


def test_a_writing_statement_that_returns_such_text_is_not_run_twice(broken_text):
    with pytest.raises(StoreDamaged, match="UTF-8"):
        broken_text.apply(lambda t: t.all("UPDATE notes SET id = id + 100 RETURNING text"))

    with broken_text.read() as reader:
        assert reader.all("SELECT id FROM notes ORDER BY id") == [(1,), (2,), (3,), (4,)]


def test_a_text_of_ten_megabytes_and_one_with_zero_bytes_come_back_whole(database):
    big, odd = "汉" * 3_500_000, "a\0b\u202e\x1b[31m"

    database.apply(note(big))
    database.apply(note(odd))

    with database.read() as reader:
        assert reader.all("SELECT text FROM notes ORDER BY id") == [(big,), (odd,)]
