"""Callers who ask for the same thing at once get one answer, made once."""

from __future__ import annotations

from threading import Event, Lock
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

__all__ = ["SingleFlight"]

T = TypeVar("T")


class _Flight(Generic[T]):
    def __init__(self) -> None:
        self.landed = Event()
        self.result: T | None = None
        self.error: BaseException | None = None


class SingleFlight(Generic[T]):
    """Runs one call per key at a time; who comes meanwhile waits and shares its result or its exception."""

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight[T]] = {}
        self._lock = Lock()

    def do(self, key: Hashable, call: Callable[[], T]) -> T:
        """Return ``call()``, or what the call under way for ``key`` returns or raises.

        An exception ends the flight like a result: the next caller begins anew.
        """
        with self._lock:
            flight = self._flights.get(key)
            mine = flight is None
            if flight is None:
                flight = self._flights[key] = _Flight()
        if mine:
            try:
                flight.result = call()
            except BaseException as error:
                flight.error = error
                raise
            finally:
                with self._lock:
                    del self._flights[key]
                flight.landed.set()
        else:
            flight.landed.wait()
            if flight.error is not None:
                raise flight.error
        return flight.result  # type: ignore[return-value]  # T may itself be None
