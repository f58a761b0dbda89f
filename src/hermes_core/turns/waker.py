"""Waking waiters: at once in a process and between those of a host; looking at the store is the safety net."""

from __future__ import annotations

import asyncio
import os
from threading import Lock
from typing import TYPE_CHECKING

from hermes_core.turns.signals import CAN_SIGNAL, Ear, open_process, signal_others

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_hookspecs.turns import LeaseHolder

__all__ = ["LOOK_AGAIN_S", "LocalWaker", "Waiter"]

LOOK_AGAIN_S = 0.1
"""Seconds after which a waiter looks whether another process has written."""
_FIRST_LOOK_S = 0.005


class LocalWaker:
    """Wakes who waits for a topic on this host (:class:`~hermes_hookspecs.ports.services.Waker`).

    A waiter also wakes when another process has committed: it looks at ``mark`` after 5 ms, then ever more seldom, at
    most every :data:`LOOK_AGAIN_S` seconds.

    :param mark: returns a number that differs when anybody has committed, in microseconds.
    :param folder: where processes of this host find each other; ``None`` for a store that no other process has.
    """

    def __init__(self, mark: Callable[[], int], folder: str | None = None) -> None:
        self._mark = mark
        self._folder = folder if CAN_SIGNAL else None
        self._waiters: dict[str, set[Waiter]] = {}
        self._lock = Lock()

    def wake(self, topic: str) -> None:
        """Wake everybody who waits for ``topic``, on whatever loop and in whatever process; never blocks."""
        with self._lock:
            waiters = tuple(self._waiters.get(topic, ()))
        for waiter in waiters:
            waiter.wake()
        if self._folder is not None:
            signal_others(self._folder, topic)

    def wake_next(self, topic: str) -> None:
        """Do what :meth:`wake` does, but leave those in this process who stand in line behind the first of it."""
        with self._lock:
            first = self._first(topic)
            waiters = tuple(one for one in self._waiters.get(topic, ()) if one.place is None or one is first)
        for waiter in waiters:
            waiter.wake()
        if self._folder is not None:
            signal_others(self._folder, topic)

    def enter(self, topic: str, place: int | None = None) -> Waiter:
        """Return a waiter that hears every wake from now on: enter, look, then wait, and none can be lost.

        :param place: of one who stands in line for the topic: nobody of this process with a greater one comes first.
            When the first of the line leaves, the next one is woken.
        """
        waiter = Waiter(topic, asyncio.get_running_loop(), self._mark, self._folder, place)
        with self._lock:
            self._waiters.setdefault(topic, set()).add(waiter)
        return waiter

    def leave(self, waiter: Waiter) -> None:
        """Let go of a waiter."""
        waiter.close()
        with self._lock:
            was_first = waiter is self._first(waiter.topic)
            waiters = self._waiters.get(waiter.topic, set())
            waiters.discard(waiter)
            if not waiters:
                self._waiters.pop(waiter.topic, None)
            following = self._first(waiter.topic) if was_first else None
        if following is not None:
            following.wake()

    def is_first(self, waiter: Waiter) -> bool:
        """Return whether nobody of this process stands in line before a waiter."""
        with self._lock:
            return waiter.place is None or waiter is self._first(waiter.topic)

    def _first(self, topic: str) -> Waiter | None:
        line = [one for one in self._waiters.get(topic, ()) if one.place is not None]
        return min(line, key=lambda one: one.place or 0, default=None)

    async def wait(self, topic: str, timeout_s: float) -> bool:
        """Return ``True`` when woken or when somebody has written, ``False`` after ``timeout_s`` seconds."""
        waiter = self.enter(topic)
        try:
            return await waiter.wait(timeout_s)
        finally:
            self.leave(waiter)


class Waiter:
    """One wait of one task, on one loop; :meth:`LocalWaker.leave` lets go of what it holds."""

    def __init__(
        self,
        topic: str,
        loop: asyncio.AbstractEventLoop,
        mark: Callable[[], int],
        folder: str | None,
        place: int | None = None,
    ) -> None:
        self.topic = topic
        self.place = place
        self._loop = loop
        self._event = asyncio.Event()
        self._mark = mark
        self._seen = mark()
        self._folder = folder
        self._ear: Ear | None = None
        self._watched: LeaseHolder | None = None
        self._process = -1
        self.saw_death = False
        """Whether the process that is watched has ended."""

    def wake(self) -> None:
        """Wake the task; from any thread."""
        try:
            self._loop.call_soon_threadsafe(self._event.set)
        except RuntimeError:
            return  # its loop is closed: nobody waits any more

    def watch(self, holder: LeaseHolder | None) -> None:
        """Wake, too, when the process of ``holder`` ends; the one watched before is let go."""
        if holder == self._watched:
            return
        self._let_process_go()
        self._watched, self.saw_death = holder, False
        if holder is None:
            return
        try:
            descriptor = open_process(holder)
        except ProcessLookupError:
            self.saw_death = True
            self._event.set()
            return
        if descriptor is not None:
            self._process = descriptor
            self._loop.add_reader(descriptor, self._died)

    def _died(self) -> None:
        # Once: it stays readable, and the loop would spin and keep the GIL from the threads that take the turn over.
        self._loop.remove_reader(self._process)
        self.saw_death = True
        self._event.set()

    async def wait(self, timeout_s: float, *, look: bool = True) -> bool:
        """Return whether something happened since the last wait.

        The first call in a store that other processes have returns at once: it begins to listen to them, and what they
        did until then has to be looked at.

        :param look: ``False``: only signals count, not that somebody has written.
        """
        if self._begin_to_listen():
            return True
        step = _FIRST_LOOK_S if look else timeout_s
        deadline = self._loop.time() + timeout_s
        while True:
            left = deadline - self._loop.time()
            try:
                async with asyncio.timeout(max(0.0, min(step, left))):
                    await self._event.wait()
            except TimeoutError:
                if look and self._mark() != self._seen:
                    self._seen = self._mark()
                    return True
                if left <= step:
                    return False
                step = min(step * 2, LOOK_AGAIN_S)
            else:
                self._event.clear()
                self._seen = self._mark()
                return True

    async def doze(self, timeout_s: float) -> bool:
        """Return whether somebody of this process woke the task; nothing else is listened to or looked at."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True

    def _begin_to_listen(self) -> bool:
        """Bind the socket, once; say whether that was done now."""
        folder, self._folder = self._folder, None
        if folder is None:
            return False
        try:
            self._ear = Ear(folder, self.topic)
            self._loop.add_reader(self._ear.fileno(), self._heard)
        except (OSError, NotImplementedError):
            self._close_ear()  # a read-only folder, say: looking at the store does it, too
            return False
        return True

    def _heard(self) -> None:
        if self._ear is not None:
            self._ear.drain()
        self._event.set()

    def close(self) -> None:
        """Let go of socket and process; called by :meth:`LocalWaker.leave`."""
        self._let_process_go()
        self._close_ear()

    def _close_ear(self) -> None:
        ear, self._ear = self._ear, None
        if ear is not None:
            if not self._loop.is_closed():
                self._loop.remove_reader(ear.fileno())
            ear.close()

    def _let_process_go(self) -> None:
        descriptor, self._process = self._process, -1
        if descriptor >= 0:
            if not self._loop.is_closed():
                self._loop.remove_reader(descriptor)
            os.close(descriptor)
