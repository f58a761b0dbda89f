"""Waiting for an answer that is about to appear in the store."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_hookspecs.clock import Clock

__all__ = ["Waiting"]

_FAST_S, _SLOW_S = 0.02, 1.0
_LAG_S = 2.0
"""Seconds in which an answer that was handed over appears, as a rule: meanwhile it is looked for often."""

_Found = TypeVar("_Found")


class _Place:
    def __init__(self) -> None:
        self.event = asyncio.Event()
        self.stirred = float("-inf")
        self.waiting = 0


class Waiting:
    """Those who wait for answers, by conversation: chat and thread. For one event loop.

    Attributes:
        count: how many wait. is_over: nobody waits here any more.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._places: dict[tuple[str, str], _Place] = {}
        self.count = 0
        self.is_over = False

    def stir(self, chat_id: str, thread_id: str) -> None:
        """Say that an answer is about to appear."""
        place = self._places.get((chat_id, thread_id))
        if place is not None:
            place.stirred = self._clock.monotonic()
            place.event.set()

    def end(self) -> None:
        """Let everybody look once more, and go."""
        self.is_over = True
        for place in self._places.values():
            place.event.set()

    async def until(
        self,
        conversation: tuple[str, str],
        look: Callable[[], _Found],
        is_enough: Callable[[_Found], bool],
        *,
        wait_s: float,
    ) -> _Found:
        """Return what ``look()`` finds, in a thread, once it is enough; what there is when the time is over."""
        until = self._clock.monotonic() + wait_s
        place = self._places.setdefault(conversation, _Place())
        place.waiting += 1
        self.count += 1
        try:
            while True:
                place.event.clear()
                found = await asyncio.to_thread(look)
                now = self._clock.monotonic()
                if is_enough(found) or now >= until or self.is_over:
                    return found
                pause_s = _FAST_S if now - place.stirred < _LAG_S else _SLOW_S
                try:
                    async with asyncio.timeout(min(pause_s, until - now)):
                        await place.event.wait()
                except TimeoutError:
                    continue
        finally:
            self.count -= 1
            place.waiting -= 1
            if not place.waiting:
                self._places.pop(conversation, None)
