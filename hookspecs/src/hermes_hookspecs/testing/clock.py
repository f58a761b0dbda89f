"""A clock that moves when a test says so."""

from __future__ import annotations

from threading import Lock

__all__ = ["FakeClock"]


class FakeClock:
    """Both clocks of :class:`~hermes_hookspecs.clock.Clock`; they stand still until they are advanced. Thread-safe.

    :param now: UTC milliseconds it begins with.
    :param monotonic: seconds it begins with.
    """

    def __init__(self, now: int = 1_700_000_000_000, monotonic: float = 1000.0) -> None:
        self._lock = Lock()
        self._now = now
        self._monotonic = monotonic

    def now(self) -> int:
        """Return UTC milliseconds since 1970."""
        return self._now

    def monotonic(self) -> float:
        """Return seconds from an arbitrary zero."""
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let ``seconds`` pass on both clocks.

        :raises ValueError: time does not run backwards; see :meth:`set_now` for a machine whose clock is set.
        """
        if seconds < 0:
            raise ValueError("time does not run backwards; set_now moves the wall clock alone")
        with self._lock:
            self._now += round(seconds * 1000)
            self._monotonic += seconds

    def set_now(self, now: int) -> None:
        """Set the wall clock alone, as an operator may, also backwards."""
        with self._lock:
            self._now = now
