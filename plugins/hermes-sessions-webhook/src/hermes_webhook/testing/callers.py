"""A program that posts messages until it is told that each arrived, as whoever uses the entrances should."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

import aiohttp
import attrs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Caller", "Posted", "free_listen"]

_AGAIN_S = 0.02
_TIMEOUT_S = 20.0
_NOT_FINAL = (408, 425, 429)


def free_listen() -> str:
    """Return an address on loopback that nobody listens at now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@attrs.define
class Posted:
    """One message, and what became of it: status and body of the final answer."""

    account_id: str
    body: bytes
    statuses: list[int] = attrs.field(factory=list)
    reply: Mapping[str, object] | None = None

    @property
    def is_final(self) -> bool:
        """Whether its sender knows what became of it."""
        return self.reply is not None


class Caller:
    """Posts each message until the answer is final. For one event loop.

    :param url_of: address that messages of an account are posted to.
    :param headers_of: headers of a body that an account posts.
    """

    def __init__(self, url_of: Callable[[str], str], headers_of: Callable[[str, bytes], Mapping[str, str]]) -> None:
        self._url_of = url_of
        self._headers_of = headers_of
        self._tasks: set[asyncio.Task[None]] = set()
        self._client: aiohttp.ClientSession | None = None
        self._changed = asyncio.Event()
        self._thawed = asyncio.Event()
        self._thawed.set()
        self.posted: dict[str, Posted] = {}

    @property
    def client(self) -> aiohttp.ClientSession:
        """Return the connections, made anew after they were dropped."""
        if self._client is None or self._client.closed:
            tracing = aiohttp.TraceConfig()
            tracing.on_request_headers_sent.append(_on_its_way)
            timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
            self._client = aiohttp.ClientSession(timeout=timeout, trace_configs=[tracing])
        return self._client

    async def post(self, name: str) -> None:
        """Begin to post a message, again perhaps. Returns when it is on its way, or cannot be."""
        on_its_way = asyncio.Event()
        task = asyncio.create_task(self._post(self.posted[name], on_its_way), name="caller-post")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await on_its_way.wait()

    async def raw(self, account_id: str, body: bytes, headers: Mapping[str, str] | None = None) -> int:
        """Post something once, and return the status of the answer."""
        sent = self._headers_of(account_id, body) if headers is None else headers
        async with self.client.post(self._url_of(account_id), data=body, headers=sent) as response:
            await response.read()
            return response.status

    async def drop(self) -> None:
        """Cut the connections; what was not answered is posted again."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def close(self) -> None:
        """Give up, and close the connections."""
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self.drop()

    def freeze(self, frozen: bool) -> None:
        """Open connections and say half of what there is to say, until thawed."""
        (self._thawed.clear if frozen else self._thawed.set)()

    async def until(self, condition: Callable[[], bool], timeout_s: float) -> None:
        """Wait until ``condition()`` holds. :raises TimeoutError: it did not in time."""
        async with asyncio.timeout(timeout_s):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    def nudge(self) -> None:
        """Let those who wait look again."""
        self._changed.set()

    async def _post(self, posted: Posted, on_its_way: asyncio.Event) -> None:
        try:
            while True:
                if not self._thawed.is_set():
                    on_its_way.set()
                    await self._stall(posted)
                try:
                    if await self._once(posted, on_its_way):
                        return
                except (aiohttp.ClientError, OSError, TimeoutError, RuntimeError):
                    on_its_way.set()  # nobody is there, or the connection was cut
                await asyncio.sleep(_AGAIN_S)
        finally:
            on_its_way.set()

    async def _once(self, posted: Posted, on_its_way: asyncio.Event) -> bool:
        url, headers = self._url_of(posted.account_id), self._headers_of(posted.account_id, posted.body)
        request = self.client.post(url, data=posted.body, headers=headers, trace_request_ctx=on_its_way)
        async with request as response:
            reply = await response.read()
        posted.statuses.append(response.status)
        if response.status >= 500 or response.status in _NOT_FINAL:
            return False
        posted.reply = json.loads(reply)
        self.nudge()
        return True

    async def _stall(self, posted: Posted) -> None:
        """Open a connection, say the head of a request and half of its body, and wait."""
        host, _, port = self._url_of(posted.account_id).split("/")[2].rpartition(":")
        with suppress(OSError):
            _, writer = await asyncio.open_connection(host, int(port))
            try:
                writer.write(b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 100\r\n\r\nhalf")
                await self._thawed.wait()
            finally:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()
        await self._thawed.wait()


async def _on_its_way(
    _session: aiohttp.ClientSession, context: object, _params: aiohttp.TraceRequestHeadersSentParams
) -> None:
    event: object = getattr(context, "trace_request_ctx", None)
    if isinstance(event, asyncio.Event):
        event.set()
