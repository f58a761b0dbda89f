"""What happens to an open database in a forked child: nothing of SQLite is used or closed there.

A connection carried over a fork shares files with the parent but not its locks; closing it can take the -wal away
from under the parent. So the child keeps its copies open until it ends, and closes only what is ours: the lock files,
which would otherwise keep a dead parent's place, and the descriptor of the -wal.
"""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import apsw

__all__ = ["Forkable", "keep_open", "watch"]


class Forkable(Protocol):
    """Something that is told in the child."""

    def leave_in_child(self) -> None:
        """Let go of our own descriptors, keep SQLite's. Runs in the child before anything else; takes no locks."""


def watch(owner: Forkable) -> None:
    """Tell ``owner`` in every child that this process forks from now on, as long as it lives."""
    if not hasattr(os, "register_at_fork"):
        return
    known = weakref.ref(owner)

    def in_child() -> None:
        alive = known()
        if alive is not None:
            alive.leave_in_child()

    os.register_at_fork(after_in_child=in_child)


def keep_open(connection: apsw.Connection) -> None:
    """Keep a connection from being closed when the interpreter of this (forked) process ends.

    Costs nothing in children that end by ``os._exit`` or ``exec``, as those of multiprocessing and subprocess do.
    """
    import atexit  # only ever needed in a child

    atexit.register(_make_immortal, connection)


def _make_immortal(connection: apsw.Connection) -> None:
    import ctypes  # slow to import, and only children that end normally need it

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
