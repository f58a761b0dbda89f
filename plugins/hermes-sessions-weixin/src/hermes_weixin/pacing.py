"""The pauses between messages: three within a second block the whole bot for up to an hour."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from hermes_hookspecs.clock import Clock
    from hermes_weixin.config import WeixinConfig

__all__ = ["Pacing"]

_MOST_PEERS = 1000


class Pacing:
    """Lets one message of a bot go at a time, with its pauses between them. For one event loop."""

    def __init__(self, clock: Clock, config: WeixinConfig, pause: Callable[[float], Awaitable[None]]) -> None:
        self._clock = clock
        self._config = config
        self._pause = pause
        self._alone = asyncio.Lock()
        self._last: float | None = None
        self._last_to: dict[str, float] = {}

    @asynccontextmanager
    async def turn(self, peer: str) -> AsyncIterator[None]:
        """Wait until a message to a person may go; hold the others back while it does."""
        async with self._alone:
            while (wait_s := self._wait_s(peer)) > 0:
                await self._pause(wait_s)
            try:
                yield
            finally:
                now = self._clock.monotonic()
                if len(self._last_to) >= _MOST_PEERS:
                    self._last_to = {
                        one: at for one, at in self._last_to.items() if now - at < self._config.peer_pause_s
                    }
                self._last = self._last_to[peer] = now

    def _wait_s(self, peer: str) -> float:
        now = self._clock.monotonic()
        since = None if self._last is None else now - self._last
        since_peer = None if peer not in self._last_to else now - self._last_to[peer]
        return max(
            0.0 if since is None else self._config.bot_pause_s - since,
            0.0 if since_peer is None else self._config.peer_pause_s - since_peer,
        )
