"""Reader connections: one for each read at a time, a short transaction for each read."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import apsw

from hermes_core.storage.sqlite.connection import Statements, connect, translate
from hermes_hookspecs.errors import StoreBusy, StoreStopped

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from hermes_core.storage.sqlite.transaction import Reader

__all__ = ["Readers", "Reading"]


class Readers:
    """A pool that grows to ``limit`` connections and then lets reads wait. Thread-safe.

    :param path: the database file.
    :param limit: most connections.
    :param patience_s: how long a read waits for one, and a connection for SQLite's recovery lock.
    """

    def __init__(self, path: str, *, limit: int, patience_s: float) -> None:
        self._path = path
        self._limit = limit
        self._patience_s = patience_s
        self._free: list[apsw.Connection] = []
        self._all: list[apsw.Connection] = []
        self._opened = 0
        self._closed = False
        self._forked = False
        self._changed = threading.Condition(threading.Lock())

    def adopt(self, connection: apsw.Connection) -> None:
        """Take over a connection that was opened with ``query_only``."""
        with self._changed:
            self._opened += 1
            self._all.append(connection)
            self._free.append(connection)

    def acquire(self) -> apsw.Connection:
        """A connection without a transaction; the one used last, whose cache is warm, if there is one.

        :raises StoreBusy: all are in use for longer than the pool's patience.
        :raises StoreStopped: the pool is closed.
        """
        deadline = time.monotonic() + self._patience_s
        with self._changed:
            while True:
                if self._closed:
                    raise StoreStopped(f"{self._path} is closed; open it again")
                if self._free:
                    return self._free.pop()
                if self._opened < self._limit:
                    self._opened += 1
                    break
                if not self._changed.wait(deadline - time.monotonic()) and time.monotonic() >= deadline:
                    raise StoreBusy(f"{self._path}: all {self._limit} readers were busy for {self._patience_s:g} s")
        return self._open()

    def _open(self) -> apsw.Connection:
        try:
            connection = connect(self._path, busy_timeout_s=self._patience_s, query_only=True)
        except BaseException as error:
            with self._changed:
                self._opened -= 1
                self._changed.notify()
            if isinstance(error, apsw.Error):
                raise translate(error, f"{self._path} cannot be opened") from error
            raise
        with self._changed:
            self._all.append(connection)
        return connection

    def release(self, connection: apsw.Connection) -> None:
        """Give it back; a transaction left open by an interrupt is ended."""
        if self._forked:
            return
        if connection.in_transaction:
            connection.execute("ROLLBACK").fetchall()
        with self._changed:
            if not self._closed:
                self._free.append(connection)
                self._changed.notify()
                return
            self._all.remove(connection)
        connection.close()

    def close(self) -> None:
        """Close what is free now and the others when their reads end; idempotent."""
        with self._changed:
            self._closed = True
            free, self._free = self._free, []
            for connection in free:
                self._all.remove(connection)
            self._changed.notify_all()
        for connection in free:
            connection.close()

    def leave_in_child(self, keep: Callable[[apsw.Connection], None]) -> None:
        """In a forked child: keep every connection from ever being closed. Takes no lock, which may be held for ever."""
        self._forked = True
        for connection in self._all:
            keep(connection)


class Reading:
    """One read transaction, ``with db.read() as reader:``; everything in it is of one state of the database.

    :param readers: where the connection comes from; only entering it takes one.
    :param check: raises where the database must not be used any more.
    """

    def __init__(self, readers: Readers, check: Callable[[], None]) -> None:
        self._readers = readers
        self._check = check
        self._connection: apsw.Connection | None = None

    def __enter__(self) -> Reader:
        self._check()
        self._connection = self._readers.acquire()
        try:
            self._connection.execute("BEGIN")
        except apsw.Error as error:
            self._release()
            raise translate(error, "the read failed") from error
        return Statements(self._connection)

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
