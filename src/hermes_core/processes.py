"""Which process is it, and does it still live: what leases and claims say about their holder.

A process id alone says little: it is used again, means another process in another container, and stays in the table
after a kill until the parent has collected it. So an identity is boot, pid namespace, pid and start time together, and
is only compared within the same boot and namespace; beyond them nobody here can know.

Linux reads ``/proc``. macOS asks ``sysctl`` and ``ps`` (start times in seconds). On Windows there is no way with the
standard library, so that only the own process is known to live, and waiters fall back to the lease's time.
"""

from __future__ import annotations

import functools
import os
import sys

import attrs

__all__ = ["ProcessIdentity", "current_process", "is_alive"]

DEAD_STATES = frozenset("ZXx")
BOOT_ID = "/proc/sys/kernel/random/boot_id"


@attrs.frozen(kw_only=True)
class ProcessIdentity:
    """One process, never to be mistaken for another one.

    :ivar host: name of the machine, for people only.
    :ivar boot_id: of this start of the machine; ``""`` where the system does not tell.
    :ivar pid_namespace: such as ``pid:[4026531836]``; ``""`` where there are none.
    :ivar pid: process id inside that namespace.
    :ivar started: start time as the system counts it (Linux: ticks since boot); only ever compared for equality,
        ``0`` where it is unknown.
    """

    host: str
    boot_id: str
    pid_namespace: str
    pid: int
    started: int


def current_process() -> ProcessIdentity:
    """Identity of the process that calls, its own also in a forked child. Cheap after the first call."""
    return _identity(os.getpid(), _pid_namespace())


def is_alive(identity: ProcessIdentity) -> bool | None:
    """Whether that process still runs; stopped counts as alive, a zombie as dead. Reads the process table (30 us).

    :returns: ``None`` when it cannot be known from here: another boot or machine, another pid namespace, or a system
        that does not tell.
    """
    own = current_process()
    if identity == own:
        return True
    if not own.boot_id or (identity.boot_id, identity.pid_namespace) != (own.boot_id, own.pid_namespace):
        return None
    found = _look_up(identity.pid)
    if found is None:
        return None if _exists(identity.pid) else False
    state, started = found
    is_same = started == identity.started or not started or not identity.started
    return is_same and state not in DEAD_STATES


@functools.lru_cache(maxsize=2)
def _identity(pid: int, pid_namespace: str) -> ProcessIdentity:
    found = _look_up(pid)
    return ProcessIdentity(
        host=_host(),
        boot_id=_boot_id(),
        pid_namespace=pid_namespace,
        pid=pid,
        started=found[1] if found else 0,
    )


def _host() -> str:
    return os.environ.get("COMPUTERNAME", "") if sys.platform == "win32" else os.uname().nodename


def _boot_id() -> str:
    if sys.platform == "darwin":
        return _ask("/usr/sbin/sysctl", "-n", "kern.bootsessionuuid")
    try:
        with open(BOOT_ID, encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def _pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _look_up(pid: int) -> tuple[str, int] | None:
    """State letter and start time, or ``None`` where the table shows no such process."""
    if sys.platform == "darwin":
        return _look_up_by_ps(pid)
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            text = file.read()
    except OSError:
        return None
    # The second field is the program's name in parentheses and may hold spaces and parentheses itself.
    fields = text.rpartition(b")")[2].split()
    return fields[0].decode("ascii"), int(fields[19])


def _look_up_by_ps(pid: int) -> tuple[str, int] | None:
    import time

    state, _, started = _ask("/bin/ps", "-o", "state=,lstart=", "-p", str(pid)).strip().partition(" ")
    if not state:
        return None
    try:
        return state[0], int(time.mktime(time.strptime(started.strip(), "%a %b %d %H:%M:%S %Y")))
    except ValueError:
        return state[0], 0


def _ask(*command: str) -> str:
    import subprocess  # only where /proc is missing

    environment = {**os.environ, "LC_ALL": "C"}
    try:
        answer = subprocess.run(  # noqa: S603 - fixed programs of the system, the pid is a number
            command, capture_output=True, text=True, timeout=5, check=False, env=environment
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.strip()


def _exists(pid: int) -> bool:
    """Whether there is such a process although its entry cannot be read (``hidepid``)."""
    if sys.platform == "win32" or pid <= 0:
        return sys.platform == "win32"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
