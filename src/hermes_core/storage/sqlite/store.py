"""The SQLite store: operations go to the writer, reads to the readers, and a routing hit is a read."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TypeVar, cast

from hermes_core.storage.sqlite.reads import PinnedReads, SqliteReads

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from concurrent.futures import Future, ThreadPoolExecutor
    from contextlib import AbstractContextManager

    from hermes_core.storage.sqlite.access import PluginTables
    from hermes_core.storage.sqlite.database import Database
    from hermes_core.storage.sqlite.janitor import Janitor
    from hermes_core.storage.sqlite.transaction import Reader
    from hermes_hookspecs.operations import GetOrCreate, Operation
    from hermes_hookspecs.ports.care import StoreCare
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.sessions import SessionEntry

__all__ = ["READ_THREADS", "SqliteStore"]

T = TypeVar("T")

ROUTING = "GetOrCreate"
"""The operation that is mostly a read; known by its name, so that programs that only read need not load it."""

READ_THREADS = 3
"""Threads for reads that are awaited; one reader connection stays free for callers that block."""


class SqliteStore(SqliteReads):
    """A store on one SQLite file, shared with any number of other processes. Thread-safe.

    :param database: opened with this package's schema; closed with the store.
    """

    name: str = "sqlite"
    durable: bool = True

    def __init__(self, database: Database) -> None:
        from threading import Lock

        self._database = database
        self.path = database.path
        self.location = database.path
        self._lock = Lock()
        self._threads: ThreadPoolExecutor | None = None
        self._tables: PluginTables | None = None
        self._closed = False
        self._process = os.getpid()

    def _view(self) -> AbstractContextManager[Reader]:
        return self._database.read()

    def apply(self, operation: Operation[T]) -> T:
        """Run one operation and return its result once it is durable; blocks.

        :raises HermesError: of the operation, which then wrote nothing, except after ``StoreOutcomeUnknown``.
        """
        from hermes_core.storage.sqlite.handlers.registry import prepare

        if type(operation).__name__ == ROUTING and _may_be_a_read(operation):
            entry = self._hit(cast("GetOrCreate", operation))  # the only operation that may be one
            if entry is not None:
                return cast("T", entry)  # what GetOrCreate returns
        return self._database.apply(prepare(operation))

    def submit(self, operation: Operation[T]) -> Future[T]:
        """Queue one operation; the future ends as :meth:`apply` would. Never blocks on the disk."""
        from hermes_core.storage.sqlite.handlers.registry import prepare

        if type(operation).__name__ == ROUTING and _may_be_a_read(operation):
            return self._executor().submit(self.apply, operation)
        return self._database.submit(prepare(operation))

    def perform(self, operation: Operation[T]) -> Awaitable[T]:
        """Queue one operation from the running event loop; each loop is woken once a group."""
        from hermes_core.storage.sqlite.handlers.registry import prepare

        if type(operation).__name__ == ROUTING and _may_be_a_read(operation):
            from asyncio import to_thread

            return to_thread(self.apply, operation)
        return self._database.submit_from_loop(prepare(operation))

    def _hit(self, operation: GetOrCreate) -> SessionEntry | None:
        """What the key leads to, when finding it is all there is to do."""
        from hermes_core.storage.sqlite.cleaning import clean
        from hermes_core.storage.sqlite.queries.routes import entry_of_key
        from hermes_hookspecs.operations import ACTIVITY_RESOLUTION_MS

        with self._database.read() as reader:
            entry = entry_of_key(reader, clean(operation.key))
        if entry is None or (operation.touch and operation.now - entry.updated_at >= ACTIVITY_RESOLUTION_MS):
            return None
        return entry

    def submit_read(self, read: Callable[[StoreReader], T]) -> Future[T]:
        """Run ``read`` on a thread of the store; all it reads is one consistent view."""
        return self._executor().submit(self._read_pinned, read)

    def _read_pinned(self, read: Callable[[StoreReader], T]) -> T:
        with self._database.read() as reader:
            return read(PinnedReads(self.path, reader))

    def _executor(self) -> ThreadPoolExecutor:
        from concurrent.futures import ThreadPoolExecutor

        from hermes_core.storage.sqlite.forks import born_inside
        from hermes_hookspecs.errors import StoreStopped

        if os.getpid() != self._process:
            raise StoreStopped(born_inside(self.path))
        with self._lock:
            if self._closed:
                raise StoreStopped(f"{self.path} is closed; open it again")
            if self._threads is None:
                self._threads = ThreadPoolExecutor(READ_THREADS, thread_name_prefix="hermes-sqlite-read")
            return self._threads

    def sqlite_access(self) -> PluginTables:
        """Where plugins keep tables of their own (:class:`~hermes_hookspecs.ports.sqlite.SqliteAccess`)."""
        from hermes_core.storage.sqlite.access import PluginTables

        with self._lock:
            if self._tables is None:
                self._tables = PluginTables(self._database)
            return self._tables

    def change_mark(self) -> int:
        """A number that changes when anybody, in any process, has committed; costs microseconds."""
        return self._database.data_version()

    def care(self) -> StoreCare:
        """What examines, repairs and copies this store."""
        from hermes_core.storage.sqlite.care import SqliteCare

        return SqliteCare(self._database)

    def janitor(self, chores: Sequence[Callable[[float], int]]) -> Janitor:
        """Who does chores for this file, in one process of all that have it open, not started yet."""
        from hermes_core.storage.sqlite.janitor import Janitor

        return Janitor(self.path, self.change_mark, chores)

    def integrity(self) -> list[str]:
        """What SQLite finds wrong with the file, nothing when it is sound; reads all of it."""
        return self._database.integrity()

    def close(self) -> None:
        """Finish what is queued and let go of everything; does nothing the second time, and in a forked child."""
        if os.getpid() != self._process:
            return
        with self._lock:
            if self._closed:
                return
            self._closed = True
            threads, self._threads = self._threads, None
            tables = self._tables
        if threads is not None:
            threads.shutdown()
        if tables is not None:
            tables.close()
        self._database.close()


def _may_be_a_read(operation: Operation[object]) -> bool:
    """Whether a routing operation asks for a route that may be there already."""
    return not getattr(operation, "force_new", True) and bool(getattr(operation, "bind", False))
