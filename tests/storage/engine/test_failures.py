from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import resource
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from hermes_core.storage.sqlite import wal
from hermes_core.storage.sqlite.database import Database
from hermes_hookspecs.errors import StorageError, StoreBusy, StoreDamaged, StoreFull, StoreOutcomeUnknown, StoreStopped

BIG = "x" * 200_000


def note(text: str):
    return lambda transaction: transaction.insert("INSERT INTO notes(text) VALUES (?)", (text,))


def count(database: Database) -> object:
    with database.read() as reader:
        return reader.one("SELECT count(*) FROM notes")[0]


HOLD = """
import sys, apsw
other = apsw.Connection(sys.argv[1])
other.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
other.execute("ROLLBACK")
"""

HOLD_GATE = """
import sys
from hermes_core.storage.sqlite.gate import Gate
gate = Gate(sys.argv[1])
gate.acquire()
print("held", flush=True)
sys.stdin.readline()
"""


def test_a_lock_held_by_another_process_delays_writers_and_fails_nobody(database, start):
    holder = start(HOLD, database.path)
    assert holder.stdout.readline() == "held\n"
    futures = [database.submit(note(str(number))) for number in range(32)]
    timer = threading.Timer(1.5, lambda: (holder.stdin.write("\n"), holder.stdin.flush()))
    timer.start()

    began = time.monotonic()
    ids = {future.result(10) for future in futures}

    assert time.monotonic() - began > 1
    assert len(ids) == 32
    assert count(database) == 32


def test_a_caller_who_gives_up_before_the_lock_is_free_has_written_nothing(database, start):
    database.apply(note("first"))
    holder = start(HOLD, database.path)
    assert holder.stdout.readline() == "held\n"

    with pytest.raises(StoreBusy, match="nothing was written") as caught:
        database.apply(note("impatient"), timeout_s=0.1)
    waiting = database.submit(note("patient"))
    holder.stdin.write("\n")
    holder.stdin.flush()

    assert waiting.result(10) == 2
    assert not caught.value.maybe_written
    assert f"process {holder.pid}" in str(caught.value)
    assert count(database) == 2


def test_a_caller_who_gives_up_inside_the_group_is_told_that_it_may_be_written(database):
    inside, go = threading.Event(), threading.Event()

    def slow(transaction):
        inside.set()
        assert go.wait(10)
        return note("slow")(transaction)

    with pytest.raises(StoreBusy, match="may still be written") as caught:
        database.apply(slow, timeout_s=0.1)
    go.set()
    database.apply(note("next"))

    assert caught.value.maybe_written
    assert count(database) == 2


def test_queued_operations_give_up_when_the_lock_stays_taken(path, schema, start):
    database = Database.open(path, schema=schema, busy_timeout_s=0.3)
    holder = start(HOLD, database.path)
    assert holder.stdout.readline() == "held\n"

    errors = [database.submit(note(str(number))).exception(10) for number in range(3)]

    assert [type(error) for error in errors] == [StoreBusy] * 3
    holder.stdin.write("\n")
    holder.stdin.flush()
    assert database.apply(note("later"), timeout_s=10) == 1
    database.close()


def test_a_stopped_process_inside_the_gate_is_named(database, start):
    database.apply(note("first"))
    holder = start(HOLD_GATE, database.path)
    assert holder.stdout.readline() == "held\n"

    with pytest.raises(StoreBusy, match=f"process {holder.pid}"):
        database.apply(note("waits"), timeout_s=0.1)

    holder.kill()
    assert database.apply(note("free"), timeout_s=10) == 2


def test_futures_and_coroutines_give_up_behind_a_gate_that_never_opens(path, schema, start):
    """The writer's thread is stuck in the gate then; a turn waited for ever, and Ctrl-C with it."""
    database = Database.open(path, schema=schema, busy_timeout_s=0.3)
    database.submit(note("first")).result(10)
    holder = start(HOLD_GATE, database.path)
    assert holder.stdout.readline() == "held\n"

    async def ask() -> list[object]:
        wanted = [database.submit_from_loop(note(f"coroutine {number}")) for number in range(3)]
        return await asyncio.wait_for(asyncio.gather(*wanted, return_exceptions=True), 10)

    future = database.submit(note("future"))
    errors = [*asyncio.run(ask()), future.exception(10), database.submit(note("later future")).exception(10)]

    assert [type(error) for error in errors] == [StoreBusy] * 5
    for error in errors:
        assert f"process {holder.pid}" in str(error)
        assert "nothing was written" in str(error)
    holder.kill()
    assert database.submit(note("free")).result(10) == 2
    assert count(database) == 2
    database.close()


