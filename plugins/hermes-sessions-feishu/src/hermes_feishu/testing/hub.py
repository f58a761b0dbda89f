"""The long connections of the fake: who is connected, and what goes over them."""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import suppress
from typing import TYPE_CHECKING

import attrs
from aiohttp import WSMsgType, web

from hermes_feishu.client import mapping_of
from hermes_feishu.frames import CONTROL, DATA, Frame, decode, encode

if TYPE_CHECKING:
    from hermes_feishu.testing.world import FakeApp, World

__all__ = ["Hub"]

_SERVICE = 7


@attrs.define(eq=False)
class _Line:
    app_id: str
    socket: web.WebSocketResponse
    request: web.Request
    acks: dict[str, asyncio.Future[int]] = attrs.field(factory=dict)
    pinged: bool = False


class Hub:
    """Answers who asks for a connection, and holds those that are made.

    Attributes:
        pongs: whether pings are answered.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._lines: list[_Line] = []
        self._tickets: dict[str, str] = {}
        self.pongs = True

    def routes(self) -> list[web.RouteDef]:
        """Return what can be asked."""
        return [web.post("/callback/ws/endpoint", self._endpoint), web.get("/ws/v2", self._connect)]

    def count(self, app: FakeApp) -> int:
        """Return how many connections an app has."""
        return sum(line.app_id == app.app_id for line in self._lines)

    def drop(self) -> None:
        """Cut all connections, without a word."""
        for line in self._lines:
            if line.request.transport is not None:
                line.request.transport.abort()

    async def deliver(self, app: FakeApp, name: str, payload: bytes) -> bool:
        """Send an event over one of the connections of an app; return whether it was acknowledged in time.

        :raises ConnectionError: there is no connection, or it was lost.
        """
        lines = [line for line in self._lines if line.app_id == app.app_id]
        if not lines:
            raise ConnectionError
        line = random.choice(lines)  # noqa: S311 - the platform does so
        ack = line.acks[name] = asyncio.get_running_loop().create_future()
        try:
            for frame in self._frames(name, payload):
                await line.socket.send_bytes(encode(frame))
            done, _ = await asyncio.wait({ack}, timeout=self._world.ack_s)
            return bool(done) and ack.result() == 200
        finally:
            line.acks.pop(name, None)

    async def raw(self, app: FakeApp, data: bytes) -> None:
        """Send bytes over all connections of an app."""
        for line in self._lines:
            if line.app_id == app.app_id:
                await line.socket.send_bytes(data)

    def _frames(self, name: str, payload: bytes) -> list[Frame]:
        size = self._world.fragment_bytes or len(payload) or 1
        pieces = [payload[at : at + size] for at in range(0, len(payload), size)] or [b""]
        return [
            Frame(
                seq_id=number + 1,
                log_id=99,
                service=_SERVICE,
                method=DATA,
                headers=(
                    ("type", "event"),
                    ("message_id", name),
                    ("sum", str(len(pieces))),
                    ("seq", str(number)),
                    ("trace_id", f"t_{name}"),
                ),
                payload=piece,
            )
            for number, piece in enumerate(pieces)
        ]

    def _client_config(self) -> dict[str, object]:
        return {
            "ReconnectCount": -1,
            "ReconnectInterval": 120,
            "ReconnectNonce": self._world.nonce_s,
            "PingInterval": self._world.ping_s,
        }

    async def _endpoint(self, request: web.Request) -> web.Response:
        body = mapping_of(await request.json())
        if self._world.endpoint_codes:
            return web.json_response({"code": self._world.endpoint_codes.popleft(), "msg": "as the script says"})
        app = next((one for one in self._world.apps.values() if one.app_id == body.get("AppID")), None)
        if app is None or body.get("AppSecret") != app.secret:
            return web.json_response({"code": 514, "msg": "auth failed"})
        if self.count(app) >= self._world.most_connections:
            return web.json_response({"code": 1000040350, "msg": "too many connections"})
        ticket = self._world.new_id("ticket")
        self._tickets[ticket] = app.app_id
        url = f"ws://{request.host}/ws/v2?device_id=dev1&service_id={_SERVICE}&access_key=fake-key&ticket={ticket}"
        return web.json_response({"code": 0, "msg": "", "data": {"URL": url, "ClientConfig": self._client_config()}})

    async def _connect(self, request: web.Request) -> web.StreamResponse:
        app_id = self._tickets.pop(request.query.get("ticket", ""), None)
        code = self._world.handshake_codes.popleft() if self._world.handshake_codes else 0
        if app_id is None or code:
            headers = {"Handshake-Status": str(code or 403), "Handshake-Msg": "no", "Handshake-Autherrcode": str(code)}
            return web.Response(status=400, headers=headers)
        socket = web.WebSocketResponse(autoping=False, max_msg_size=0)
        await socket.prepare(request)
        line = _Line(app_id, socket, request)
        self._lines.append(line)
        self._world.connections_made += 1
        self._world.changed()
        try:
            async for message in socket:
                await self._world.thawed.wait()
                if message.type is WSMsgType.BINARY:
                    await self._heard(line, decode(message.data))
        finally:
            self._lines.remove(line)
            for ack in line.acks.values():
                if not ack.done():
                    ack.set_result(0)
            self._world.changed()
        return socket

    async def _heard(self, line: _Line, frame: Frame) -> None:
        if frame.method == CONTROL:
            line.pinged = True
            if frame.service != _SERVICE:
                self._world.faults.append(f"a ping of service {frame.service}")
            if self.pongs:
                pong = json.dumps(self._client_config()).encode()
                with suppress(ConnectionError):
                    await line.socket.send_bytes(
                        encode(Frame(service=_SERVICE, method=CONTROL, headers=(("type", "pong"),), payload=pong))
                    )
            return
        if not line.pinged:
            self._world.faults.append("a connection whose first frame is no ping")
        if not frame.header("biz_rt"):
            self._world.faults.append("an acknowledgement without biz_rt")
        code = mapping_of(json.loads(frame.payload)).get("code")
        ack = line.acks.get(frame.header("message_id"))
        if ack is not None and not ack.done():
            ack.set_result(code if isinstance(code, int) else 0)
