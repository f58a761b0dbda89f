from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

import apsw
import pytest

from hermes_core.storage.sqlite.database import Database
from hermes_hookspecs.errors import LeaseLost, StorageError, StoreBusy, StoreStopped

if TYPE_CHECKING:
    from hermes_core.storage.sqlite.transaction import Transaction


def note(text: str) -> Callable[[Transaction], int]:
    return lambda transaction: transaction.insert("INSERT INTO notes(text) VALUES (?)", (text,))


def texts(database: Database) -> list[object]:
    with database.read() as reader:
        return [row[0] for row in reader.all("SELECT text FROM notes ORDER BY id")]


class Held:
    """An operation that keeps the writer inside its group until it is let go."""

    def __init__(self) -> None:
        self.inside = threading.Event()
        self.go = threading.Event()

    def __call__(self, transaction: Transaction) -> None:
        self.inside.set()
        assert self.go.wait(10)


def held(database: Database) -> tuple[Held, Future[None]]:
    operation = Held()
    future = database.submit(operation)
    assert operation.inside.wait(10)
    return operation, future


def off_main(work):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result(30)


def test_an_answer_is_given_only_when_another_connection_can_see_the_row(database):
    other = apsw.Connection(database.path)
    seen = []

    for number in range(50):
        future = database.submit(note(str(number)))
        future.add_done_callback(lambda _: seen.append(other.execute("SELECT count(*) FROM notes").fetchall()[0][0]))
        future.result(10)

    database.close()
    other.close()
    assert seen == list(range(1, 51))


def test_what_piles_up_is_committed_in_one_transaction_and_in_order(database):
    commits = []
    operation, _ = held(database)
    futures = [database.submit(note(str(number))) for number in range(100)]
    watcher = database.data_version()

    operation.go.set()
    ids = [future.result(10) for future in futures]
    commits = database.data_version() - watcher

    assert ids == list(range(1, 101))
    assert texts(database) == [str(number) for number in range(100)]
    # one for the group that was held, one for the hundred
    assert commits <= 2


def test_a_group_is_at_most_128_operations(database):
    sizes: list[int] = []
    operation, _ = held(database)
    futures = [database.submit(lambda t: t.one("SELECT count(*) FROM notes")) for _ in range(300)]
    database._writer._grown = lambda pages: sizes.append(sum(future.done() for future in futures))

    operation.go.set()
    for future in futures:
        future.result(10)
    database.close()

    assert sizes[:4] == [0, 128, 256, 300]


def test_failing_operations_of_a_group_get_their_own_errors_and_the_others_are_stored(database):
    database.apply(note("taken"))
    operation, _ = held(database)

    def half(transaction: Transaction) -> None:
        transaction.run("INSERT INTO notes(text) VALUES ('half')")
        raise ValueError("second item cannot be serialised")

    def lost(transaction: Transaction) -> None:
        raise LeaseLost("l1", 3)

    good = [database.submit(note(str(number))) for number in range(60)]
    bad = [
        database.submit(note("taken")),
        database.submit(half),
        database.submit(lost),
        database.submit(lambda t: t.run("NOT SQL")),
    ]
    operation.go.set()
    errors = [future.exception(10) for future in bad]

    assert [future.result(10) for future in good]
    assert [type(error) for error in errors] == [StorageError, ValueError, LeaseLost, StorageError]
    assert isinstance(errors[0].__cause__, apsw.ConstraintError)
    assert texts(database) == ["taken", *(str(number) for number in range(60))]


def test_a_failed_operation_leaves_no_transaction_open(database):
    def half(transaction: Transaction) -> None:
        transaction.run("INSERT INTO notes(text) VALUES ('half')")
        raise ValueError

    for apply in (database.apply, lambda work: off_main(lambda: database.apply(work))):
        with pytest.raises(ValueError):
            apply(half)
        other = apsw.Connection(database.path)
        other.execute("BEGIN IMMEDIATE; ROLLBACK").fetchall()
        other.close()

    assert texts(database) == []


def test_an_operation_is_alone_when_only_its_commit_is_refused(path, schema):
    migrated = type(schema)(
        application_id=schema.application_id,
        migrations=[
            *schema.migrations,
            type(schema.migrations[0])(
                2,
                "CREATE TABLE children(parent INTEGER REFERENCES notes(id) DEFERRABLE INITIALLY DEFERRED)",
            ),
        ],
    )
    database = Database.open(path, schema=migrated)
    operation, _ = held(database)
    good = [database.submit(note(str(number))) for number in range(10)]
    orphan = database.submit(lambda t: t.run("INSERT INTO children VALUES (99)"))

    operation.go.set()

    assert isinstance(orphan.exception(10), StorageError)
    assert len({future.result(10) for future in good}) == 10
    assert len(texts(database)) == 10
    database.close()


