"""Who holds a file lock, for messages to people. Linux only; elsewhere nobody is named."""

from __future__ import annotations

import os

__all__ = ["describe_holders", "holders"]

PROC_LOCKS = "/proc/locks"


def holders(path: str) -> list[int]:
    """Ids of processes that hold a write lock (flock or record lock) on the file, in the kernel's order.

    Reads only the kernel's table; the file itself is not opened, since closing it would drop SQLite's locks.

    :returns: ``[]`` when there is none, the file does not exist, or the system does not tell.
    """
    try:
        inode = str(os.stat(path).st_ino)
        with open(PROC_LOCKS, encoding="ascii", errors="replace") as table:
            lines = table.read().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        # "1: FLOCK  ADVISORY  WRITE 6938 fe:00:2164932 0 EOF"; a waiting lock has "->" as its second word. The
        # device is left out: some file systems show another one than stat does.
        words = line.split()
        if len(words) >= 6 and words[3] == "WRITE" and words[5].rpartition(":")[2] == inode and words[4].isdecimal():
            pid = int(words[4])
            if pid and pid not in found:
                found.append(pid)
    return found


def describe_holders(*paths: str) -> str:
    """The holder of the first of these files that somebody holds, such as ``process 812 (hermes)``.

    :returns: ``""`` where nobody can be named.
    """
    own = os.getpid()
    for path in paths:
        named = [f"process {pid}{_name(pid)}" for pid in holders(path) if pid != own]
        if named:
            return ", ".join(named)
    return ""


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as comm:
            name = "".join(char for char in comm.read().strip() if char.isprintable())
    except OSError:
        return ""
    return f" ({name})" if name else ""
