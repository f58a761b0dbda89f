"""One socket of Socket Mode: read until it is over, silent for too long, or told to make room for another one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from logging import getLogger
from typing import TYPE_CHECKING

import aiohttp

from hermes_hookspecs.errors import AuthFailed, RetryLater
from hermes_slack.wire import mapping, text

if TYPE_CHECKING:
    from hermes_hookspecs.clock import Clock
    from hermes_slack.config import SlackConfig

__all__ = ["HELLO", "Connection", "connect"]

_log = getLogger(__name__)

HELLO = "hello"
_MOST_BYTES = 16 * 1024 * 1024
_CONNECT_S = 15.0
_OVER = (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSING, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR)


async def connect(session: aiohttp.ClientSession, url: str, config: SlackConfig, clock: Clock) -> Connection:
    """Return a socket that is open. :raises RetryLater: not now."""
    secure = not config.base_url.startswith("http://")
    if not url.startswith("wss://" if secure else ("ws://", "wss://")):
        raise RetryLater("apps.connections.open names no address of a socket")
    try:
        async with asyncio.timeout(_CONNECT_S):
            socket = await session.ws_connect(
                url, autoping=False, max_msg_size=_MOST_BYTES, timeout=aiohttp.ClientWSTimeout(ws_close=1.0)
            )
    except (TimeoutError, aiohttp.ClientError, OSError, ValueError) as error:
        # the address holds a ticket, and the text of the error the address
        raise RetryLater(f"the socket cannot be opened: {type(error).__name__}") from None
    return Connection(socket, config, clock)


class Connection:
    """An open socket. For one event loop."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, config: SlackConfig, clock: Clock) -> None:
        self._socket = socket
        self._config = config
        self._clock = clock
        self._heard = clock.monotonic()
        self._receiving: asyncio.Task[aiohttp.WSMessage] | None = None

    async def acknowledge(self, envelope_id: str) -> None:
        """Tell Slack that an envelope was taken; on a socket that is gone, nothing: it comes again, and is known."""
        with suppress(ConnectionError, aiohttp.ClientError, TimeoutError):
            async with asyncio.timeout(self._config.silence_s):
                await self._socket.send_str(json.dumps({"envelope_id": envelope_id}))

    async def read(
        self, on_frame: Callable[[Connection, Mapping[str, object]], None], alive: Callable[[], None]
    ) -> str:
        """Read until the socket is over, and return why; ``""`` when another one is to take its place.

        In that case it can still be read.

        :param on_frame: told every frame but those about the connection. alive: told that something was heard.
        :raises AuthFailed: Socket Mode was turned off.
        """
        while True:
            if self._receiving is None:
                self._receiving = asyncio.create_task(self._socket.receive(), name="slack-receive")
            await asyncio.wait({self._receiving}, timeout=self._config.ping_s)
            if not self._receiving.done():
                silent_s = self._clock.monotonic() - self._heard
                if silent_s >= self._config.silence_s:
                    return f"nothing was heard for {silent_s:.0f} s"
                if not await self._ping():
                    return "the socket takes nothing"
                continue
            message, self._receiving = self._receiving.result(), None
            if message.type in _OVER:
                return "the socket was closed"
            self._heard = self._clock.monotonic()
            alive()
            if message.type is aiohttp.WSMsgType.PING:
                with suppress(ConnectionError, aiohttp.ClientError):
                    await self._socket.pong(message.data)
            if message.type is aiohttp.WSMsgType.TEXT and self._told(message.data, on_frame):
                return ""

    async def close(self) -> None:
        """Close it; idempotent."""
        receiving, self._receiving = self._receiving, None
        if receiving is not None:
            receiving.cancel()
            await asyncio.wait({receiving})
            if not receiving.cancelled():
                receiving.exception()
        with suppress(ConnectionError, aiohttp.ClientError, TimeoutError):
            await self._socket.close()

    async def _ping(self) -> bool:
        try:
            async with asyncio.timeout(self._config.silence_s):
                await self._socket.ping()
        except (ConnectionError, aiohttp.ClientError, TimeoutError):
            return False
        return True

    def _told(self, data: str, on_frame: Callable[[Connection, Mapping[str, object]], None]) -> bool:
        """Pass a frame on; return whether it says that this connection is to be replaced."""
        try:
            frame = json.loads(data)
        except (ValueError, RecursionError):
            frame = None
        if not isinstance(frame, dict):
            _log.warning("slack: a frame of %d characters is no JSON object, and is passed over", len(data))
            return False
        if text(frame, "type") != "disconnect":
            on_frame(self, frame)
            return False
        reason = text(frame, "reason")
        if reason == "link_disabled":
            raise AuthFailed('Socket Mode is turned off for this app: turn it on in its settings, or set mode = "http"')
        _log.info("slack: the connection is to be made anew: %s", reason or text(mapping(frame, "debug_info"), "host"))
        return True
