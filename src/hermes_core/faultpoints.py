"""Points at which a process can be made to die, on purpose, by whoever tests that nothing is lost then.

Every step of a message's way that matters has a name (:data:`POINTS`). A program calls :func:`reach` there, and nothing
happens, unless the environment asked for it when the process reached its first point::

    HERMES_FAULT_POINTS=step.stored:kill:3          the third stored step is the last thing that this process does
    HERMES_FAULT_POINTS=begin.stored:stop,group.begun:raise-full:2

One entry is ``name:action`` or ``name:action:count``; it acts once, when the point is reached for the ``count``-th time
(1 if it is left out). Several entries are separated by commas.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ACTIONS", "POINTS", "VARIABLE", "reach"]

VARIABLE: Final = "HERMES_FAULT_POINTS"
"""The environment variable that asks for faults."""

POINTS: Final = (
    "accept.before",
    "accept.stored",
    "ack",
    "route.stored",
    "control.applied",
    "control.replied",
    "fetch.stored",
    "fetch.marked",
    "begin.before",
    "begin.stored",
    "compress.before",
    "compress.stored",
    "step.before",
    "step.stored",
    "result.stored",
    "finish.before",
    "finish.stored",
    "stream.opened",
    "stream.sent",
    "stream.shown",
    "stream.edited",
    "deliver.claimed",
    "deliver.split",
    "deliver.sent",
    "deliver.marked",
    "group.begun",
    "group.committed",
    "group.synced",
)
"""Every name, in the order of a message's way. ``before`` is in front of a transaction, ``stored`` right behind one.

``ack`` is reached by whoever acknowledges to a platform, between the acceptance and that. ``fetch.`` are of what comes
with a message: its bytes are durable, its row names them. ``stream.`` are of an answer
that is shown while it is written: remembered, sent, its id remembered, edited. ``group.begun`` is inside a transaction
of the SQLite store, behind an operation's writes; ``group.committed`` is behind COMMIT and in front of the sync;
``group.synced`` is behind the sync, in front of the answers.
"""

ACTIONS: Final = ("kill", "stop", "hang", "raise-full", "raise-unknown", "interrupt")
"""SIGKILL or SIGSTOP oneself, wait for ever, raise ``StoreFull``, ``StoreOutcomeUnknown`` or ``KeyboardInterrupt``.

Raising belongs to points in front of a transaction or inside one; behind it the operation is there all the same.
"""


def reach(name: str) -> None:
    """Say that a point is reached. Costs less than 0.1 us where nobody asked for faults.

    :param name: one of :data:`POINTS`.
    :raises ConfigError: the variable is malformed, or names a point or an action that is not there.
    """
    faults = _faults()
    if faults:
        fault = faults.get(name)
        if fault is not None:
            fault.count_down()


class _Fault:
    """What happens at one point, once."""

    def __init__(self, name: str, action: str, count: int) -> None:
        self._name = name
        self._act: Callable[[str], None] = _OF_ACTION[action]
        self._left = count

    def count_down(self) -> None:
        """Act at the last of the counted visits. Two threads that meet here may count as one."""
        self._left -= 1
        if self._left == 0:
            self._act(self._name)


@cache
def _faults() -> dict[str, _Fault]:
    """Read what is asked for; once in a process, at its first point."""
    found = {}
    for entry in filter(None, (part.strip() for part in os.environ.get(VARIABLE, "").split(","))):
        name, _, rest = entry.partition(":")
        action, _, count = rest.partition(":")
        if name not in POINTS or action not in ACTIONS or (count and not (count.isdecimal() and int(count) > 0)):
            raise _malformed(entry)
        found[name] = _Fault(name, action, int(count or 1))
    return found


def _malformed(entry: str) -> Exception:
    from hermes_hookspecs.errors import ConfigError

    return ConfigError(
        f"environment {VARIABLE}: {entry!r} is not NAME:ACTION or NAME:ACTION:COUNT; "
        f"points: {', '.join(POINTS)}; actions: {', '.join(ACTIONS)}",
        origin=f"environment {VARIABLE}",
    )


def _kill_self(_name: str) -> None:
    import signal

    os.kill(os.getpid(), signal.SIGKILL)


def _stop_self(_name: str) -> None:
    import signal

    os.kill(os.getpid(), signal.SIGSTOP)


def _hang(_name: str) -> None:
    import threading

    threading.Event().wait()


def _raise_full(name: str) -> None:
    from hermes_hookspecs.errors import StoreFull

    raise StoreFull(f"no space left at {name}, as asked for in {VARIABLE}")


def _raise_unknown(name: str) -> None:
    from hermes_hookspecs.errors import StoreOutcomeUnknown

    raise StoreOutcomeUnknown(f"outcome unknown at {name}, as asked for in {VARIABLE}")


def _interrupt(name: str) -> None:
    raise KeyboardInterrupt(f"interrupted at {name}, as asked for in {VARIABLE}")


_OF_ACTION: Final = {
    "kill": _kill_self,
    "stop": _stop_self,
    "hang": _hang,
    "raise-full": _raise_full,
    "raise-unknown": _raise_unknown,
    "interrupt": _interrupt,
}
