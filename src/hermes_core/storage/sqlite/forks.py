"""What happens to an open database in a forked child: nothing of SQLite is used or closed there.

A connection carried over a fork shares files with the parent but not its locks. What the child keeps of it is closed
with the interpreter at the latest, without a checkpoint (see :func:`~hermes_core.storage.sqlite.connection.connect`),
and so takes nothing away. What is ours is closed at once: the lock files, which would otherwise keep a dead parent's
place, and the descriptor of the -wal.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol

__all__ = ["Forkable", "watch"]


class Forkable(Protocol):
    """Something that is told in the child."""

    def leave_in_child(self) -> None:
        """Let go of our own descriptors. Runs in the child before anything else; takes no locks."""


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
