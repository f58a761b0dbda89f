"""The gate: fairness between the processes that write to one database.

SQLite's own waiting starves some for seconds. Two flocks in series, *next* and then *main*, make a queue: who has
*next* is first in line, the kernel wakes one waiter at a time, and a crash frees both. The gate is fairness
only; SQLite's lock is the safety, so a program that does not know the gate does no harm.

The side files are made once and never deleted: two processes with a deleted and a new file would both hold "the"
lock. They are closed in forked children, which would otherwise keep a dead parent's lock.

Where the system has no ``flock`` (Windows) there is no gate, and SQLite's busy handler alone remains.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress

if sys.platform != "win32":
    import fcntl

__all__ = ["Gate", "OpenMark", "SideFile", "gate_files"]

HAS_FLOCK = sys.platform != "win32"
POLL_S = 0.001
MADE = b"a database was made here\n"


def gate_files(path: str) -> tuple[str, str]:
    """Side files of a database's gate, first the one that the process inside holds, then the next one's."""
    return f"{path}-gate", f"{path}-gate-next"


def _open_side_file(path: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
    return os.open(path, flags, 0o600)


class SideFile:
    """One file to lock. A lock belongs to this object's open file, not to the process.

    :ivar descriptor: of the open file, -1 once it is closed.
    """

    descriptor = -1

    def __init__(self, path: str) -> None:
        self.descriptor = _open_side_file(path)

    def lock(self, *, shared: bool = False, wait: bool = True) -> bool:
        """Lock it; false when it is taken and ``wait`` is not set."""
        if sys.platform != "win32":
            how = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
            try:
                fcntl.flock(self.descriptor, how)
            except BlockingIOError:
                return False
        return True

    def unlock(self) -> None:
        """Let go of it."""
        if sys.platform != "win32":
            fcntl.flock(self.descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Close it, which also lets go; idempotent."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()


class Gate:
    """One way through the gate, for one thread at a time; each holder of the same process needs its own.

    :param path: the database file.
    :raises OSError: the side files cannot be made or opened.
    """

    def __init__(self, path: str) -> None:
        main, following = gate_files(path)
        self._next = SideFile(following)
        self._main = SideFile(main)

    def acquire(self) -> None:
        """Queue up and go in. Blocks without limit: only threads that nobody waits for directly may call it."""
        self._next.lock()
        try:
            self._main.lock()
        finally:
            self._next.unlock()

    def try_acquire(self) -> bool:
        """Go in if nobody is inside or waiting (about 3 us); never blocks."""
        if sys.platform == "win32":
            return True
        # The four calls themselves: every commit of a lone caller makes them.
        flock, following = fcntl.flock, self._next.descriptor
        try:
            flock(following, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        try:
            flock(self._main.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            flock(following, fcntl.LOCK_UN)
        return True

    def acquire_until(self, deadline: float) -> bool:
        """Go in before ``deadline`` (``time.monotonic`` seconds), else false.

        Polls, since flock knows no time limit, and so is overtaken by those who queue: for opening only.
        """
        while not self._next.lock(wait=False):
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_S)
        try:
            while not self._main.lock(wait=False):
                if time.monotonic() >= deadline:
                    return False
                time.sleep(POLL_S)
            return True
        finally:
            self._next.unlock()

    def release(self) -> None:
        """Come out."""
        self._main.unlock()

    def close(self) -> None:
        """Close the descriptors, which also lets go; idempotent."""
        self._next.close()
        self._main.close()


class OpenMark:
    """Says that a process has the database open: a migration that older programs would not survive waits for them.

    Its file also tells an emptied database from one that was never made.

    :param path: the database file; the mark is a shared flock on ``<path>-open``.
    """

    def __init__(self, path: str) -> None:
        self.path = f"{path}-open"
        self._file = SideFile(self.path)

    def share_until(self, deadline: float) -> bool:
        """Mark it as open; waits for a migration that needs the database for itself."""
        return self._lock_until(deadline, shared=True)

    def claim_until(self, deadline: float) -> bool:
        """Have the database for oneself: true once nobody else has it open. Gives one's own mark up meanwhile."""
        return self._lock_until(deadline, shared=False)

    def _lock_until(self, deadline: float, *, shared: bool) -> bool:
        while not self._file.lock(shared=shared, wait=False):
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL_S)
        return True

    @property
    def was_made(self) -> bool:
        """Whether a whole database has stood here before."""
        return os.fstat(self._file.descriptor).st_size > 0

    def note_made(self) -> None:
        """Remember that a whole database stands here; a disk that is full is no reason to complain."""
        if not self.was_made:
            with suppress(OSError):
                os.write(self._file.descriptor, MADE)

    def forget_made(self) -> None:
        """A database is about to be made anew."""
        os.ftruncate(self._file.descriptor, 0)

    def close(self) -> None:
        """Take the mark away; idempotent."""
        self._file.close()
