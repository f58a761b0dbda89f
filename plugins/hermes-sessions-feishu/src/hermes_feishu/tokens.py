"""The tenant access token: fetched once at a time, ahead of its end, and anew when it is refused."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hermes_hookspecs.errors import RetryLater

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hermes_hookspecs.clock import Clock

__all__ = ["TokenCache"]

_AHEAD_S = 600.0
_AHEAD_SHARE = 0.1


class TokenCache:
    """The token of one app. For one event loop.

    :param fetch: returns a token and the seconds that it is good for.
    """

    def __init__(self, fetch: Callable[[], Awaitable[tuple[str, float]]], clock: Clock) -> None:
        self._fetch = fetch
        self._clock = clock
        self._lock = asyncio.Lock()
        self._token = ""
        self._renew_at = 0.0
        self._ends_at = 0.0

    async def token(self) -> str:
        """Return a token that is good; however many ask at once, one fetches.

        :raises RetryLater: there is none now. :raises AuthFailed: the credentials are refused.
        """
        if self._token and self._clock.monotonic() < self._renew_at:
            return self._token
        async with self._lock:
            now = self._clock.monotonic()
            if self._token and now < self._renew_at:
                return self._token
            try:
                token, life_s = await self._fetch()
            except RetryLater:
                if self._token and now < self._ends_at:
                    return self._token  # the old one is good for a while
                raise
            self._token = token
            self._ends_at = now + life_s
            self._renew_at = self._ends_at - min(_AHEAD_S, life_s * _AHEAD_SHARE)
            return token

    def drop(self, token: str) -> None:
        """Forget a token that was refused; another one, fetched meanwhile, stays."""
        if self._token == token:
            self._token = ""
