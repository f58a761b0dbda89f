"""Waking waiters: at once inside a process; across processes by looking at the store."""

from __future__ import annotations

import asyncio
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LOOK_AGAIN_S", "LocalWaker"]

LOOK_AGAIN_S = 0.1
"""Seconds after which a waiter looks whether another process has written."""
_FIRST_LOOK_S = 0.005


class LocalWaker:
    """Wakes who waits for a topic (:class:`~hermes_hookspecs.ports.services.Waker`).

    A waiter also wakes when another process has committed: it looks at ``mark`` after 5 ms, then ever more seldom, at
    most every :data:`LOOK_AGAIN_S` seconds.

    :param mark: returns a number that differs when anybody has committed, in microseconds.
    """

    def __init__(self, mark: Callable[[], int]) -> None:
        self._mark = mark
        self._waiters: dict[str, set[_Waiter]] = {}
        self._lock = Lock()

    def wake(self, topic: str) -> None:
        """Wake everybody who waits for ``topic``, on whatever loop; never blocks."""
        with self._lock:
            waiters = tuple(self._waiters.get(topic, ()))
        for waiter in waiters:
            waiter.wake()

    def enter(self, topic: str) -> _Waiter:
        """Return a waiter that hears every wake from now on: enter, look, then wait, and none can be lost."""
        waiter = _Waiter(topic, asyncio.get_running_loop(), self._mark)
        with self._lock:
            self._waiters.setdefault(topic, set()).add(waiter)
        return waiter

    def leave(self, waiter: _Waiter) -> None:
        """Let go of a waiter."""
        with self._lock:
            waiters = self._waiters.get(waiter.topic, set())
            waiters.discard(waiter)
            if not waiters:
                self._waiters.pop(waiter.topic, None)

    async def wait(self, topic: str, timeout_s: float) -> bool:
        """Return ``True`` when woken or when somebody has written, ``False`` after ``timeout_s`` seconds."""
        waiter = self.enter(topic)
        try:
            return await waiter.wait(timeout_s)
        finally:
            self.leave(waiter)


class _Waiter:
    """One wait of one task."""

    def __init__(self, topic: str, loop: asyncio.AbstractEventLoop, mark: Callable[[], int]) -> None:
        self.topic = topic
        self._loop = loop
        self._event = asyncio.Event()
        self._mark = mark
        self._seen = mark()

    def wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._event.set)
        except RuntimeError:
            return  # its loop is closed: nobody waits any more

    async def wait(self, timeout_s: float) -> bool:
        """Return whether something happened since the last wait; looks at the store from time to time."""
        step = _FIRST_LOOK_S
        deadline = self._loop.time() + timeout_s
        while True:
            left = deadline - self._loop.time()
            try:
                async with asyncio.timeout(max(0.0, min(step, left))):
                    await self._event.wait()
            except TimeoutError:
                mark = self._mark()
                if mark != self._seen:
                    self._seen = mark
                    return True
                if left <= step:
                    return False
                step = min(step * 2, LOOK_AGAIN_S)
            else:
                self._event.clear()
                self._seen = self._mark()
                return True
