"""One group's way to the disk: gate, BEGIN IMMEDIATE, operations, COMMIT, gate back, sync.

COMMIT runs without a sync of its own, so that other processes need not wait for our disk; the order of writes, sync and
answers is that of ``synchronous=FULL``, and so is the promise.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import apsw

from hermes_core.faultpoints import reach
from hermes_core.storage.sqlite.connection import WriterConnection
from hermes_core.storage.sqlite.files import side_file_refused
from hermes_core.storage.sqlite.forks import born_inside
from hermes_core.storage.sqlite.gate import Gate, gate_files
from hermes_core.storage.sqlite.group import Outcome, run_alone, run_group
from hermes_core.storage.sqlite.locks import describe_holders
from hermes_core.storage.sqlite.wal import CAN_SYNC, WalFile
from hermes_hookspecs.errors import StorageError, StoreBusy, StoreOutcomeUnknown, StoreStopped

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_core.storage.sqlite.transaction import Transaction

    Work = Callable[[Transaction], object]

__all__ = ["Committer"]

LONGEST_PAUSE_S = 0.01


class Committer:
    """The writing connection with its way through the gate; used by one thread at a time, made on first use.

    :param path: the database file, already migrated.
    :param user_version: the version it was opened with; a file that gets another is not written any more.
    :param durability: ``full`` or ``normal`` (a power cut may take the last rows).
    :param busy_timeout_s: how long SQLite's lock is waited for where nobody else sets a limit.
    :ivar is_queueing: whether the thread that commits waits in the gate, from where nothing calls it back.
    :ivar stopped: why nothing is written any more, ``None`` while all is well.
    """

    def __init__(self, path: str, *, user_version: int, durability: str, busy_timeout_s: float) -> None:
        self._path = path
        self._user_version = user_version
        self._sync = durability == "full" and CAN_SYNC
        self._synchronous = "FULL" if durability == "full" and not CAN_SYNC else "NORMAL"
        self._busy_timeout_s = busy_timeout_s
        self._parts: tuple[WriterConnection, Gate, WalFile] | None = None
        self.is_queueing = False
        self.stopped: str | None = None

    @property
    def wal_pages(self) -> int:
        """Pages in the -wal after the last commit."""
        parts = self._parts
        return parts[0].wal_pages if parts is not None else 0

    def commit_now(self, work: Work) -> Outcome | None:
        """Commit one operation if neither gate nor SQLite's lock is taken, else ``None``.

        :raises StoreStopped: nothing is written any more.
        :raises StorageError: the file cannot be opened for writing.
        :raises apsw.Error: BEGIN failed; nothing was written.
        """
        connection, gate, wal = self._ready()
        if not gate.try_acquire():
            return None
        try:
            self._verify_files(wal)
            try:
                connection.begin()
            except apsw.BusyError:
                return None
            try:
                self._verify_version(connection)
                outcome = run_alone(connection, work)
            finally:
                connection.rollback()
        finally:
            gate.release()
        if self._sync or outcome.lost_sync:
            return self._secure(wal, [outcome])[0]
        return outcome

    def commit(self, still_wanted: Callable[[], bool], take: Callable[[], Sequence[Work]]) -> list[Outcome]:
        """Commit a group; blocks as long as the gate does, and for SQLite's lock while it is wanted.

        :param still_wanted: asked while waiting for the lock; when false, nothing is done.
        :param take: the operations; asked when the lock is there, and from then on they are begun.
        :returns: outcomes of what was taken, in order.
        :raises StoreStopped: see :meth:`commit_now`; the same for the other errors.
        """
        connection, gate, wal = self._ready()
        if not gate.try_acquire():
            self.is_queueing = True
            try:
                gate.acquire()
            finally:
                self.is_queueing = False
        try:
            self._verify_files(wal)
            if not self._begin(connection, still_wanted):
                return []
            outcomes = self._run(connection, take)
        finally:
            gate.release()
        return self._secure(wal, outcomes)

    def _run(self, connection: WriterConnection, take: Callable[[], Sequence[Work]]) -> list[Outcome]:
        try:
            self._verify_version(connection)
            works = take()
            return run_group(connection, works, lambda: self._begin_again(connection)) if works else []
        finally:
            connection.rollback()

    def _begin(self, connection: WriterConnection, still_wanted: Callable[[], bool]) -> bool:
        """Take SQLite's lock; programs that do not know the gate may have it."""
        pause_s = 0.0005
        while True:
            try:
                connection.begin()
            except apsw.BusyError:
                if not still_wanted():
                    return False
                # Jitter, or two who wait would meet again and again.
                time.sleep(pause_s * (0.5 + os.urandom(1)[0] / 256))
                pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
            else:
                return True

    def _begin_again(self, connection: WriterConnection) -> None:
        deadline = time.monotonic() + self._busy_timeout_s
        if not self._begin(connection, lambda: time.monotonic() < deadline):
            raise self.busy_error()

    def busy_error(self, waited_s: float | None = None, *, maybe_written: bool = False) -> StoreBusy:
        """The error of somebody who waited too long, with the holder's process where the system tells.

        :param waited_s: his limit; ``None`` means the store's.
        """
        holder = describe_holders(f"{self._path}-shm", gate_files(self._path)[0]) or "another process"
        outcome = "it may still be written" if maybe_written else "nothing was written"
        limit_s = self._busy_timeout_s if waited_s is None else waited_s
        return StoreBusy(
            f"{self._path} was locked by {holder} for more than {limit_s:g} s; {outcome}", maybe_written=maybe_written
        )

    def _ready(self) -> tuple[WriterConnection, Gate, WalFile]:
        if self.stopped is not None:
            raise StoreStopped(self.stopped)
        if self._parts is None:
            try:
                gate = Gate(self._path)
            except OSError as error:
                raise side_file_refused(error) from error
            try:
                connection = WriterConnection(
                    self._path, synchronous=self._synchronous, patience_s=self._busy_timeout_s
                )
                self._parts = connection, gate, WalFile(self._path)
            except OSError as error:
                raise StorageError(f"{self._path} cannot be opened for writing: {error}") from error
        return self._parts

    def _verify_files(self, wal: WalFile) -> None:
        trouble = wal.trouble()
        if trouble is not None:
            self._stop(f"writing stopped: {trouble}; what is committed now would be lost. Open the store again")

    def _verify_version(self, connection: WriterConnection) -> None:
        version = connection.user_version()
        if version is not None and version != self._user_version:
            self._stop(
                f"writing stopped: {self._path} was given schema {version} by another version of the program "
                f"(this one has {self._user_version}); restart with that version"
            )

    def _stop(self, reason: str) -> None:
        self.stopped = reason
        raise StoreStopped(reason)

    def _secure(self, wal: WalFile, outcomes: list[Outcome]) -> list[Outcome]:
        """Put the group on disk, if one of it is to be kept; only then are its outcomes true.

        That holds for operations that found their row already there, too: another process may have committed it without
        having synced it yet.
        """
        reach("group.committed")
        lost = next((outcome.error for outcome in outcomes if outcome.lost_sync), None)
        if lost is None and self._sync and any(outcome.is_kept and outcome.error is None for outcome in outcomes):
            try:
                wal.sync()
            except OSError as error:
                lost = error
        if lost is not None:
            self.stopped = (
                f"writing stopped: a sync of {self._path} failed ({lost}). Check the disk, then open the store again"
            )
            return _taken_back(outcomes, f"the sync failed ({lost})", lost)
        # Somebody may have removed the log between the look at it and COMMIT.
        trouble = wal.trouble()
        if trouble is not None:
            self.stopped = f"writing stopped: {trouble}. Open the store again"
            return _taken_back(outcomes, trouble, None)
        reach("group.synced")
        return outcomes

    def close(self) -> None:
        """Close everything; idempotent. A stopped store's log is left as it is: it may be broken, or not ours."""
        parts, self._parts = self._parts, None
        if parts is not None:
            connection, gate, wal = parts
            connection.close(checkpoint=self.stopped is None)
            wal.close()
            gate.close()

    def leave_in_child(self) -> None:
        """In a forked child: close lock files and the -wal's descriptor, and write no more."""
        self.stopped = born_inside(self._path)
        if self._parts is not None:
            _, gate, wal = self._parts
            gate.close()
            wal.close()


def _taken_back(outcomes: list[Outcome], why: str, cause: BaseException | None) -> list[Outcome]:
    """The same outcomes, where nobody knows any more whether the successes are true."""
    return [outcome if outcome.error is not None else _unknown(why, cause) for outcome in outcomes]


def _unknown(why: str, cause: BaseException | None) -> Outcome:
    error = StoreOutcomeUnknown(f"{why}: it may or may not be there after the next start")
    error.__cause__ = cause
    return Outcome(error=error)
