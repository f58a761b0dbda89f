"""One process owns an account: a file lock beside the store, which the system takes from the dead at once.

The file says who holds it, for people. It is never deleted: a lock on a file that is gone keeps nobody out.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Final

from hermes_core.config.places import file_name
from hermes_core.processes import current_process
from hermes_core.storage.sqlite.forks import watch
from hermes_hookspecs.errors import StorageError

if TYPE_CHECKING:
    from pathlib import Path

    from hermes_hookspecs.source import Entrance

__all__ = ["GATEWAY_FOLDER", "Ownership"]

GATEWAY_FOLDER: Final = "gateway"
"""Folder of a profile in which its gateways find each other."""

_MOST_BYTES = 4096


class Ownership:
    """The right of one process to receive and send for an account. Not thread-safe; blocks for a few system calls.

    :param folder: of the profile.
    """

    def __init__(self, folder: Path, entrance: Entrance) -> None:
        place = folder / GATEWAY_FOLDER
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path = place / f"owner-{file_name(entrance.platform)}-{file_name(entrance.account_id)}"
        self._descriptor = -1

    def take(self, now: int) -> bool:
        """Return whether this process owns the account from now on; a second call changes nothing.

        :raises StorageError: the file cannot be made, or the system has no such locks.
        """
        if self._descriptor >= 0:
            return True
        try:
            import fcntl
        except ImportError:
            raise StorageError("a gateway needs Linux or macOS: this system has no file locks") from None
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        except OSError as error:
            raise StorageError(f"{self._path} cannot be opened: {error.strerror}") from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        watch(self)
        me = current_process()
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, json.dumps({"pid": me.pid, "host": me.host, "since": now}).encode(), 0)
        return True

    def owner(self) -> str:
        """Return who owns the account, in words: ``process 812 on earth``; ``another process`` where nobody says."""
        try:
            with self._path.open("rb") as file:
                held = json.loads(file.read(_MOST_BYTES))
            return f"process {int(held['pid'])} on {held['host']}"
        except (OSError, ValueError, TypeError, KeyError):
            return "another process"

    def release(self) -> None:
        """Let others have the account; idempotent."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def leave_in_child(self) -> None:
        """Let go in a forked child: an orphan must not keep a dead parent's account."""
        self.release()
