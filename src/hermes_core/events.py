"""The thread on which event hooks run: in order, off everybody's way, with a time limit."""

from __future__ import annotations

from collections import deque
from logging import getLogger
from threading import Condition, Thread, current_thread
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["EventThread"]

_log = getLogger(__name__)
MOST_WAITING = 10_000
"""Events that may wait; more are dropped and counted, since a stuck listener must not fill the memory."""


class EventThread:
    """Runs posted calls one after another. A call that takes too long is left behind with its thread.

    Nobody watches the time while nothing is posted and nobody waits: a stuck call is left behind when it is in the
    way.

    :param limit_s: seconds a call may take before the next one goes on without it.
    :param clock: seconds from an arbitrary zero.
    """

    def __init__(self, limit_s: float, clock: Callable[[], float] = monotonic) -> None:
        self._limit_s = limit_s
        self._clock = clock
        self._queue: deque[tuple[str, Callable[[], object]]] = deque()
        self._changed = Condition()
        self._generation = 0
        self._running = ""
        self._since = 0.0
        self._closed = False
        self.dropped = 0
        self._start()

    def post(self, name: str, call: Callable[[], object]) -> None:
        """Queue one call; never blocks."""
        with self._changed:
            if self._running and self._clock() - self._since >= self._limit_s:
                self._leave_behind()
            if self._closed or len(self._queue) >= MOST_WAITING:
                self.dropped += 1
                return
            self._queue.append((name, call))
            self._changed.notify_all()

    def flush(self) -> bool:
        """Wait until nothing is queued or runs; leave behind what takes longer than the limit.

        A listener that calls this does not wait for itself.

        :returns: whether everything was heard.
        """
        heard = True
        with self._changed:
            if current_thread() is self._thread:
                return False
            while self._queue or self._running:
                left = self._limit_s - (self._clock() - self._since) if self._running else self._limit_s
                if left > 0:
                    self._changed.wait(left)
                else:
                    heard = False
                    self._leave_behind()
        return heard

    def close(self) -> None:
        """Take no more, let the rest be heard within the limit."""
        with self._changed:
            self._closed = True
        self.flush()
        with self._changed:
            self._generation += 1
            self._changed.notify_all()

    def _start(self) -> None:
        self._thread = Thread(target=self._run, args=(self._generation,), name="hermes-events", daemon=True)
        self._thread.start()

    def _leave_behind(self) -> None:
        """Go on with a fresh thread; the stuck one ends when its call returns."""
        _log.warning("event hook %s did not return within %g s and was left behind", self._running, self._limit_s)
        self._generation += 1
        self._running = ""
        self._start()

    def _run(self, generation: int) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._queue or generation != self._generation)
                if generation != self._generation:
                    return
                name, call = self._queue.popleft()
                self._running, self._since = name, self._clock()
            try:
                call()
            except Exception:  # noqa: BLE001 - a listener's fault is nobody else's
                _log.exception("event hook %s failed", name)
            with self._changed:
                if generation != self._generation:
                    return
                self._running = ""
                self._changed.notify_all()
