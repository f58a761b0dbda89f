"""Moving the -wal's pages into the database file, beside the writer and never in an answer's way.

Only passive checkpoints: they wait for nobody and remove nothing. While others write, a passive one never reaches
the end of the log, so a second one follows behind the gate, where nobody writes; then the next commit starts the
log anew instead of letting it grow.
"""

from __future__ import annotations

import threading
import time

import apsw

from hermes_core.storage.sqlite.connection import Connection, connect, disconnect
from hermes_core.storage.sqlite.gate import Gate

__all__ = ["Checkpointer"]

LIMIT_PAGES = 1024
"""Pages in the log that start a checkpoint; 4 MiB with SQLite's page of 4 KiB."""


PATIENCE_S = 5.0


class Checkpointer:
    """Checkpoints one database in a thread of its own when the writer says that the log has grown.

    :param path: the database file, opened on first use.
    :param limit_pages: how long the log may become.
    """

    def __init__(self, path: str, *, limit_pages: int = LIMIT_PAGES) -> None:
        self._path = path
        self._limit = limit_pages
        self._due = limit_pages
        self._busy = threading.Lock()
        self._thread: threading.Thread | None = None
        self._connection: Connection | None = None
        self._gate: Gate | None = None
        self._closed = False

    def notice(self, pages: int) -> None:
        """Told by the writer after each group how long the log is; cheap, never blocks."""
        if pages < self._due - self._limit:
            self._due = self._limit
        if pages < self._due or self._closed or (self._thread is not None and self._thread.is_alive()):
            return
        # A reader may keep the log from being emptied: try again only when it has grown as much once more.
        self._due = pages + self._limit
        self._thread = threading.Thread(target=self._in_two_phases, name="hermes-checkpoint", daemon=True)
        self._thread.start()

    def passive(self) -> None:
        """Checkpoint what can be without waiting for readers or writers; blocks for the disk."""
        with self._busy:
            self._passive()

    def _in_two_phases(self) -> None:
        with self._busy:
            if not self._passive():
                return
            try:
                self._gate = self._gate or Gate(self._path)
            except OSError:
                return
            if self._gate.acquire_until(time.monotonic() + PATIENCE_S):
                try:
                    self._passive()
                finally:
                    self._gate.release()

    def _passive(self) -> bool:
        """Checkpoint; false where that could not be done now. What readers still need stays in the log."""
        if self._closed:
            return False
        try:
            if self._connection is None:
                self._connection = connect(self._path, busy_timeout_s=PATIENCE_S)
            # A passive checkpoint never calls the busy handler.
            with self._connection.inside:
                self._connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        except (apsw.BusyError, apsw.FullError, apsw.IOError):
            # Somebody else is checkpointing, or there is no space to move to: everything is still in the log.
            return False
        return True

    def close(self, timeout_s: float, *, checkpoint: bool = True) -> None:
        """Wait for a running checkpoint and close its connection; idempotent.

        :param checkpoint: see :func:`~hermes_core.storage.sqlite.connection.disconnect`.
        """
        self._closed = True
        thread = self._thread
        if thread is not None:
            thread.join(timeout_s)
        if self._busy.acquire(timeout=timeout_s):
            try:
                if self._connection is not None:
                    disconnect(self._connection, checkpoint=checkpoint)
                if self._gate is not None:
                    self._gate.close()
            finally:
                self._busy.release()

    def leave_in_child(self) -> None:
        """In a forked child: close the lock's descriptors."""
        if self._gate is not None:
            self._gate.close()
