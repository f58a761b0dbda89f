"""Time as a parameter: nothing in the product asks the machine for the time in any other way."""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    """Two clocks: one for people, one for waiting."""

    def now(self) -> int:
        """Return UTC milliseconds since 1970; may jump when somebody sets the machine's clock."""
        ...

    def monotonic(self) -> float:
        """Return seconds from an arbitrary zero; never jumps, differs between processes."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> int:
        """Return UTC milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        """Return seconds from an arbitrary zero."""
        return time.monotonic()
