"""The port through which a plugin keeps tables of its own inside the SQLite store.

What a plugin keeps there is *derived*: it can be made again from the store's own rows, and is dropped with the plugin.
A plugin follows the change feed behind a watermark, which moves in the same transaction as the rows that were made of
the changes, so that nothing is missed or taken twice, whoever dies in between.

Of the store's own tables a plugin reads (never writes) these columns: ``messages`` (id, lineage_no, session_id, role,
content, timestamp, hidden), ``lineages`` (no, id, tip, owner, room, platform, title, last_activity),
``sessions`` (id, lineage_id, source), ``changes`` (id, kind, lineage_no, message_id). Ids of ``messages`` and
``changes`` only grow and are never used again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.principal import Principal

__all__ = [
    "RESERVED_TABLES",
    "SqliteAccess",
    "SqliteBindings",
    "SqliteReader",
    "SqliteValue",
    "SqliteWriter",
    "sqlite_access",
]

T = TypeVar("T")

RESERVED_TABLES = {"fts5": ("messages_fts", "messages_fts_trigram")}
"""Names that the plugin named before them may use although they do not begin with its own."""

SqliteValue = None | int | float | str | bytes
"""What a cell holds."""

SqliteBindings = Sequence[SqliteValue] | Mapping[str, SqliteValue]
"""Values for ``?`` in order, or for ``:name`` by name."""


class SqliteReader(Protocol):
    """Statements that read; everything one reader sees is of one state of the database. Used by one thread."""

    def all(self, sql: str, bindings: SqliteBindings = ()) -> list[tuple[SqliteValue, ...]]:
        """Return every row, in the order of the statement.

        :raises TimeoutError: the time that the read was given is over.
        :raises StorageError: what the statement failed with; ``StoreDamaged`` for tables that are not sound.
        """
        ...

    def one(self, sql: str, bindings: SqliteBindings = ()) -> tuple[SqliteValue, ...] | None:
        """Return the first row, or ``None``. The statement is run to its end: give it a ``LIMIT``."""
        ...


class SqliteWriter(SqliteReader, Protocol):
    """Statements inside a transaction of the store's writer; none may begin or end one."""

    def run(self, sql: str, bindings: SqliteBindings = ()) -> int:
        """Run to the end and return the rows changed by the last INSERT, UPDATE or DELETE."""
        ...

    def run_many(self, sql: str, rows: Iterable[SqliteBindings]) -> None:
        """Run once for each element of a list that is ready: nothing is computed while the lock is held."""
        ...


class SqliteAccess(Protocol):
    """Tables of plugins in one SQLite store. Thread-safe; every method blocks.

    A plugin's tables are named ``<plugin>_*`` (and :data:`RESERVED_TABLES`), whatever the plugin's name is; the store
    remembers them, so that they can be dropped when the plugin is gone.
    """

    sqlite_version: str
    """Of the library in use: ``3.46.1``."""
    searched_columns: tuple[str, ...]
    """Columns of ``messages`` that :meth:`searched_text` needs; the first is ``content``."""

    def migrate(self, plugin: str, steps: Sequence[str]) -> int:
        """Bring a plugin's tables to version ``len(steps)``; each step is one transaction. Does nothing when they are.

        With the first step the watermark is set to the newest change: what was stored before is read from the tables.

        :param steps: step ``n`` makes version ``n + 1``; any number of statements each.
        :returns: the version that was found, 0 where there was none.
        :raises StoreRefused: the tables are of a newer version of the plugin; nothing was touched.
        :raises StorageError: a step failed, or made a table with a foreign name; the step was undone.
        """
        ...

    def version(self, plugin: str) -> int:
        """Return the version of a plugin's tables, 0 where it has none."""
        ...

    def watermark(self, plugin: str) -> int:
        """Return the id of the last change that a plugin has taken in."""
        ...

    def read(self, *, budget_s: float | None = None) -> AbstractContextManager[SqliteReader]:
        """Return a short read transaction on a connection of its own; its statements end after ``budget_s`` seconds.

        :raises StoreBusy: all connections were in use for too long. :raises StoreStopped: the store is closed.
        """
        ...

    def apply(self, work: Callable[[SqliteWriter], T]) -> T:
        """Run one bounded step of at most 10 ms in a transaction and return its result once it is durable.

        :param work: a pure function of what it is given: it may be run more than once. Texts and numbers are made
            ready before.
        """
        ...

    def advance(self, plugin: str, work: Callable[[SqliteWriter], object], *, expected: int, watermark: int) -> bool:
        """Run a step and move the watermark in one transaction, as :meth:`apply` does.

        :param expected: where the watermark stood when the step was prepared.
        :returns: ``False`` when it stands elsewhere: somebody else was quicker, nothing was done.
        """
        ...

    def visible(self, principal: Principal) -> tuple[str, tuple[str, ...]]:
        """Return the condition on ``l`` (a row of ``lineages``) that says what a principal may read, and its bindings.

        ``TRUE`` for the operator.
        """
        ...

    def searched_text(self, cells: Sequence[SqliteValue]) -> str:
        """Return the text of a row that is searched (:func:`hermes_hookspecs.text.rows.searched_text`).

        :param cells: of :attr:`searched_columns`, in their order.
        """
        ...

    def drop(self, plugin: str) -> bool:
        """Remove every table of a plugin, whether or not it is there and the tables are sound; say if there were any.

        Quick: the tables are gone for everybody, what they held is deleted by :meth:`clear_dropped`.
        """
        ...

    def clear_dropped(self, *, budget_s: float) -> int:
        """Delete the data of dropped tables in bounded steps, for about ``budget_s`` seconds; return what is left.

        What is left is counted in tables. Others go on reading and writing meanwhile.
        """
        ...

    def lagging(self, before: int) -> Sequence[str]:
        """Return the plugins for which a change from before then (UTC milliseconds) still waits, sorted.

        Nobody has kept their tables up since: the plugins are not in use here any more.
        """
        ...

    def plugins(self) -> Sequence[tuple[str, int]]:
        """Return ``(plugin, version)`` of everybody who has tables here, sorted."""
        ...


def sqlite_access(store: Store) -> SqliteAccess | None:
    """Return the access that an open store offers, ``None`` where it is no SQLite store."""
    offered = getattr(store, "sqlite_access", None)
    access: SqliteAccess | None = None if offered is None else offered()
    return access
