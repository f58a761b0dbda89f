"""How much one step takes on: as much as keeps the writer for a few milliseconds only, on this machine.

Processor time is what counts. Steps that shrink because others keep the machine busy would only keep it busier.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_hookspecs.ports.sqlite import SqliteWriter

    T = TypeVar("T")

__all__ = ["Pace"]

GOAL_S = 0.003
"""How long a step works inside its transaction; committing it takes about a third of that in addition."""
FASTEST_GROWTH = 1.25


class Pace:
    """The size of the next step, from how long the last one took.

    :param size: of the first step, in any unit. least, most: bounds of it.
    """

    def __init__(self, size: int, *, least: int, most: int) -> None:
        self.size = size
        self._least = least
        self._most = most

    def note(self, amount: int, taken_s: float) -> None:
        """Take in that so much took so long; a small step says little about a large one and never makes it grow."""
        fitting = amount * GOAL_S / max(taken_s, 1e-6)
        if fitting < self.size and taken_s > GOAL_S:
            self.size = max(self._least, int(max(fitting, self.size / 2)))
        elif amount > self.size / 2:
            self.size = min(self._most, int(min(max(fitting, self.size), self.size * FASTEST_GROWTH)))

    def timed(self, work: Callable[[SqliteWriter], T], amount: int) -> Callable[[SqliteWriter], T]:
        """Return the same work, which is noted each time that it is run."""

        def measured(writer: SqliteWriter) -> T:
            began = time.thread_time()
            result = work(writer)
            self.note(amount, time.thread_time() - began)
            return result

        return measured