def test_who_waits_behind_a_long_operation_gives_up_and_the_operation_itself_does_not(path, schema):
    database = Database.open(path, schema=schema, busy_timeout_s=0.3)
    inside, go = threading.Event(), threading.Event()
    slow = database.submit(lambda t: (inside.set(), go.wait(10), note("slow")(t))[2])
    assert inside.wait(10)

    waiting = database.submit(note("waiting"))

    assert isinstance(waiting.exception(10), StoreBusy)
    assert not slow.done()
    go.set()
    assert slow.result(10) == 1
    assert count(database) == 1
    database.close()


def test_the_log_that_is_removed_during_a_commit_makes_its_outcome_unknown(path, schema, monkeypatch):
    database = Database.open(path, schema=schema)
    database.apply(note("before"))
    monkeypatch.setattr(wal, "sync_to_disk", lambda descriptor: os.rename(path + "-wal", path + "-taken"))

    with pytest.raises(StoreOutcomeUnknown, match="-wal was removed"):
        database.apply(note("lost"))

    with pytest.raises(StoreStopped, match="removed"):
        database.apply(note("after"))
    database.close()


def test_close_does_not_hang_behind_a_gate_that_never_opens(path, schema, start):
    database = Database.open(path, schema=schema, busy_timeout_s=0.3)
    database.apply(note("first"))
    holder = start(HOLD_GATE, database.path)
    assert holder.stdout.readline() == "held\n"
    stuck = database.submit(note("stuck"))

    began = time.monotonic()
    database.close()

    assert time.monotonic() - began < 5
    holder.kill()
    assert isinstance(stuck.exception(10), StorageError | type(None))


def test_close_does_not_wait_for_the_gate_when_everybody_has_given_up(path, schema, start):
    database = Database.open(path, schema=schema, busy_timeout_s=60)
    database.submit(note("first")).result(10)
    holder = start(HOLD_GATE, database.path)
    assert holder.stdout.readline() == "held\n"
    for _ in range(2):
        with pytest.raises(StoreBusy):
            database.apply(note("given up"), timeout_s=0.1)

    began = time.monotonic()
    database.close()

    assert time.monotonic() - began < 10
    with pytest.raises(StoreStopped):
        database.apply(note("closed"))


def fail_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(wal, "sync_to_disk", fail)


def test_after_a_failed_sync_the_outcome_is_unknown_and_nothing_more_is_written(path, schema, monkeypatch):
    database = Database.open(path, schema=schema)
    database.apply(note("before"))
    inside, go = threading.Event(), threading.Event()
    first = database.submit(lambda t: (inside.set(), go.wait(10)))
    assert inside.wait(10)
    futures = [database.submit(note(str(number))) for number in range(200)]
    fail_sync(monkeypatch)
    go.set()

    errors = [future.exception(10) for future in [first, *futures]]

    assert isinstance(errors[0], StoreOutcomeUnknown)
    assert {type(error) for error in errors[1:]} == {StoreStopped}
    with pytest.raises(StoreStopped, match="sync"):
        database.apply(note("after"))
    assert count(database) == 1
    database.close()
    # what is in the log stays there, to be judged by its checksums when somebody opens it
    assert os.path.exists(path + "-wal")
    monkeypatch.undo()
    reopened = Database.open(path, schema=schema)
    assert reopened.apply(note("after")) == 2
    reopened.close()


def test_an_operation_that_failed_by_itself_keeps_its_own_error_when_the_sync_fails(database, monkeypatch):
    inside, go = threading.Event(), threading.Event()
    database.submit(lambda t: (inside.set(), go.wait(10)))
    assert inside.wait(10)
    good, bad = database.submit(note("a")), database.submit(lambda t: t.run("NOT SQL"))
    synced = []

    def fail_second(descriptor: int) -> None:
        synced.append(descriptor)
        if len(synced) == 2:
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(wal, "sync_to_disk", fail_second)
    go.set()

    assert isinstance(good.exception(10), StoreOutcomeUnknown)
    assert type(bad.exception(10)) is StorageError


def test_durability_normal_leaves_the_sync_out(path, schema, monkeypatch):
    fail_sync(monkeypatch)
    database = Database.open(path, schema=schema, durability="normal")

    assert database.apply(note("a")) == 1
    database.close()