@pytest.mark.parametrize(
    "sql",
    [
        "COMMIT",
        "  /* now */ commit",
        "INSERT INTO notes(text) VALUES ('x'); COMMIT",
        "ROLLBACK",
        "SAVEPOINT mine",
        "RELEASE operation",
        "END",
        "ATTACH ':memory:' AS other",
        "PRAGMA user_version = 9",
        "PRAGMA synchronous = OFF",
        "PRAGMA wal_checkpoint(TRUNCATE)",
    ],
)
def test_an_operation_cannot_end_its_transaction_or_change_settings(database, sql):
    operation, _ = held(database)
    before, forbidden, after = (
        database.submit(note("before")),
        database.submit(lambda t: t.run(sql)),
        database.submit(note("after")),
    )
    operation.go.set()

    assert isinstance(forbidden.exception(10), StorageError)
    assert before.exception(10) is None
    assert after.exception(10) is None
    assert texts(database) == ["before", "after"]


def test_statements_behind_the_first_row_of_a_text_are_run_too(database):
    sql = "INSERT INTO notes(text) VALUES ('a'); SELECT * FROM notes; INSERT INTO notes(text) VALUES ('b')"

    assert database.apply(lambda t: t.run(sql)) == 1
    rows = database.apply(lambda t: t.all("SELECT 1 UNION SELECT 2; SELECT 3"))

    assert texts(database) == ["a", "b"]
    assert rows == [(1,), (2,), (3,)]


def test_run_says_how_many_rows_changed_and_run_many_takes_all(database):
    def work(transaction: Transaction) -> tuple[int, int]:
        transaction.run_many("INSERT INTO counters(name) VALUES (?)", [("a",), ("b",), ("c",)])
        hit = transaction.run("UPDATE counters SET value = 1 WHERE name <> :name", {"name": "c"})
        return hit, transaction.run("UPDATE counters SET value = 2 WHERE name = 'nobody'")

    assert database.apply(work) == (2, 0)


def test_cancelled_requests_are_not_written_and_do_not_disturb_their_group(database):
    operation, _ = held(database)
    futures = [database.submit(note(str(number))) for number in range(20)]
    for future in futures[::2]:
        assert future.cancel()

    operation.go.set()
    for future in futures[1::2]:
        future.result(10)

    assert texts(database) == [str(number) for number in range(1, 20, 2)]


def test_a_caller_who_gave_up_while_the_writer_was_busy_has_written_nothing(database):
    operation, _ = held(database)
    with pytest.raises(StoreBusy, match="nothing was written"):
        database.apply(note("impatient"), timeout_s=0.02)
    patient = database.submit(note("patient"))

    operation.go.set()

    assert patient.result(10) == 1
    assert texts(database) == ["patient"]


def test_coroutines_are_answered_and_cancelled_ones_do_not_disturb_the_others(database):
    async def main() -> list[object]:
        operation = Held()
        first = database.submit(operation)
        await asyncio.to_thread(operation.inside.wait, 10)
        tasks = [database.submit_from_loop(note(str(number))) for number in range(32)]
        tasks[3].cancel()
        operation.go.set()
        await asyncio.wrap_future(first)
        failing = database.submit_from_loop(lambda t: t.run("NOT SQL"))
        return await asyncio.gather(*tasks, failing, return_exceptions=True)

    *answers, failed = asyncio.run(asyncio.wait_for(main(), 20))

    assert isinstance(answers[3], asyncio.CancelledError)
    assert isinstance(failed, StorageError)
    assert texts(database) == [str(number) for number in range(32) if number != 3]


def test_a_loop_that_was_closed_does_not_disturb_the_rest_of_the_group(database):
    operation, _ = held(database)

    async def leave() -> None:
        database.submit_from_loop(note("left"))

    asyncio.run(leave())
    stayed = database.submit(note("stayed"))
    operation.go.set()

    assert stayed.result(10)
    assert "stayed" in texts(database)


def test_off_the_main_thread_a_lone_caller_commits_by_himself(database):
    def work(transaction: Transaction) -> int:
        transaction.run("INSERT INTO notes(text) VALUES ('inline')")
        return threading.get_ident()

    caller, committer = off_main(lambda: (threading.get_ident(), database.apply(work)))

    assert caller == committer
    assert texts(database) == ["inline"]


