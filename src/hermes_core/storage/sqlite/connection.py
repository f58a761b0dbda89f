"""Connections to the database file, with the settings that hold for every one of them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import apsw

from hermes_core.storage.sqlite import forks
from hermes_core.storage.sqlite.text import select_replacing
from hermes_hookspecs.errors import StorageError, StoreBusy, StoreDamaged, StoreFull

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_core.storage.sqlite.transaction import Bindings, SQLiteValue

__all__ = ["Connection", "Statements", "WriterConnection", "connect", "disconnect", "number", "translate"]

SETTINGS = """
    PRAGMA foreign_keys = ON;
    PRAGMA temp_store = MEMORY;
    PRAGMA cache_size = -16384;
    PRAGMA mmap_size = 0;
"""
FULL_FSYNC = "PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON;"

# The comment makes these texts the writer's own: an operation that says COMMIT is prepared anew and refused
# by the authorizer, it never finds the writer's statement in the cache.
BEGIN = "BEGIN IMMEDIATE /* writer */"
COMMIT = "COMMIT /* writer */"
ROLLBACK = "ROLLBACK /* writer */"
SAVEPOINT = "SAVEPOINT operation /* writer */"
RELEASE = "RELEASE operation /* writer */"
ROLLBACK_TO = "ROLLBACK TO operation /* writer */"

FORBIDDEN_ACTIONS = frozenset({apsw.SQLITE_TRANSACTION, apsw.SQLITE_SAVEPOINT, apsw.SQLITE_ATTACH, apsw.SQLITE_DETACH})
FORBIDDEN_PRAGMAS = frozenset(
    {
        "application_id",
        "foreign_keys",
        "journal_mode",
        "locking_mode",
        "query_only",
        "schema_version",
        "synchronous",
        "user_version",
        "wal_autocheckpoint",
        "wal_checkpoint",
        "writable_schema",
    }
)


class Connection(apsw.Connection):
    """A connection that a fork can wait for.

    :ivar inside: held by the thread that is inside SQLite with it; see :mod:`~hermes_core.storage.sqlite.forks`.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, flags=apsw.SQLITE_OPEN_READWRITE)
        self.inside = forks.quiet()


def connect(path: str, *, busy_timeout_s: float, synchronous: str = "NORMAL", query_only: bool = False) -> Connection:
    """A connection to an existing database file; nothing is read from the file yet.

    No connection checkpoints by itself, nor when it is collected or the interpreter ends: in a forked child that would
    take away the log of whoever uses the file by then. Only :func:`disconnect` may. The double-quoted-string misfeature
    is off, and SQL stored in the schema is not trusted.

    :param busy_timeout_s: how long SQLite itself waits for a lock.
    :param synchronous: ``NORMAL`` or ``FULL``; ``OFF`` is never right here.
    :param query_only: whether every write on it is refused.
    :raises apsw.Error: the file cannot be opened.
    """
    settings = f"{SETTINGS} PRAGMA synchronous = {synchronous}; PRAGMA query_only = {int(query_only)};"
    if sys.platform == "darwin":
        settings += FULL_FSYNC
    with forks.moving:
        connection = Connection(path)
        connection.set_busy_timeout(int(busy_timeout_s * 1000))
        connection.wal_autocheckpoint(0)
        for option, value in (
            (apsw.SQLITE_DBCONFIG_DQS_DML, 0),
            (apsw.SQLITE_DBCONFIG_DQS_DDL, 0),
            (apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0),
            (apsw.SQLITE_DBCONFIG_DEFENSIVE, 1),
            (apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1),
            # Otherwise some statements are prepared anew whenever a bound value is another one.
            (apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1),
        ):
            connection.config(option, value)
        connection.execute(settings).fetchall()
    return connection


def number(connection: apsw.Connection, sql: str) -> int:
    """The one integer that a pragma answers.

    :raises StoreDamaged: it answered something else.
    """
    value = connection.execute(sql).fetchall()[0][0]
    if not isinstance(value, int):
        raise StoreDamaged(f"{connection.filename}: {sql} answers {value!r}")
    return value


def disconnect(connection: Connection, *, checkpoint: bool = True) -> None:
    """Close a connection; whoever closes the file last lets SQLite move the -wal into it and remove the -wal.

    :param checkpoint: whether that is wanted; false leaves the log for whoever opens the file next.
    """
    with connection.inside:
        if checkpoint:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        connection.close()


def translate(error: BaseException, doing: str) -> BaseException:
    """The error of our tree for one of SQLite; anything else comes back as it is.

    :param doing: what was tried, the start of the sentence.
    """
    if not isinstance(error, apsw.Error):
        return error
    text = f"{doing}: {error}"
    translated: StorageError
    match error:
        case apsw.BusyError() | apsw.LockedError():
            translated = StoreBusy(f"{doing}: the database is locked by another connection")
        case apsw.FullError():
            translated = StoreFull(f"{doing}: no space left for the database; nothing of it was written")
        case apsw.CorruptError() | apsw.NotADBError():
            translated = StoreDamaged(f"{text}; restore a backup or run `hermes doctor`")
        case apsw.AuthError():
            translated = StorageError(f"{doing}: an operation may not begin or end transactions or change settings")
        case _:
            translated = StorageError(text)
    translated.__cause__ = error
    return translated


