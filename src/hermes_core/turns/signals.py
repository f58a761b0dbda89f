"""Signals between processes of one host: a datagram to whoever waits for a topic, and the death of a process.

Each waiter binds one socket in a folder beside the store; its name begins with the topic. Whoever wakes a topic sends a
byte to each such socket and removes those that nobody listens at any more. Nothing here carries a promise: a signal may
be lost, and then the waiter looks at the store a little later.

Order that loses no wake: bind, look at the store, then wait. Measured (mechanics, section 3): 1.2 ms from an ordinary
release, 2.1 ms from a ``kill -9`` to the waiter's committed lease.
"""

from __future__ import annotations

import os
import socket
from hashlib import sha256
from itertools import count
from typing import TYPE_CHECKING

from hermes_core.processes import ProcessIdentity, is_alive

if TYPE_CHECKING:
    from hermes_hookspecs.turns import LeaseHolder

__all__ = ["CAN_SIGNAL", "Ear", "open_process", "signal_others"]

CAN_SIGNAL = hasattr(socket, "AF_UNIX") and hasattr(os, "O_DIRECTORY")
"""Whether this system has datagram sockets in the file system."""

_PATH_LIMIT = 100
"""Longest path that fits a socket's address everywhere."""
_numbers = count()


def _prefix(topic: str) -> str:
    return sha256(topic.encode("utf-8", "surrogatepass")).hexdigest()[:16]


class Ear:
    """One bound socket that hears a topic. Used by one event loop.

    :raises OSError: the folder cannot be made, or no socket can be bound in it.
    """

    def __init__(self, folder: str, topic: str) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._path = os.path.join(folder, f"{_prefix(topic)}.{os.getpid()}.{next(_numbers)}")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | getattr(socket, "SOCK_CLOEXEC", 0))
        try:
            self._socket.setblocking(False)
            with _Address(self._path) as address:
                self._socket.bind(address)
        except OSError:
            self._socket.close()
            raise

    def fileno(self) -> int:
        """Return the descriptor, for a loop's reader."""
        return self._socket.fileno()

    def drain(self) -> None:
        """Take what has come; it says nothing but that it came."""
        while True:
            try:
                self._socket.recv(16)
            except (BlockingIOError, InterruptedError):
                return

    def close(self) -> None:
        """Let go of the socket and its name."""
        self._socket.close()
        _remove(self._path)


class _Address:
    """A path as a socket address; a long one goes by way of an open folder, where the system can."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._folder = -1

    def __enter__(self) -> str:
        if len(os.fsencode(self._path)) <= _PATH_LIMIT:
            return self._path
        if not os.path.isdir("/proc/self/fd"):
            raise OSError(f"{self._path} is too long for a socket")
        self._folder = os.open(os.path.dirname(self._path), os.O_RDONLY | os.O_DIRECTORY)
        return f"/proc/self/fd/{self._folder}/{os.path.basename(self._path)}"

    def __exit__(self, *_: object) -> None:
        if self._folder >= 0:
            os.close(self._folder)


def signal_others(folder: str, topic: str) -> int:
    """Send a byte to every other process that listens for ``topic``; return to how many. Never blocks, never raises."""
    if not CAN_SIGNAL:
        return 0
    try:
        names = os.listdir(folder)
    except OSError:
        return 0  # nobody has ever waited here
    prefix, own = f"{_prefix(topic)}.", f".{os.getpid()}."
    found = [name for name in names if name.startswith(prefix) and own not in name]
    if not found:
        return 0
    reached = 0
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
        out.setblocking(False)
        for name in found:
            reached += _send(out, os.path.join(folder, name))
    return reached


def _send(out: socket.socket, path: str) -> bool:
    try:
        with _Address(path) as address:
            out.sendto(b"\x01", address)
    except ConnectionRefusedError:
        _remove(path)  # its process died
        return False
    except BlockingIOError:
        return True  # its queue is full: it is awake anyway
    except OSError:
        return False
    return True


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return


def open_process(holder: LeaseHolder) -> int | None:
    """Return a descriptor that becomes readable when the holder's process ends; close it.

    ``None`` where the system has none, or the process is not one of this boot and namespace. A process that is gone
    already raises :class:`ProcessLookupError`.
    """
    identity = ProcessIdentity(
        host=holder.host,
        boot_id=holder.boot_id,
        pid_namespace=holder.pid_namespace,
        pid=holder.pid,
        started=int(holder.started),
    )
    if not hasattr(os, "pidfd_open") or holder.pid == os.getpid() or is_alive(identity) is None:
        return None
    try:
        descriptor = os.pidfd_open(holder.pid)
    except ProcessLookupError:
        raise
    except OSError:
        return None
    # The number may belong to a newcomer by now: what was opened counts only if the process is still the one meant.
    if is_alive(identity) is not True:
        os.close(descriptor)
        raise ProcessLookupError(holder.pid)
    return descriptor
