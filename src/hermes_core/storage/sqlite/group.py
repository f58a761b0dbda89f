"""Running a group of operations in one transaction, so that each gets its own outcome.

Three ways, tried in this order; an operation may be run up to three times and must not mind:

1. *together*: no savepoints, the fast way; any failure undoes the whole group;
2. *guarded*: each operation in its own savepoint, a failing one is undone alone;
3. *alone*: each in its own transaction, where SQLite gave up the whole transaction by itself or refused its COMMIT.

A COMMIT that failed is not always a write that failed. Where SQLite says that the transaction is still open, or that
there was no space for it, nothing was written. After an I/O error nobody knows: *outcome unknown*.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import apsw

from hermes_core.faultpoints import reach
from hermes_core.storage.sqlite.connection import translate
from hermes_hookspecs.errors import StorageError, StoreOutcomeUnknown

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_core.storage.sqlite.connection import WriterConnection
    from hermes_core.storage.sqlite.transaction import Transaction

    Work = Callable[[Transaction], object]

__all__ = ["Outcome", "Unkept", "run_alone", "run_group"]

T = TypeVar("T")

DOING = "the operation failed"


class Unkept(Generic[T]):
    """Work whose answer need not wait for the disk (:attr:`hermes_hookspecs.operations.Operation.is_kept`)."""

    __slots__ = ("_work",)

    def __init__(self, work: Callable[[Transaction], T]) -> None:
        self._work = work

    def __call__(self, transaction: Transaction) -> T:
        """Do the work."""
        return self._work(transaction)


class Outcome:
    """What became of one operation: a value, or an error.

    :ivar lost_sync: a sync inside COMMIT failed, after which the store must not write any more.
    :ivar is_kept: whether its value is true only once it is on disk.
    """

    __slots__ = ("error", "is_kept", "lost_sync", "value")

    def __init__(
        self,
        value: object = None,
        error: BaseException | None = None,
        *,
        lost_sync: bool = False,
        is_kept: bool = True,
    ) -> None:
        self.value = value
        self.error = error
        self.lost_sync = lost_sync
        self.is_kept = is_kept


def run_group(connection: WriterConnection, works: Sequence[Work], begin: Callable[[], None]) -> list[Outcome]:
    """Outcomes in the order of the operations. A transaction is open at the start, none at the end.

    :param begin: opens the next transaction; what it raises is the outcome of those that were to run in it.
    """
    outcomes = _together(connection, works)
    if outcomes is None:
        begun = _begun(begin)
        outcomes = [Outcome(error=begun) for _ in works] if begun else _guarded(connection, works)
    if outcomes is None:
        outcomes = [_alone(connection, work, begin) for work in works]
    return outcomes


def run_alone(connection: WriterConnection, work: Work) -> Outcome:
    """Outcome of an operation that is a group by itself. A transaction is open at the start, none at the end."""
    outcome = _run(connection, work)
    if outcome.error is not None:
        connection.rollback()
        return outcome
    try:
        connection.commit()
    except apsw.Error as error:
        return _refused(connection, error) or _unknown([outcome], error)[0]
    return outcome


def _begun(begin: Callable[[], None]) -> BaseException | None:
    try:
        begin()
    except (StorageError, apsw.Error) as error:
        return translate(error, DOING)
    return None


def _together(connection: WriterConnection, works: Sequence[Work]) -> list[Outcome] | None:
    if len(works) == 1:
        return [run_alone(connection, works[0])]
    outcomes = []
    for work in works:
        outcome = _run(connection, work)
        if outcome.error is not None:
            connection.rollback()
            return None
        outcomes.append(outcome)
    return _commit(connection, outcomes)


def _guarded(connection: WriterConnection, works: Sequence[Work]) -> list[Outcome] | None:
    outcomes = []
    for work in works:
        connection.savepoint()
        outcome = _run(connection, work)
        if not connection.in_transaction:
            return None
        if outcome.error is None:
            connection.release()
        else:
            connection.undo()
        outcomes.append(outcome)
    return _commit(connection, outcomes)


def _alone(connection: WriterConnection, work: Work, begin: Callable[[], None]) -> Outcome:
    error = _begun(begin)
    return run_alone(connection, work) if error is None else Outcome(error=error)


def _run(connection: WriterConnection, work: Work) -> Outcome:
    # BaseException, because this is not the caller's thread: SystemExit, say, belongs to whoever waits for the answer.
    try:
        value = work(connection.statements())
        reach("group.begun")
    except BaseException as error:  # noqa: BLE001
        return Outcome(error=translate(error, DOING))
    if not connection.in_transaction:
        return Outcome(error=StorageError(f"{DOING}: SQLite ended its transaction, and it did not say why"))
    return Outcome(value, is_kept=type(work) is not Unkept)


def _commit(connection: WriterConnection, outcomes: list[Outcome]) -> list[Outcome] | None:
    try:
        connection.commit()
    except apsw.Error as error:
        return None if _refused(connection, error) else _unknown(outcomes, error)
    return outcomes


def _refused(connection: WriterConnection, error: apsw.Error) -> Outcome | None:
    """What a COMMIT means for those in it that wrote nothing; ``None`` where it may have written all the same."""
    if connection.in_transaction or isinstance(error, apsw.FullError):
        connection.rollback()
        return Outcome(error=translate(error, DOING))
    return None


def _unknown(outcomes: list[Outcome], error: apsw.Error) -> list[Outcome]:
    lost_sync = getattr(error, "extendedresult", 0) in {apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC}
    answers = []
    for outcome in outcomes:
        if outcome.error is not None:
            answers.append(outcome)
            continue
        unknown = StoreOutcomeUnknown(f"COMMIT failed ({error}): it may or may not be there after the next start")
        unknown.__cause__ = error
        answers.append(Outcome(error=unknown, lost_sync=lost_sync))
    return answers