class Statements:
    """Reads and writes on one connection: the :class:`Transaction` that operations get.

    When SQLite itself ends the transaction after an error (disk full, I/O), an operation that swallowed that
    error would go on with autocommit; from then on every statement of it is refused.
    """

    __slots__ = ("_connection", "_cursor", "_lost")

    def __init__(self, connection: apsw.Connection, cursor: apsw.Cursor | None = None) -> None:
        self._connection = connection
        # A cursor for each statement would cost as much as a quick statement does.
        self._cursor = connection.cursor() if cursor is None else cursor
        self._lost: apsw.Error | None = None

    def _execute(self, sql: str, bindings: Bindings) -> list[tuple[SQLiteValue, ...]]:
        if self._lost is not None:
            raise self._lost
        try:
            # Without fetchall, apsw stops at the first row and leaves later statements of the text unrun.
            return self._cursor.execute(sql, bindings).fetchall()
        except UnicodeDecodeError as error:
            return select_replacing(self._connection, sql, bindings, error)
        except apsw.Error as error:
            if not self._connection.in_transaction:
                self._lost = error
            raise

    def all(self, sql: str, bindings: Bindings = ()) -> list[tuple[SQLiteValue, ...]]:
        """See :meth:`Reader.all`."""
        return self._execute(sql, bindings)

    def one(self, sql: str, bindings: Bindings = ()) -> tuple[SQLiteValue, ...] | None:
        """See :meth:`Reader.one`."""
        rows = self._execute(sql, bindings)
        return rows[0] if rows else None

    def run(self, sql: str, bindings: Bindings = ()) -> int:
        """See :meth:`Transaction.run`."""
        self._execute(sql, bindings)
        return self._connection.changes()

    def insert(self, sql: str, bindings: Bindings = ()) -> int:
        """See :meth:`Transaction.insert`."""
        self._execute(sql, bindings)
        return self._connection.last_insert_rowid()

    def run_many(self, sql: str, rows: Iterable[Bindings]) -> None:
        """See :meth:`Transaction.run_many`."""
        if self._lost is not None:
            raise self._lost
        try:
            self._cursor.executemany(sql, rows).fetchall()
        except apsw.Error as error:
            if not self._connection.in_transaction:
                self._lost = error
            raise


class WriterConnection:
    """The connection of the writer: alone in beginning and ending transactions. One thread at a time.

    :param patience_s: how long opening may wait for another process that recovers the log.
    :ivar wal_pages: pages in the -wal after the last commit.
    """

    def __init__(self, path: str, *, synchronous: str, patience_s: float) -> None:
        self._connection = connect(path, busy_timeout_s=patience_s, synchronous=synchronous)
        self._inside = self._connection.inside
        self._is_inside = False
        # The first look into the file makes SQLite open the -wal.
        with self._inside:
            number(self._connection, "PRAGMA user_version")
        # From here on patience is the writer's: SQLite's own busy handler sleeps longer and longer and starves some.
        self._connection.set_busy_timeout(0)
        self._cursor = self._connection.cursor()
        self._control_cursor = self._connection.cursor()
        self._trusted = False
        self._seen = -1
        self.wal_pages = 0
        self._connection.set_wal_hook(self._count_pages)
        self._connection.set_authorizer(self._authorize)

    def _count_pages(self, _connection: apsw.Connection, _database: str, pages: int) -> int:
        self.wal_pages = pages
        return apsw.SQLITE_OK

    def _authorize(
        self, action: int, first: str | None, second: str | None, _database: str | None, _trigger: str | None
    ) -> int:
        if self._trusted:
            return apsw.SQLITE_OK
        if action == apsw.SQLITE_PRAGMA:
            allowed = second is None or first not in FORBIDDEN_PRAGMAS
        else:
            allowed = action not in FORBIDDEN_ACTIONS
        return apsw.SQLITE_OK if allowed else apsw.SQLITE_DENY

    def _control(self, sql: str) -> None:
        self._trusted = True
        try:
            self._control_cursor.execute(sql)
        finally:
            self._trusted = False

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._connection.in_transaction

    @property
    def raw(self) -> apsw.Connection:
        """The connection itself, for tests."""
        return self._connection

    def statements(self) -> Statements:
        """Facade for one operation."""
        return Statements(self._connection, self._cursor)

    def begin(self) -> None:
        """Take SQLite's write lock. No fork happens from here to the transaction's end: the child would undo it.

        :raises apsw.BusyError: another process has it; nothing has happened.
        """
        if not self._is_inside:
            self._inside.acquire()
            self._is_inside = True
        try:
            self._control(BEGIN)
        except BaseException:
            self._come_out()
            raise

    def _come_out(self) -> None:
        """Let forks happen again."""
        if self._is_inside:
            self._is_inside = False
            self._inside.release()

    def commit(self) -> None:
        """End the transaction; see :mod:`~hermes_core.storage.sqlite.group` for what a failure means.

        :meth:`rollback` follows in any case.
        """
        self._control(COMMIT)
        self._seen = self._connection.data_version()

    def rollback(self) -> None:
        """Undo the transaction, if SQLite has not done so itself."""
        try:
            if self._connection.in_transaction:
                self._control(ROLLBACK)
        finally:
            self._come_out()

    def savepoint(self) -> None:
        """Start of one operation that can be undone alone."""
        self._control(SAVEPOINT)

    def release(self) -> None:
        """The operation stays."""
        self._control(RELEASE)

    def undo(self) -> None:
        """Undo the operation since :meth:`savepoint`; the transaction goes on."""
        self._control(ROLLBACK_TO)
        self._control(RELEASE)

    def user_version(self) -> int | None:
        """The file's schema version, inside a transaction; ``None`` when nobody else wrote since our last commit.

        The look at the pager's counter costs a tenth of the pragma and is exact while a transaction is open.
        """
        if self._connection.data_version() == self._seen:
            return None
        return number(self._connection, "PRAGMA user_version")

    def close(self, *, checkpoint: bool = True) -> None:
        """Close it; see :func:`disconnect`."""
        disconnect(self._connection, checkpoint=checkpoint)
