"""Sockets of the wake folder at which nobody listens any more: a killed process leaves its own behind."""

from __future__ import annotations

import os
import socket
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["dead_sockets", "remove_dead_sockets"]


def dead_sockets(folder: str) -> Sequence[str]:
    """Return the names of sockets in ``folder`` that refuse, sorted; none where the system has no such sockets."""
    if not hasattr(socket, "AF_UNIX") or not hasattr(os, "O_DIRECTORY"):
        return ()
    try:
        names = sorted(os.listdir(folder))
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return ()  # nobody has ever waited here
    try:
        return [name for name in names if _refuses(folder, descriptor, name)]
    finally:
        os.close(descriptor)


def remove_dead_sockets(folder: str) -> int:
    """Remove them; return how many are gone."""
    gone = 0
    for name in dead_sockets(folder):
        with suppress(OSError):
            os.unlink(os.path.join(folder, name))
            gone += 1
    return gone


def _refuses(folder: str, descriptor: int, name: str) -> bool:
    """Whether nobody listens. Connecting sends nothing; the way by the descriptor is short enough for any address."""
    near = f"/proc/self/fd/{descriptor}"
    path = os.path.join(near if os.path.isdir(near) else folder, name)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            return _is_socket(path)  # a plain file refuses as well
        except OSError:
            return False  # gone meanwhile, or too long a name: nothing of ours to remove
    return False


def _is_socket(path: str) -> bool:
    try:
        return stat.S_ISSOCK(os.lstat(path).st_mode)
    except OSError:
        return False
