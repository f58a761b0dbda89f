"""The writer: every change of a database file goes through it, many operations in one transaction.

The way of a group::

    queue -> gate -> BEGIN IMMEDIATE -> operations -> COMMIT -> gate back -> sync of the -wal -> answers

COMMIT runs without a sync of its own, so that other processes need not wait for our disk; the order of writes, sync and
answers is that of ``synchronous=FULL``, and so is the promise. Nobody is answered before his row is durable.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

import apsw

from hermes_core.storage.sqlite.connection import WriterConnection, translate
from hermes_core.storage.sqlite.gate import HAS_FLOCK, Gate, gate_files
from hermes_core.storage.sqlite.group import Outcome, run_group
from hermes_core.storage.sqlite.locks import describe_holders
from hermes_core.storage.sqlite.wal import CAN_SYNC, WalFile
from hermes_hookspecs.errors import StorageError, StoreBusy, StoreOutcomeUnknown, StoreStopped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from concurrent.futures import Future
    from queue import SimpleQueue

    from hermes_core.storage.sqlite.transaction import Transaction

    Work = Callable[[Transaction], object]

__all__ = ["Writer"]

GROUP_LIMIT = 128
LONGEST_PAUSE_S = 0.01


class _Request:
    """A queued operation: who waits for it, and until when it may still begin (``time.monotonic`` seconds)."""

    __slots__ = ("begun", "future", "until", "work")

    def __init__(self, work: Work, future: Future[object], until: float) -> None:
        self.work = work
        self.future = future
        self.until = until
        self.begun = False


class Writer:
    """One per process and database: a thread, its connection, its way through the gate. Thread-safe.

    Connection and thread are made for the first operation, so that programs that only read pay nothing.

    :param path: the database file, already migrated.
    :param user_version: the version it was opened with; a file that gets another is not written any more.
    :param durability: ``full`` or ``normal`` (a power cut may take the last rows).
    :param busy_timeout_s: how long a queued operation may wait for SQLite's lock.
    :param grown: told after each group how many pages the -wal has.
    """

    def __init__(
        self, path: str, *, user_version: int, durability: str, busy_timeout_s: float, grown: Callable[[int], None]
    ) -> None:
        self._path = path
        self._user_version = user_version
        self._sync = durability == "full" and CAN_SYNC
        self._synchronous = "FULL" if durability == "full" and not CAN_SYNC else "NORMAL"
        self._busy_timeout_s = busy_timeout_s
        self._grown = grown
        # Who holds it uses the connection: the thread for a group, or a caller that commits inline.
        self._lock = threading.Lock()
        self._owner = 0
        self._connection: WriterConnection | None = None
        self._gate: Gate | None = None
        self._wal: WalFile | None = None
        self._queue: SimpleQueue[_Request | None] | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._closing = False
        self._abandoned = False
        self._stopped: str | None = None

    def check(self) -> None:
        """Return if operations are still taken.

        :raises StoreStopped: with the reason.
        """
        if self._stopped is not None:
            raise StoreStopped(self._stopped)
        if self._closing:
            raise StoreStopped(f"{self._path} is closed; open it again")

    def submit(self, work: Work) -> Future[object]:
        """Queue an operation; the thread does the rest.

        :raises StoreStopped: nothing is written any more.
        """
        from concurrent.futures import Future  # noqa: PLC0415 - it brings logging along, and readers need neither

        future: Future[object] = Future()
        request = _Request(work, future, time.monotonic() + self._busy_timeout_s)
        with self._starting:
            self.check()
            if self._queue is None:
                self._start()
            if self._queue is not None:
                self._queue.put(request)
        return future

    def _start(self) -> None:
        import atexit  # noqa: PLC0415
        from queue import SimpleQueue  # noqa: PLC0415

        queue: SimpleQueue[_Request | None] = SimpleQueue()
        thread = threading.Thread(target=self._work, args=(queue,), name="hermes-writer", daemon=True)
        thread.start()
        # A daemon, so that a stuck disk never keeps the program from ending; what is queued at the end is still written.
        atexit.register(self.close)
        self._queue, self._thread = queue, thread

    def try_inline(self, work: Work) -> Outcome | None:
        """Commit in the caller's thread if nobody else is at work; ``None`` where the operation has to be queued.

        Not for the main thread: Ctrl-C there can fall between two steps and leave a transaction open.

        :raises StorageError: the store cannot write at all.
        """
        queue = self._queue
        if (queue is not None and not queue.empty()) or not self._lock.acquire(blocking=False):
            return None
        try:
            self._owner = threading.get_ident()
            self.check()
            return self._commit_inline(work)
        finally:
            self._owner = 0
            self._lock.release()

    def _commit_inline(self, work: Work) -> Outcome | None:
        connection, gate, wal = self._ready()
        if not gate.try_acquire():
            return None
        try:
            self._verify_files(wal)
            try:
                connection.begin()
            except apsw.BusyError:
                return None
            self._verify_version(connection)
            outcomes = run_group(connection, [work], connection.begin)
        finally:
            gate.release()
        return self._secure(wal, outcomes)[0]

    @property
    def is_own_thread(self) -> bool:
        """Whether the calling thread is inside an operation, from where waiting for another one would never end."""
        return self._owner == threading.get_ident()

    def _work(self, queue: SimpleQueue[_Request | None]) -> None:
        """The thread: groups of what has piled up while the one before was committed."""
        from queue import Empty  # noqa: PLC0415

        going_on = True
        while going_on:
            group: list[_Request] = []
            request = queue.get()
            try:
                while request is not None:
                    group.append(request)
                    if len(group) == GROUP_LIMIT:
                        break
                    request = queue.get_nowait()
                else:
                    going_on = False
            except Empty:
                pass
            if group:
                self._serve(group)
                self._notice()
            # Otherwise the last group's operations would live on while the thread waits.
            del group, request

    def _serve(self, group: list[_Request]) -> None:
        """Commit one group and answer everybody in it, whatever happens."""
        outcomes: list[Outcome]
        begun: list[_Request] = []
        try:
            with self._lock:
                self._owner = threading.get_ident()
                try:
                    self.check_stopped()
                    outcomes = self._commit_group(group, begun)
                finally:
                    self._owner = 0
        except BaseException as error:  # noqa: BLE001 - nobody may be left waiting
            failure = translate(error, "the store cannot write")
            begun = [request for request in group if request.begun or _begin_future(request)]
            outcomes = [Outcome(error=failure) for _ in begun]
        for request, outcome in zip(begun, outcomes, strict=True):
            if outcome.error is not None:
                request.future.set_exception(outcome.error)
            else:
                request.future.set_result(outcome.value)

    def check_stopped(self) -> None:
        """Like :meth:`check`, for what was queued before the store was closed."""
        if self._stopped is not None:
            raise StoreStopped(self._stopped)

    def _commit_group(self, group: list[_Request], begun: list[_Request]) -> list[Outcome]:
        connection, gate, wal = self._ready()
        gate.acquire()
        try:
            self._verify_files(wal)
            if not self._begin_for(group, connection):
                return []
            try:
                self._verify_version(connection)
                begun.extend(request for request in group if _begin_future(request))
                if not begun:
                    return []
                outcomes = run_group(connection, [request.work for request in begun], self._begin_again)
            finally:
                connection.rollback()
        finally:
            gate.release()
        return self._secure(wal, outcomes)

    def _begin_for(self, group: list[_Request], connection: WriterConnection) -> bool:
        """Begin, however long it takes, while somebody of the group still wants it."""
        pause_s = 0.0005
        while True:
            try:
                connection.begin()
            except apsw.BusyError:
                now = time.monotonic()
                for request in group:
                    if request.until < now and _begin_future(request):
                        request.future.set_exception(self.busy_error())
                if self._abandoned or all(request.future.done() for request in group):
                    return False
                time.sleep(pause_s * (0.5 + os.urandom(1)[0] / 256))
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
            else:
                return True

    def _begin_again(self) -> None:
        """Begin after a rollback, still inside the gate; only programs that do not know the gate can be in the way."""
        connection, _, _ = self._ready()
        deadline = time.monotonic() + self._busy_timeout_s
        while True:
            try:
                connection.begin()
            except apsw.BusyError:
                if time.monotonic() > deadline:
                    raise self.busy_error() from None
                time.sleep(LONGEST_PAUSE_S * os.urandom(1)[0] / 256)
            else:
                return

    def busy_error(self, *, maybe_written: bool = False) -> StoreBusy:
        """The error of somebody who waited too long, with the holder's process where the system tells."""
        locked = (f"{self._path}-shm", *(gate_files(self._path)[:1] if HAS_FLOCK else ()))
        holder = describe_holders(*locked) or "another process"
        outcome = "it may still be written" if maybe_written else "nothing was written"
        return StoreBusy(
            f"{self._path} is locked by {holder} for more than {self._busy_timeout_s:g} s; {outcome}",
            maybe_written=maybe_written,
        )

    def _ready(self) -> tuple[WriterConnection, Gate, WalFile]:
        """Connection, gate and -wal; made by whoever comes first, with the lock held."""
        if self._connection is None or self._gate is None or self._wal is None:
            try:
                gate = Gate(self._path)
                connection = WriterConnection(self._path, synchronous=self._synchronous)
                # The first look into the file makes SQLite open the -wal.
                connection.user_version()
                self._connection, self._gate, self._wal = connection, gate, WalFile(self._path)
            except OSError as error:
                raise StorageError(f"{self._path} cannot be opened for writing: {error}") from error
        return self._connection, self._gate, self._wal

    def _verify_files(self, wal: WalFile) -> None:
        trouble = wal.trouble()
        if trouble is not None:
            self._stop(f"writing stopped: {trouble}; what is committed now would be lost. Open the store again")

    def _verify_version(self, connection: WriterConnection) -> None:
        version = connection.user_version()
        if version is not None and version != self._user_version:
            connection.rollback()
            self._stop(
                f"writing stopped: {self._path} was given schema {version} by another version of the program "
                f"(this one has {self._user_version}); restart with that version"
            )

    def _stop(self, reason: str) -> None:
        self._stopped = reason
        raise StoreStopped(reason)

    def _secure(self, wal: WalFile, outcomes: list[Outcome]) -> list[Outcome]:
        """Put the group on disk; only then are its outcomes true."""
        failure: BaseException | None = None
        if any(outcome.lost_sync for outcome in outcomes):
            failure = next(outcome.error for outcome in outcomes if outcome.lost_sync)
        elif self._sync and any(outcome.error is None for outcome in outcomes):
            try:
                wal.sync()
            except OSError as error:
                failure = error
        if failure is None:
            return outcomes
        self._stopped = f"writing stopped: a sync of {self._path} failed ({failure}). Check the disk, then open the store again"
        return [outcome if outcome.error is not None else _unknown(failure) for outcome in outcomes]

    def _notice(self) -> None:
        if self._connection is not None:
            self._grown(self._connection.wal_pages)

    def notice_inline(self) -> None:
        """What the thread does after its groups, for a caller that committed inline."""
        self._notice()

    def close(self) -> None:
        """Write what is queued, then close; waits at most the busy timeout. Idempotent."""
        import atexit  # noqa: PLC0415

        with self._starting:
            first, self._closing = not self._closing, True
            if first and self._queue is not None:
                self._queue.put(None)
        if self._thread is not None:
            self._thread.join(self._busy_timeout_s)
            if self._thread.is_alive():
                self._abandoned = True
                self._refuse_queued()
                return
            atexit.unregister(self.close)
        if self._lock.acquire(timeout=self._busy_timeout_s):
            try:
                self._close_connection()
            finally:
                self._lock.release()

    def _refuse_queued(self) -> None:
        """Answer those whom the stuck thread will never serve."""
        from queue import Empty  # noqa: PLC0415

        try:
            while self._queue is not None:
                request = self._queue.get_nowait()
                if request is not None and _begin_future(request):
                    request.future.set_exception(self.busy_error())
        except Empty:
            pass

    def _close_connection(self) -> None:
        for part in (self._connection, self._wal, self._gate):
            if part is not None:
                part.close()
        self._connection = self._wal = self._gate = None

    def leave_in_child(self, keep: Callable[[apsw.Connection], None]) -> None:
        """In a forked child: take nothing any more, close lock files and the -wal's descriptor, keep the connection."""
        self._stopped = f"{self._path} was opened before this process was forked; open it again in the child"
        if self._gate is not None:
            self._gate.close()
        if self._wal is not None:
            self._wal.close()
        if self._connection is not None:
            keep(self._connection.raw)


def _begin_future(request: _Request) -> bool:
    """Mark it as begun, after which its caller cannot take it back; false when he has done so, or was answered."""
    if request.begun or request.future.done() or not request.future.set_running_or_notify_cancel():
        return False
    request.begun = True
    return True


def _unknown(cause: BaseException) -> Outcome:
    error = StoreOutcomeUnknown(f"the sync failed ({cause}): it may or may not be there after the next start")
    error.__cause__ = cause
    return Outcome(error=error)
