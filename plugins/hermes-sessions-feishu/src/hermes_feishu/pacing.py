"""How fast messages go out: five a second to one chat, fifty a second of one app."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hermes_feishu.recent import Recent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hermes_hookspecs.clock import Clock

__all__ = ["Pacing"]

_CHAT_S, _APP_S = 0.2, 0.02
_CHATS = 4000


class Pacing:
    """Gives each request its moment, in the order in which they ask. For one event loop."""

    def __init__(self, clock: Clock, pause: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._clock = clock
        self._pause = pause
        self._chats: Recent[float] = Recent(_CHATS)
        self._app_at = 0.0

    async def turn(self, chat: str) -> None:
        """Wait until a request about a chat may go out."""
        now = self._clock.monotonic()
        at = max(now, self._app_at, self._chats.get(chat) or 0.0)
        self._app_at = max(now, self._app_at) + _APP_S
        self._chats.put(chat, at + _CHAT_S)
        if at > now:
            await self._pause(at - now)