def test_the_main_thread_never_commits_by_itself(database):
    assert database.apply(lambda t: threading.get_ident()) != threading.get_ident()


def test_eight_threads_lose_and_double_nothing(database):
    def work(worker: int) -> list[int]:
        return [database.apply(note(f"{worker}-{number}")) for number in range(50)]

    with ThreadPoolExecutor(8) as pool:
        ids = [one for batch in pool.map(work, range(8)) for one in batch]

    assert sorted(ids) == list(range(1, 401))
    assert len(texts(database)) == 400
    assert database.integrity() == []


def test_an_operation_that_calls_its_own_store_is_told_so_instead_of_hanging(database):
    with pytest.raises(StorageError, match="called the store it runs in"):
        database.apply(lambda t: database.apply(note("inner")))


def test_a_system_exit_of_an_operation_goes_to_its_caller(database):
    def leave(transaction: Transaction) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        database.submit(leave).result(10)
    assert database.apply(note("still there"))


def test_close_writes_what_is_queued_and_then_refuses(database):
    futures = [database.submit(note(str(number))) for number in range(500)]

    database.close()
    database.close()

    assert all(future.done() and future.exception() is None for future in futures)
    for use in (lambda: database.apply(note("x")), lambda: database.read().__enter__(), database.data_version):
        with pytest.raises(StoreStopped, match="closed"):
            use()


def test_a_program_that_ends_without_closing_has_written_what_it_queued(path, finish, schema):
    finish(
        """
import sys
db = Database.open(sys.argv[1], schema=SCHEMA)
for number in range(2000):
    db.submit(note(str(number)))
""",
        path,
    )

    database = Database.open(path, schema=schema)
    assert len(texts(database)) == 2000
    database.close()


def test_ctrl_c_in_the_main_thread_never_leaves_a_transaction_open(path, finish):
    out = finish(
        """
import signal, sys, time
db = Database.open(sys.argv[1], schema=SCHEMA)
db.apply(note("first"))
inside, interrupted = False, 0
def interrupt(*_):
    # once for each round, and never in the lines that count
    global inside, interrupted
    if inside:
        inside, interrupted = False, interrupted + 1
        raise KeyboardInterrupt
signal.signal(signal.SIGALRM, interrupt)
signal.setitimer(signal.ITIMER_REAL, 0.0007, 0.0007)
end = time.monotonic() + 1.5
while time.monotonic() < end:
    try:
        while time.monotonic() < end:
            inside = True
            db.apply(note(str(time.monotonic_ns())))
            with db.read() as reader:
                reader.one("SELECT count(*) FROM notes")
            inside = False
    except KeyboardInterrupt:
        pass
signal.setitimer(signal.ITIMER_REAL, 0)
import apsw
other = apsw.Connection(sys.argv[1])
other.execute("BEGIN IMMEDIATE; ROLLBACK").fetchall()
db.apply(note("last"))
with db.read() as reader:
    pass
db.close()
print(interrupted)
""",
        path,
    )

    assert int(out) > 50


def test_what_coroutines_want_in_one_round_of_their_loop_is_one_transaction(database):
    commits: list[int] = []
    committer = database._writer._committer
    commit = committer.commit

    def counting(*arguments):
        outcomes = commit(*arguments)
        commits.append(len(outcomes))
        return outcomes

    committer.commit = counting

    async def all_at_once() -> list[int]:
        return await asyncio.gather(*(database.submit_from_loop(note(str(number))) for number in range(64)))

    ids = asyncio.run(all_at_once())

    assert ids == list(range(1, 65))
    assert commits == [64]


def test_nobody_overtakes_what_a_coroutine_asked_for_before(database):
    async def three_ways() -> None:
        first = database.submit_from_loop(note("first"))
        second = database.submit(note("second"))
        third = database.submit_from_loop(note("third"))
        database.apply(note("fourth"), timeout_s=10)
        await asyncio.wait_for(asyncio.gather(first, third, asyncio.wrap_future(second)), 10)

    off_main(lambda: asyncio.run(three_ways()))

    assert texts(database) == ["first", "second", "third", "fourth"]


def test_close_writes_what_a_loop_that_ended_had_asked_for(path, schema):
    database = Database.open(path, schema=schema)
    loop = asyncio.new_event_loop()

    async def ask() -> None:
        database.submit_from_loop(note("asked"))
        loop.stop()

    task = loop.create_task(ask())
    loop.run_forever()
    loop.close()
    database.close()

    reopened = Database.open(path, schema=schema)
    assert task.done()
    assert texts(reopened) == ["asked"]
    reopened.close()
