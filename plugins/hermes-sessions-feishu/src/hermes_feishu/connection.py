"""The long connection: found out where it is, held, watched, and made anew when it is lost.

The platform wants each event acknowledged within three seconds and sends it again where it was not. Of several
connections of one app each event reaches one, whichever.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from logging import getLogger
from random import random
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import aiohttp
import attrs

from hermes_feishu.client import mapping_of, text_of
from hermes_feishu.failures import Answer, error_of
from hermes_feishu.fragments import Fragments
from hermes_feishu.frames import CONTROL, DATA, Frame, decode, encode
from hermes_hookspecs.errors import RetryLater
from hermes_hookspecs.ports.platform import CONNECTED, CONNECTING, WAITING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from hermes_feishu.client import FeishuClient
    from hermes_feishu.config import FeishuConfig
    from hermes_feishu.intake import Intake
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ports.platform import Inlet

__all__ = ["LongConnection", "Rhythm"]

_log = getLogger(__name__)

_ACK_S = 2.5
_CLOSE_S = 2.0
_LAST_ACKS_S = 1.0
_STEADY_S = 10.0
"""A connection that was lost sooner counts as one that could not be made."""
_MOST_FRAME_BYTES = 16 * 1024 * 1024
_TOO_MANY = 1000040350
_TOO_MANY_S = 60.0


@attrs.frozen(kw_only=True)
class Rhythm:
    """What the server wants of its clients, in seconds.

    Attributes:
        ping_s: between two pings. nonce_s: the longest wait before a lost connection is made anew.
    """

    ping_s: float = 120.0
    nonce_s: float = 30.0

    def told(self, config: Mapping[str, object]) -> Rhythm:
        """Return the rhythm with what a server said of it."""
        ping, nonce = config.get("PingInterval"), config.get("ReconnectNonce")
        return Rhythm(
            ping_s=min(max(ping, 0.05), 3600) if isinstance(ping, int | float) and ping > 0 else self.ping_s,
            nonce_s=min(nonce, 600) if isinstance(nonce, int | float) and nonce >= 0 else self.nonce_s,
        )


class LongConnection:
    """Receives the events of one account. For one event loop.

    :param identify: finds out who we are; asked before each connection, quick when that is known.
    :param pause: waits for seconds.
    """

    def __init__(
        self,
        client: FeishuClient,
        intake: Intake,
        config: FeishuConfig,
        clock: Clock,
        *,
        identify: Callable[[], Awaitable[None]],
        pause: Callable[[float], Awaitable[None]],
    ) -> None:
        self._client = client
        self._intake = intake
        self._config = config
        self._clock = clock
        self._identify = identify
        self._pause = pause
        self._rhythm = Rhythm()
        self._service = 0
        self._acks: set[asyncio.Task[None]] = set()

    async def run(self, inlet: Inlet) -> None:
        """Hold a connection until cancelled.

        :raises AuthFailed: a person must act.
        """
        failures = 0
        while True:
            inlet.report(CONNECTING)
            began = self._clock.monotonic()
            wait_s = 0.0
            try:
                await self._identify()
                reason = await self._once(inlet)
                if self._clock.monotonic() - began >= _STEADY_S:
                    failures, wait_s = 0, random() * self._rhythm.nonce_s  # noqa: S311 - spreads, hides nothing
                else:
                    failures += 1
            except RetryLater as error:
                failures += 1
                reason, wait_s = str(error), error.after_s or 0.0
            wait_s = max(wait_s, self._back_off_s(failures))
            _log.debug("the long connection is lost (%s) and made anew in %.1f s", reason, wait_s)
            inlet.report(WAITING, f"{reason}; tried again in {wait_s:.0f} s" if wait_s >= 1 else reason)
            await self._pause(wait_s)

    def _back_off_s(self, failures: int) -> float:
        if not failures:
            return 0.0
        doubled = self._config.reconnect_first_s * 2.0 ** min(failures - 1, 30)
        return min(doubled, self._config.reconnect_most_s) * (0.5 + random())  # noqa: S311 - the same

    # --- one connection

    async def _once(self, inlet: Inlet) -> str:
        """Make a connection and hold it; return why it ended."""
        url = self._endpoint(await self._client.connect_endpoint())
        self._service = _service_of(url)
        async with self._client.session() as session:
            socket = await self._connected(session, url)
            pinging = asyncio.create_task(self._keep_pinging(socket), name="feishu-ping")
            try:
                inlet.report(CONNECTED)
                return await self._receive(socket, inlet)
            finally:
                pinging.cancel()
                await asyncio.gather(pinging, return_exceptions=True)
                await self._end_acks()
                with suppress(TimeoutError, aiohttp.ClientError, OSError):
                    async with asyncio.timeout(2 * _CLOSE_S):
                        await socket.close()

    def _endpoint(self, answer: Answer) -> str:
        what = "asking for the long connection"
        if answer.code == _TOO_MANY:
            raise _too_many()
        if not answer.is_good:
            raise error_of(answer, what)
        url = text_of(answer.data.get("URL"))
        if not url.startswith(("ws://", "wss://")):
            raise RetryLater(f"{what}: the answer holds no address")
        self._rhythm = self._rhythm.told(mapping_of(answer.data.get("ClientConfig")))
        return url

    async def _connected(self, session: aiohttp.ClientSession, url: str) -> aiohttp.ClientWebSocketResponse:
        what = "opening the long connection"
        try:
            async with asyncio.timeout(self._config.timeout_s):
                return await session.ws_connect(
                    url,
                    timeout=aiohttp.ClientWSTimeout(ws_close=_CLOSE_S),
                    max_msg_size=_MOST_FRAME_BYTES,
                    proxy=self._client.proxy,
                )
        except aiohttp.WSServerHandshakeError as error:
            raise _refused(what, error) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            # the address holds a ticket: it is not told
            reason = "no answer in time" if isinstance(error, TimeoutError) else type(error).__name__
            raise RetryLater(f"{what} failed ({reason})") from None

    async def _receive(self, socket: aiohttp.ClientWebSocketResponse, inlet: Inlet) -> str:
        fragments = Fragments()
        heard = brought = self._clock.monotonic()
        while True:
            now = self._clock.monotonic()
            silence_s = self._rhythm.ping_s + self._config.silence_s
            left_s = heard + silence_s - now
            if self._config.idle_rebuild_s:
                left_s = min(left_s, brought + self._config.idle_rebuild_s - now)
            if left_s <= 0:
                return f"nothing was heard for {now - heard:.0f} s" if now - heard >= silence_s else "it was idle"
            try:
                message = await socket.receive(timeout=left_s)
            except TimeoutError:
                continue
            if message.type is not aiohttp.WSMsgType.BINARY:
                if message.type is aiohttp.WSMsgType.TEXT:
                    continue
                return f"the connection was closed ({socket.close_code or message.type.name.lower()})"
            heard = self._clock.monotonic()
            inlet.alive()
            try:
                if self._take(socket, decode(message.data), fragments, heard):
                    brought = heard
            except ValueError as error:
                _log.warning("a frame that cannot be read is passed over: %s", error)

    def _take(self, socket: aiohttp.ClientWebSocketResponse, frame: Frame, fragments: Fragments, now: float) -> bool:
        """Take one frame; return whether it brought something.

        :raises ValueError: it makes no sense.
        """
        if frame.method == CONTROL:
            if frame.header("type") == "pong" and frame.payload:
                self._rhythm = self._rhythm.told(_json(frame.payload))
            return False
        if frame.method != DATA:
            raise ValueError(f"a frame of method {frame.method}")
        count, number = int(frame.header("sum") or 1), int(frame.header("seq") or 0)
        payload = fragments.add(frame.header("message_id"), count, number, frame.payload, now)
        if payload is None:
            return True
        if frame.header("type") == "event":
            stored = self._intake.submit(payload)
        else:  # a click on a card: nobody here waits for it
            stored = asyncio.get_running_loop().create_future()
            stored.set_result(True)
        ack = asyncio.create_task(self._acknowledge(socket, frame, stored), name="feishu-ack")
        self._acks.add(ack)
        ack.add_done_callback(self._acks.discard)
        return True

    # --- what we say

    async def _acknowledge(
        self, socket: aiohttp.ClientWebSocketResponse, frame: Frame, stored: asyncio.Future[bool]
    ) -> None:
        """Say that an event is stored, or, when that takes too long or failed, that it has to come again."""
        began = self._clock.monotonic()
        await asyncio.wait({stored}, timeout=_ACK_S)
        code = 200 if stored.done() and stored.result() else 500
        took_ms = int((self._clock.monotonic() - began) * 1000)
        answer = attrs.evolve(
            frame,
            headers=(*frame.headers, ("biz_rt", str(took_ms))),
            payload=json.dumps({"code": code}, separators=(",", ":")).encode(),
        )
        with suppress(aiohttp.ClientError, OSError):  # a lost acknowledgement makes it come again
            await socket.send_bytes(encode(answer))

    async def _keep_pinging(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        ping = encode(Frame(service=self._service, method=CONTROL, headers=(("type", "ping"),)))
        with suppress(aiohttp.ClientError, OSError):  # whoever receives notices that it is lost
            while True:
                await socket.send_bytes(ping)
                await asyncio.sleep(self._rhythm.ping_s)

    async def _end_acks(self) -> None:
        """Let acknowledgements go out that can, and give up the others."""
        if self._acks:
            _, late = await asyncio.wait(self._acks, timeout=_LAST_ACKS_S)
            for ack in late:
                ack.cancel()
            await asyncio.gather(*late, return_exceptions=True)


def _service_of(url: str) -> int:
    found = parse_qs(urlsplit(url).query).get("service_id", ["0"])[0]
    return int(found) if found.isdigit() else 0


def _json(payload: bytes) -> Mapping[str, object]:
    try:
        return mapping_of(json.loads(payload))
    except (ValueError, RecursionError):
        return {}


def _too_many() -> RetryLater:
    return RetryLater("the app has as many connections as it may have; who else uses it?", after_s=_TOO_MANY_S)


def _refused(what: str, error: aiohttp.WSServerHandshakeError) -> Exception:
    headers: Mapping[str, str] = error.headers or {}
    code, status = headers.get("Handshake-Autherrcode", ""), headers.get("Handshake-Status", "")
    if code == str(_TOO_MANY):
        return _too_many()
    number = int(status) if status.isdigit() else error.status
    answer = Answer(status=error.status, code=number, message=headers.get("Handshake-Msg", ""))
    return error_of(answer, what) if number in (403, 514) else RetryLater(f"{what} was refused with {number}")
