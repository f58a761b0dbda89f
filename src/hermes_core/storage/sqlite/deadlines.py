"""Deadlines of those who wait for the writer without a clock of their own: futures and coroutines.

The writer's thread can be stuck where nothing wakes it, behind a gate that a stopped process holds, say. Another thread
then answers whoever's time is over; it sleeps until the oldest deadline, and for ever while nobody waits.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.storage.sqlite.requests import Request

__all__ = ["Deadlines"]


class Deadlines:
    """The waiting requests of one writer, oldest first. Its thread is started by the first of them.

    :param give_up: told, in that thread, the requests whose time is over; some may be begun or answered by then.
    """

    def __init__(self, give_up: Callable[[list[Request]], None]) -> None:
        self._give_up = give_up
        self._waiting: deque[Request] = deque()
        self._changed = threading.Condition(threading.Lock())
        self._next: float | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    def watch(self, request: Request) -> None:
        """Remember a request until it is settled. Cheap: all wait equally long, so the first one's time comes first."""
        self._waiting.append(request)
        if self._next is None:
            self._wake_at(request.until)

    def forget_settled(self) -> None:
        """Let go of what the writer has answered; for its thread alone."""
        waiting = self._waiting
        while waiting and waiting[0].is_settled:
            waiting.popleft()

    def close(self) -> None:
        """End the thread; idempotent."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def _wake_at(self, due: float) -> None:
        with self._changed:
            if self._closed:
                return
            self._next = due if self._next is None else min(due, self._next)
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="hermes-deadlines", daemon=True)
                self._thread.start()
            self._changed.notify()

    def _watch(self) -> None:
        while self._sleep():
            # Whoever comes from here on sets the next time himself; whoever came before is seen now.
            now = time.monotonic()
            waiting = [request for request in tuple(self._waiting) if not request.is_settled]
            late = [request for request in waiting if request.until <= now]
            if late:
                self._give_up(late)
            left = [request.until for request in waiting if request.until > now]
            del waiting, late
            if left:
                self._wake_at(min(left))

    def _sleep(self) -> bool:
        """Return when a deadline has come; false when there will be no more."""
        with self._changed:
            while not self._closed:
                left_s = None if self._next is None else self._next - time.monotonic()
                if left_s is not None and left_s <= 0:
                    self._next = None
                    return True
                self._changed.wait(left_s)
        return False
