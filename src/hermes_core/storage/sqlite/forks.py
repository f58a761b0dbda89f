"""Forks: what is true of an open database in the child, and why the child may not have it at all.

SQLite keeps its locks per process and file, in tables that a fork copies: a child that opened the same file again would
believe that it holds locks which the kernel never gave it, and acknowledged rows were lost that way. So whoever was
forked from a process that had a file open is refused that file (:class:`OpenFile`), until it runs a program of its own.

What the child keeps of SQLite is closed with the interpreter at the latest, without a checkpoint (see
:func:`~hermes_core.storage.sqlite.connection.connect`), and so takes nothing away. That needs SQLite's mutexes, and
must find no transaction to undo: a fork waits until no thread is inside SQLite or inside a writing transaction. What
is ours is closed at once: lock files, which would otherwise keep a dead parent's place, and the descriptor of the -wal.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from functools import cache
from typing import TYPE_CHECKING, Protocol

from hermes_hookspecs.errors import StoreRefused

if TYPE_CHECKING:
    from _thread import RLock
    from collections.abc import Iterator

__all__ = ["Forkable", "OpenFile", "born_inside", "moving", "quiet", "watch"]

PATIENCE_S = 5.0
"""How long a fork waits for threads inside SQLite; then it happens all the same."""

FRESH = "start a fresh process instead (spawn, subprocess, exec)"

# One per process image, as SQLite's own tables are; a fork copies them as it copies those.
moving = threading.RLock()
"""Held while a connection is made; what is listed below changes only under it."""
_insides: weakref.WeakSet[RLock] = weakref.WeakSet()
_owners: weakref.WeakSet[Forkable] = weakref.WeakSet()
_open: list[OpenFile] = []
_held: list[RLock] = []


class Forkable(Protocol):
    """Something that is told in the child."""

    def leave_in_child(self) -> None:
        """Let go of our own descriptors. Runs in the child before anything else; takes no locks."""


class OpenFile:
    """A database file that this process has open, or is about to open.

    :param path: absolute, links resolved.
    :raises StoreRefused: a process that this one was forked from had it open.
    """

    __slots__ = ("_identity", "_process", "path")

    def __init__(self, path: str) -> None:
        self.path = path
        self._process = os.getpid()
        self._identity = _identity(path)
        _listen()
        with moving:
            if any(other.is_inherited_by(self) for other in _open):
                raise StoreRefused(f"{path} was open in the process that this one was forked from; {FRESH}")
            _open.append(self)

    def is_inherited_by(self, new: OpenFile) -> bool:
        """Whether ``new`` is the same file in a process forked from this one's."""
        if self._process == new._process:
            return False
        return self.path == new.path if self._identity is None else self._identity == new._identity

    def made(self) -> None:
        """The file exists by now: from here on it is known by what it is, not by its name."""
        self._identity = _identity(self.path)

    def left(self) -> None:
        """Nothing of it is open any more; idempotent."""
        with moving:
            if self in _open:
                _open.remove(self)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def born_inside(path: str) -> str:
    """The sentence for somebody who uses in a child what was opened before the fork."""
    return f"{path} was opened before this process was forked and is of no use in the child; {FRESH}"


def quiet() -> RLock:
    """A lock that its owner holds whenever a thread of his is inside SQLite; a fork waits until it is free.

    Call it with :data:`moving` held.
    """
    inside = threading.RLock()
    _insides.add(inside)
    return inside


def watch(owner: Forkable) -> None:
    """Tell ``owner`` in every child that this process forks from now on, as long as it lives."""
    with moving:
        _owners.add(owner)


@cache
def _listen() -> None:
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)


def _before() -> None:
    deadline = time.monotonic() + PATIENCE_S
    # Without patience left, a free one is still taken.
    _held.extend(lock for lock in _all() if lock.acquire(timeout=max(0.0, deadline - time.monotonic())))


def _all() -> Iterator[RLock]:
    yield moving
    yield from list(_insides)


def _after() -> None:
    while _held:
        _held.pop().release()


def _in_child() -> None:
    _after()
    for owner in list(_owners):
        owner.leave_in_child()
