"""What reads and operations are given instead of a database connection.

Neither can begin or end a transaction: an operation is a pure function of its :class:`Transaction` and its
arguments, so that the writer may run it again after another operation of its group has failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Bindings", "Reader", "SQLiteValue", "Transaction"]

SQLiteValue = None | int | float | str | bytes
"""What a cell holds."""

Bindings = Sequence[SQLiteValue] | Mapping[str, SQLiteValue]
"""Values for ``?`` in order, or for ``:name`` by name."""


class Reader(Protocol):
    """Reads of one consistent state. Blocks for the time of the statement only."""

    def all(self, sql: str, bindings: Bindings = ()) -> list[tuple[SQLiteValue, ...]]:
        """Every row, in the order of the statement; several statements are all run to their end.

        Text that is not valid UTF-8 comes back with U+FFFD in place of the bytes that are wrong.

        :raises StorageError: what the statement failed with (inside :meth:`Database.read`).
        """

    def one(self, sql: str, bindings: Bindings = ()) -> tuple[SQLiteValue, ...] | None:
        """First row, or ``None`` where there is none. The statement is run to its end: give it a ``LIMIT``."""


class Transaction(Reader, Protocol):
    """Writes inside the transaction of the writer's group.

    Errors of SQLite come as ``apsw.Error`` here, so that an operation can tell a constraint from a fault; one
    that leaves the operation reaches the caller as :class:`~hermes_hookspecs.errors.StorageError`.
    """

    def run(self, sql: str, bindings: Bindings = ()) -> int:
        """Run to the end.

        :returns: rows changed by the last INSERT, UPDATE or DELETE, without those of triggers.
        """

    def insert(self, sql: str, bindings: Bindings = ()) -> int:
        """Run to the end.

        :returns: rowid of the last row inserted.
        """

    def run_many(self, sql: str, rows: Iterable[Bindings]) -> None:
        """Run once for each element; give a list, since a generator works while the lock is held."""