def test_a_full_file_fails_what_does_not_fit_and_nothing_else(database):
    for number in range(20):
        database.apply(note(str(number)))
    raw = database._writer._committer._parts[0].raw
    pages = raw.execute("PRAGMA page_count").fetchall()[0][0]
    raw.execute(f"PRAGMA max_page_count = {pages + 3}").fetchall()
    inside, go = threading.Event(), threading.Event()
    database.submit(lambda t: (inside.set(), go.wait(10)))
    assert inside.wait(10)

    small = [database.submit(note(f"small {number}")) for number in range(5)]
    big = database.submit(note(BIG))
    go.set()

    assert isinstance(big.exception(10), StoreFull)
    assert all(future.exception(10) is None for future in small)
    assert count(database) == 25
    raw.execute("PRAGMA max_page_count = 1000000").fetchall()
    assert database.apply(note(BIG))
    assert database.integrity() == []


def test_an_operation_that_swallows_the_full_disk_cannot_go_on_without_a_transaction(database):
    database.apply(note("first"))
    raw = database._writer._committer._parts[0].raw
    pages = raw.execute("PRAGMA page_count").fetchall()[0][0]
    raw.execute(f"PRAGMA max_page_count = {pages}").fetchall()

    def stubborn(transaction) -> str:
        transaction.run("UPDATE notes SET text = 'changed'")
        try:
            transaction.run("INSERT INTO notes(text) VALUES (?)", (BIG,))
        except apsw.FullError:
            with contextlib.suppress(apsw.FullError):
                transaction.run("UPDATE notes SET text = 'half done'")
        return "fine"

    # SQLite undoes the statement alone where it can; then nothing was lost and the operation may go on.
    outcome = database.submit(stubborn).exception(10)

    with database.read() as reader:
        text = reader.one("SELECT text FROM notes")[0]
    assert (outcome is None and text == "half done") or (isinstance(outcome, StorageError) and text == "first")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[str]:
    point = tmp_path / "small"
    point.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "hermes-test", str(point)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system needs root")
    yield str(point)
    subprocess.run(["umount", "-l", str(point)], check=True)


def test_a_full_disk_loses_nothing_that_was_acknowledged_and_writing_goes_on_when_there_is_space(small_disk, schema):
    ballast = os.path.join(small_disk, "ballast")
    Path(ballast).write_bytes(b"x" * 300_000)
    database = Database.open(os.path.join(small_disk, "state.db"), schema=schema)
    acknowledged = 0
    error = None
    while error is None:
        try:
            database.apply(note(f"{acknowledged} {'x' * 3000}"))
            acknowledged += 1
        except StoreFull as full:
            error = full

    assert "nothing of it was written" in str(error)
    assert acknowledged > 20
    assert count(database) == acknowledged
    assert database.integrity() == []
    os.remove(ballast)
    assert database.apply(note("after")) == acknowledged + 1
    database.close()


def test_a_commit_that_fails_with_an_input_output_error_is_of_unknown_outcome(path, schema, finish):
    if not hasattr(resource, "RLIMIT_FSIZE"):
        pytest.skip("needs a limit on the size of files")
    out = finish(
        """
import os, resource, signal, sys
from hermes_hookspecs.errors import StoreOutcomeUnknown
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
db = Database.open(sys.argv[1], schema=SCHEMA)
db.apply(note("before"))
size = os.stat(sys.argv[1] + "-wal").st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 5000, resource.RLIM_INFINITY))
try:
    db.apply(note("x" * 100000))
except StoreOutcomeUnknown as error:
    print("unknown")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
db.apply(note("after"))
with db.read() as reader:
    print(reader.all("SELECT text FROM notes ORDER BY id"))
print(db.integrity())
db.close()
""",
        path,
    )

    assert out.splitlines() == ["unknown", "[('before',), ('after',)]", "[]"]


def test_a_damaged_file_says_so_and_is_not_made_worse(path, schema):
    database = Database.open(path, schema=schema)
    for number in range(200):
        database.apply(note(f"{number} {'x' * 500}"))
    database.close()
    with open(path, "r+b") as file:
        file.seek(3 * 4096)
        file.write(b"\xff" * 4096 * 8)

    damaged = Database.open(path, schema=schema)

    assert damaged.integrity() != []
    with pytest.raises(StoreDamaged), damaged.read() as reader:
        reader.all("SELECT text FROM notes")
    damaged.close()
