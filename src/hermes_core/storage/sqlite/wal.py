"""The -wal file as the writer sees it: is it still ours, and is it on disk.

This is the one place where a file of the database is opened beside SQLite. It is safe for the -wal alone,
because SQLite takes its locks on the database file and on the -shm: closing a plain descriptor of *those* drops
all locks of the process, and acknowledged rows were lost that way.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

if sys.platform == "darwin":
    import fcntl

__all__ = ["CAN_SYNC", "WalFile", "sync_to_disk"]

CAN_SYNC = sys.platform != "win32"
"""Whether the -wal can be synced apart from SQLite; otherwise COMMIT has to do it."""


SETTLED_S, SETTLED_COARSE_S = 0.1, 2.5
"""Age from which the times of a folder are believed: longer than the steps in which they are counted, which are a
timer's tick, or up to two seconds where the file system keeps whole seconds."""


def sync_to_disk(descriptor: int) -> None:
    """Return once the file's data is on the medium. Blocks for the disk.

    :raises OSError: it may or may not be there, and a second try can lie: the kernel may have dropped the pages.
    """
    if sys.platform == "darwin":
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    elif sys.platform != "win32":
        os.fdatasync(descriptor)


class WalFile:
    """The -wal of a database that this process has open in SQLite (so that nobody removes it rightfully).

    :param path: the database file.
    :param clock: UTC seconds, as the file system counts them.
    :raises OSError: there is no -wal.
    """

    def __init__(self, path: str, *, clock: Callable[[], float] = time.time) -> None:
        self._folder = os.path.dirname(path) or os.curdir
        self._clock = clock
        self._settled: tuple[int, ...] | None = None
        self._path = path
        self._wal_path = f"{path}-wal"
        self._descriptor = os.open(self._wal_path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        self._wal = _identity(os.fstat(self._descriptor))
        self._database = _identity(os.stat(path))

    def trouble(self) -> str | None:
        """What is wrong with the files on disk, as a clause; ``None`` when they are the ones SQLite has open (3 us).

        No file of a folder is replaced, renamed or removed without new times of the folder, so they are looked at only
        when the folder has changed. That spares more than the look: Linux (6.13) writes a file's time anew after
        somebody has asked for it, and a sync of a -wal whose time has just been asked for takes a third longer.
        """
        try:
            folder = os.stat(self._folder)
            times = (folder.st_mtime_ns, folder.st_ctime_ns, folder.st_ino, folder.st_dev)
            if times == self._settled:
                return None
            if _identity(os.stat(self._wal_path)) != self._wal:
                return f"{self._wal_path} was replaced by another file"
            if _identity(os.stat(self._path)) != self._database:
                return f"{self._path} was replaced by another file"
        except FileNotFoundError as error:
            return f"{error.filename} was removed"
        except OSError as error:
            return f"{error.filename} cannot be looked at ({error.strerror})"
        # A change that follows at once could leave the same times behind, where they are coarse.
        newest_ns = max(times[:2])
        settled_s = SETTLED_S if newest_ns % 1_000_000_000 else SETTLED_COARSE_S
        self._settled = times if self._clock() - newest_ns / 1e9 > settled_s else None
        return None

    def sync(self) -> None:
        """Put everything committed so far on disk; see :func:`sync_to_disk`."""
        sync_to_disk(self._descriptor)

    def close(self) -> None:
        """Close the descriptor; idempotent."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino
