"""One SQLite file, ready for use: who opens it, writes to it, reads from it and closes it."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, TypeVar

import apsw

from hermes_core.storage.sqlite import files, forks, migrate
from hermes_core.storage.sqlite.checkpoint import Checkpointer
from hermes_core.storage.sqlite.committer import Committer
from hermes_core.storage.sqlite.connection import Connection, connect, disconnect, number, translate
from hermes_core.storage.sqlite.gate import OpenMark
from hermes_core.storage.sqlite.readers import Readers, Reading
from hermes_core.storage.sqlite.soundness import damage
from hermes_core.storage.sqlite.writer import Writer
from hermes_hookspecs.errors import StorageError, StoreBusy, StoreRefused, StoreStopped

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from concurrent.futures import Future
    from contextlib import AbstractContextManager

    from hermes_core.storage.sqlite.group import Outcome
    from hermes_core.storage.sqlite.migrate import Schema
    from hermes_core.storage.sqlite.transaction import Reader, Transaction

__all__ = ["Database"]

T = TypeVar("T")


class Database:
    """One SQLite file: a writer thread, a pool of readers, the gate between processes. Thread-safe.

    Made by :meth:`open`. A forked child can neither use it nor open the file again; a fresh process can.

    :ivar path: the file, absolute, links resolved.
    :ivar sqlite_version: of the library in use.
    """

    def __init__(
        self,
        opened: forks.OpenFile,
        *,
        user_version: int,
        mark: OpenMark,
        durability: str,
        busy_timeout_s: float,
        readers: int,
    ) -> None:
        self.path = path = opened.path
        self._opened = opened
        self.sqlite_version = apsw.sqlite_lib_version()
        self._busy_timeout_s = busy_timeout_s
        self._mark = mark
        self._process = os.getpid()
        self._closed = False
        self._readers = Readers(path, limit=readers, patience_s=busy_timeout_s)
        self._checkpointer = Checkpointer(path)
        self._writer = Writer(
            path,
            Committer(path, user_version=user_version, durability=durability, busy_timeout_s=busy_timeout_s),
            busy_timeout_s=busy_timeout_s,
            grown=self._checkpointer.notice,
        )
        self._watching = threading.Lock()
        self._watch: Connection | None = None
        forks.watch(self)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        schema: Schema,
        durability: str = "full",
        busy_timeout_s: float = 20.0,
        readers: int = 4,
    ) -> Database:
        """Open the file, made, migrated and mended if need be. Blocks; a file that needs nothing takes no lock.

        :param durability: ``full``: an answered operation survives a power cut; ``normal``: the last ones may not.
        :param busy_timeout_s: how long anything here waits for another process.
        :param readers: most reads at the same time.
        :raises StoreRefused: the place or the file is unfit, not ours, or newer, or was open in the process that this
            one was forked from; nothing was touched.
        :raises StoreBusy: another process kept the file locked.
        :raises StoreDamaged: the file is broken.
        """
        if durability not in {"full", "normal"}:
            raise StoreRefused(f"durability {durability!r} is unknown; it is full or normal")
        files.check_sqlite(apsw.sqlite_lib_version())
        resolved = files.absolute(path)
        files.check_file_system(resolved)
        files.prepare_folder(resolved)
        opened = forks.OpenFile(resolved)
        mark = None
        try:
            found = files.inspect(resolved, application_id=schema.application_id, newest=schema.newest)
            deadline = time.monotonic() + busy_timeout_s
            mark = _mark(resolved, deadline)
            connection = _first_connection(resolved, schema, mark, deadline=deadline, fresh=found is None)
            opened.made()
            mark.note_made()
            database = cls(
                opened,
                user_version=schema.newest,
                mark=mark,
                durability=durability,
                busy_timeout_s=busy_timeout_s,
                readers=readers,
            )
        except BaseException:
            if mark is not None:
                mark.close()
            opened.left()
            raise
        database._readers.adopt(connection)
        return database

    def submit(self, work: Callable[[Transaction], T]) -> Future[T]:
        """Queue an operation for the writer; never blocks.

        :param work: a pure function of what it is given: it may be run more than once, and must not begin or end
            transactions. Ids, times and random parts are made before.
        :returns: resolved only when the operation is committed and, with durability ``full``, on disk. Cancelling
            it before it has begun takes it back.
        :raises StoreStopped: the store takes no writes (closed, forked, failed sync, replaced file, newer schema).
        """
        self._check()
        # The future that carries T out is the one that carries T in.
        return self._writer.submit(work)  # type: ignore[return-value]  # Future is invariant, the queue holds objects

    def submit_from_loop(self, work: Callable[[Transaction], T]) -> asyncio.Future[T]:
        """Like :meth:`submit`, for a coroutine of the running event loop: ``await db.submit_from_loop(work)``.

        Several times quicker under load than wrapping the other future, because a group wakes its loop once.
        Cancelling the future after the operation has begun does not stop the operation.

        :raises StoreStopped: the store takes no writes.
        """
        self._check()
        return self._writer.submit_from_loop(work)  # type: ignore[return-value]  # as in submit

    def apply(self, work: Callable[[Transaction], T], *, timeout_s: float | None = None) -> T:
        """Run an operation and wait for its outcome; see :meth:`submit`.

        Off the main thread it commits in the caller's thread when nobody else is at work, which is quicker.

        :param timeout_s: how long to wait; ``None`` means the store's ``busy_timeout_s``.
        :raises StoreBusy: not done in time; with ``maybe_written`` it had begun and may still be committed.
        :raises StoreOutcomeUnknown: COMMIT or sync failed.
        :raises StoreFull: no space, nothing of it was written.
        :raises StoreStopped: the store takes no writes.
        """
        self._check()
        thread = threading.get_ident()
        if self._writer.owner == thread:
            raise StorageError("an operation called the store it runs in; it has to use the transaction it was given")
        if thread != threading.main_thread().ident:
            outcome = self._writer.try_inline(work, thread)
            if outcome is not None:
                if outcome.error is not None:
                    raise outcome.error
                return outcome.value  # type: ignore[return-value]  # what work returned, carried as object
        return self._call(work, self._busy_timeout_s if timeout_s is None else timeout_s)

    def _call(self, work: Callable[[Transaction], T], timeout_s: float) -> T:
        request = self._writer.call(work)
        try:
            outcome = request.wait(timeout_s)
        except KeyboardInterrupt:
            request.take_back()
            raise
        if outcome is None:
            raise self._writer.busy_error(timeout_s, maybe_written=not request.take_back())
        return _value(outcome)  # type: ignore[return-value]  # what work returned, carried as object

    def read(self) -> AbstractContextManager[Reader]:
        """A short read transaction; blocks while all readers are in use. Give no rows out lazily from inside.

        :raises StoreBusy: all readers were busy for ``busy_timeout_s``.
        :raises StoreStopped: closed, or forked.
        """
        return Reading(self._readers, self._check)

    def data_version(self) -> int:
        """A number that changes whenever anybody, in this process or another, has committed (3 us).

        Compare only numbers of the same :class:`Database`.
        """
        self._check()
        with self._watching:
            if self._watch is None:
                self._watch = connect(self.path, busy_timeout_s=self._busy_timeout_s, query_only=True)
            with self._watch.inside:
                return number(self._watch, "PRAGMA data_version")

    def checkpoint(self) -> None:
        """Move what can be moved from the -wal into the file, without waiting for anybody; blocks for the disk."""
        self._check()
        self._checkpointer.passive()

    def integrity(self) -> list[str]:
        """What SQLite's quick check finds wrong with the file, ``[]`` when it is sound. Reads all of it; blocks.

        :raises StoreBusy: the file cannot be read now.
        """
        self._check()
        try:
            connection = connect(self.path, busy_timeout_s=self._busy_timeout_s, query_only=True)
            try:
                with connection.inside:
                    return damage(connection)
            finally:
                disconnect(connection, checkpoint=False)
        except (apsw.CorruptError, apsw.NotADBError) as error:
            return [str(error)]
        except apsw.Error as error:
            raise translate(error, f"{self.path} cannot be checked") from error

    def close(self) -> None:
        """Write what is queued and close everything; waits about ``busy_timeout_s`` at most. Idempotent."""
        if os.getpid() != self._process:
            return
        first, self._closed = not self._closed, True
        self._writer.close()
        # The last connection to be closed moves the log into the file; never when the log is in doubt.
        sound = not self._writer.has_stopped
        self._checkpointer.close(self._busy_timeout_s, checkpoint=sound)
        with self._watching:
            watch, self._watch = self._watch, None
        if watch is not None:
            disconnect(watch, checkpoint=sound)
        # A read that is still under way keeps the file open.
        if self._readers.close(checkpoint=sound) and first and not self._writer.is_abandoned:
            self._opened.left()
        self._mark.close()

    def leave_in_child(self) -> None:
        """Told in a forked child, see :mod:`~hermes_core.storage.sqlite.forks`."""
        self._mark.close()
        self._writer.leave_in_child()
        self._checkpointer.leave_in_child()
        self._readers.leave_in_child()

    def _check(self) -> None:
        if os.getpid() != self._process:
            raise StoreStopped(forks.born_inside(self.path))
        if self._closed:
            raise StoreStopped(f"{self.path} is closed; open it again")


def _value(outcome: Outcome) -> object:
    if outcome.error is not None:
        raise outcome.error
    return outcome.value


def _mark(path: str, deadline: float) -> OpenMark:
    try:
        mark = OpenMark(path)
    except OSError as error:
        raise files.side_file_refused(error) from error
    if not mark.share_until(deadline):
        mark.close()
        raise StoreBusy(f"{path} could not be opened in time: another process is migrating it")
    return mark


def _first_connection(path: str, schema: Schema, mark: OpenMark, *, deadline: float, fresh: bool) -> Connection:
    """A reader's connection to a file that is as this program wants it; made so behind the gate where it is not."""
    patience_s = max(0.1, deadline - time.monotonic())
    if fresh:
        migrate.bring_up(path, schema, mark, deadline=deadline)
    for last in (False, True):
        try:
            connection = connect(path, busy_timeout_s=patience_s, query_only=True)
            with connection.inside:
                current = migrate.is_current(connection, schema)
            if current:
                return connection
        except apsw.Error as error:
            raise translate(error, f"{path} cannot be opened") from error
        disconnect(connection, checkpoint=False)
        if not last:
            migrate.bring_up(path, schema, mark, deadline=deadline)
    raise StoreStopped(f"{path} is being changed by another version of the program; try again")
