"""How long is waited between tries: longer each time, and never together with others."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["Patience"]

_FIRST_S, _MOST_S = 0.5, 30.0


class Patience:
    """Waits, up to 30 s, a random part of each wait. :param pause: waits for seconds."""

    def __init__(self, pause: Callable[[float], Awaitable[None]]) -> None:
        self._pause = pause
        self._next_s = _FIRST_S

    def forget(self) -> None:
        """Begin with the shortest wait again: something worked."""
        self._next_s = _FIRST_S

    async def wait(self, at_least_s: float = 0.0) -> None:
        """Wait."""
        # many clients that were cut off together must not come back together; nothing here is secret
        part = 0.5 + random.random() / 2  # noqa: S311
        wait_s = max(self._next_s * part, at_least_s)
        self._next_s = min(self._next_s * 2, _MOST_S)
        await self._pause(wait_s)
