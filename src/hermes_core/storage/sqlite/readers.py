"""Reader connections: one for each read at a time, a short transaction for each read."""

from __future__ import annotations

import threading
import weakref
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

import apsw

from hermes_core.storage.sqlite.connection import Connection, Statements, connect, disconnect, translate
from hermes_hookspecs.errors import StoreBusy, StoreStopped

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from hermes_core.storage.sqlite.transaction import Bindings, Reader, SQLiteValue

__all__ = ["Readers", "Reading"]


class Readers:
    """A pool that grows to ``limit`` connections and then lets reads wait. Thread-safe.

    A connection in use belongs to its read alone: should an interrupt tear that apart, the connection is collected,
    closed, and no longer counted.

    :param path: the database file.
    :param limit: most connections.
    :param patience_s: how long a read waits for one, and a connection for SQLite's recovery lock.
    """

    def __init__(self, path: str, *, limit: int, patience_s: float) -> None:
        self._path = path
        self._limit = limit
        self._patience_s = patience_s
        self._free: SimpleQueue[Connection] = SimpleQueue()
        # Weak references looked through by hand: a WeakSet's callback can be lost to an interrupt, too.
        self._known: list[weakref.ref[Connection]] = []
        self._growing = threading.Lock()
        self._closed = False
        self._checkpoint = True
        self._forked = False

    def adopt(self, connection: Connection) -> None:
        """Take over a connection that was opened with ``query_only``."""
        with self._growing:
            self._known.append(weakref.ref(connection))
        self._free.put(connection)

    def acquire(self) -> Connection:
        """A connection without a transaction.

        :raises StoreBusy: all are in use for longer than the pool's patience.
        :raises StoreStopped: the pool is closed.
        """
        if self._closed:
            raise StoreStopped(f"{self._path} is closed; open it again")
        try:
            return self._free.get_nowait()
        except Empty:
            pass
        with self._growing:
            self._known = [known for known in self._known if known() is not None]
            if len(self._known) < self._limit:
                return self._open()
        try:
            return self._free.get(timeout=self._patience_s)
        except Empty:
            raise StoreBusy(f"{self._path}: all {self._limit} readers were busy for {self._patience_s:g} s") from None

    def _open(self) -> Connection:
        try:
            connection = connect(self._path, busy_timeout_s=self._patience_s, query_only=True)
        except apsw.Error as error:
            raise translate(error, f"{self._path} cannot be opened") from error
        self._known.append(weakref.ref(connection))
        return connection

    def release(self, connection: Connection) -> None:
        """Give it back; a transaction left open by an interrupt is ended."""
        if self._forked:
            return
        if connection.in_transaction:
            with connection.inside:
                connection.execute("ROLLBACK").fetchall()
        if self._closed:
            disconnect(connection, checkpoint=self._checkpoint)
            return
        self._free.put(connection)
        self._close_free_if_closed()

    def close(self, *, checkpoint: bool = True) -> bool:
        """Close what is free now and the others when their reads end; idempotent.

        :param checkpoint: see :func:`~hermes_core.storage.sqlite.connection.disconnect`.
        :returns: whether all are closed.
        """
        self._checkpoint = checkpoint
        self._closed = True
        with self._growing:
            known = sum(connection() is not None for connection in self._known)
            self._known = []
        return self._close_free() == known

    def _close_free_if_closed(self) -> None:
        if self._closed:
            self._close_free()

    def _close_free(self) -> int:
        """Close them and return how many they were."""
        closed = 0
        try:
            while True:
                disconnect(self._free.get_nowait(), checkpoint=self._checkpoint)
                closed += 1
        except Empty:
            return closed

    def leave_in_child(self) -> None:
        """In a forked child: a read that was under way in the parent must not end its transaction here."""
        self._forked = True


class _Reads(Statements):
    """Statements between which a fork may happen: a child can leave a read as it is."""

    __slots__ = ("_inside",)

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._inside = connection.inside

    def _execute(self, sql: str, bindings: Bindings) -> list[tuple[SQLiteValue, ...]]:
        with self._inside:
            return super()._execute(sql, bindings)


class Reading:
    """One read transaction, ``with db.read() as reader:``; everything in it is of one state of the database.

    :param readers: where the connection comes from; only entering it takes one.
    :param check: raises where the database must not be used any more.
    """

    _connection: Connection | None = None

    def __init__(self, readers: Readers, check: Callable[[], None]) -> None:
        self._readers = readers
        self._check = check

    def __enter__(self) -> Reader:
        self._check()
        self._connection = self._readers.acquire()
        try:
            with self._connection.inside:
                self._connection.execute("BEGIN")
        except apsw.Error as error:
            self._release()
            raise translate(error, "the read failed") from error
        return _Reads(self._connection)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._release()
        if isinstance(error, apsw.Error):
            raise translate(error, "the read failed") from error

    def _release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._readers.release(connection)

    def __del__(self) -> None:
        # An interrupt between acquiring and entering leaves nobody else to give the connection back.
        self._release()
