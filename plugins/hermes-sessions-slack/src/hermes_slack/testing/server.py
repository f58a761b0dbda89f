"""A Slack on loopback: Web API, sockets, files, and a pusher that signs what it sends to an Events API.

Strict about what it is sent (``faults``), with knobs for what goes wrong out there::

    server = FakeSlackServer()
    await server.start()
    app = server.install("A1", team_id="T1")
    server.deliver(app, callback(app, app.installations[0], message("D1", "U1", "hello", server.ts()), "Ev1"))
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import aiohttp
from aiohttp import web

from hermes_slack.signing import signature_of
from hermes_slack.testing.responding import answered
from hermes_slack.testing.state import App, Envelope, Installation, ResponseUrl
from hermes_slack.testing.uploads import FakeUploads
from hermes_slack.testing.webapi import WebApi

if TYPE_CHECKING:
    from hermes_slack.testing.state import Post

__all__ = ["FakeSlackServer"]


class FakeSlackServer:
    """A server for one event loop at a time. What was said and posted stays over :meth:`stop` and :meth:`start`.

    Attributes:
        apps: by id. posts: every message of every channel, oldest first. statuses: what was shown in threads.
        files: bytes by id. uploads: what apps brought. calls: names of the methods that were called.
        faults: what no client may do.
        answers: how the next posts and edits are answered: ``ok``, ``ratelimited``, ``broken`` (HTTP 500), ``arrived``
            (posted, then HTTP 500), ``cut`` (posted, then the connection is cut), ``dropped`` (cut before), or a code.
        failures: method → codes with which its next calls are refused, and ``response_url``, or a word of ``answers``.
        retry_after: seconds of ``Retry-After``.
        names: what people are called, by their ids; nobody else can be asked about. outside: channels in which no app
        is a member. responses: where commands may be answered, by number.
        echoes: a message that an app posted is told to it, too.
    """

    def __init__(self) -> None:
        self.apps: dict[str, App] = {}
        self.posts: list[Post] = []
        self.statuses: list[tuple[str, str, str]] = []
        self.files: dict[str, bytes] = {}
        self.uploads = FakeUploads(self.number)
        self.calls: list[str] = []
        self.faults: list[str] = []
        self.answers: deque[str] = deque()
        self.failures: dict[str, deque[str]] = {}
        self.names: dict[str, str] = {}
        self.outside: set[str] = set()
        self.responses: dict[str, ResponseUrl] = {}
        self.persons: dict[str, str] = {}
        self.retry_after = "7"
        self.echoes = True
        self.frozen = False
        self.url = "http://127.0.0.1:0"
        self._port = 0
        self._runner: web.AppRunner | None = None
        self._pusher: aiohttp.ClientSession | None = None
        self._stopping = asyncio.Event()
        self._thawed = asyncio.Event()
        self._changed = asyncio.Event()
        self._numbers = itertools.count(1)
        self._last_us = 0

    # --- running

    async def start(self) -> None:
        """Listen; on the same port as before, if there was one."""
        if self._runner is not None:
            return
        self._stopping = asyncio.Event()
        self._thawed = asyncio.Event()
        if not self.frozen:
            self._thawed.set()
        self._changed = asyncio.Event()
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/api/{method}", self._call)
        app.router.add_get("/link", self._link)
        app.router.add_get("/files/{id}", self._file)
        app.router.add_post("/response/{number}", self._respond)
        app.router.add_post("/upload/{id}", self.uploads.receive)
        self._runner = web.AppRunner(app, shutdown_timeout=0.05, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port)
        await site.start()
        host, self._port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{self._port}"

    async def stop(self) -> None:
        """Stop listening and cut every connection."""
        runner, self._runner = self._runner, None
        self._stopping.set()
        self._thawed.set()
        pusher, self._pusher = self._pusher, None
        if pusher is not None:
            await pusher.close()
        for app in self.apps.values():
            sockets, app.sockets = app.sockets, []
            for socket in sockets:
                self._cut(socket)
        if runner is not None:
            await runner.cleanup()

    def freeze(self, frozen: bool) -> None:
        """Go on accepting bytes and answer nothing, until told otherwise."""
        self.frozen = frozen
        if frozen:
            self._thawed.clear()
            return
        self._thawed.set()
        for app in self.apps.values():
            for envelope in app.envelopes.values():
                if not envelope.sent and not envelope.acknowledged:
                    self._spawn(self._send(app, envelope))

    async def until(self, condition: Callable[[], object], timeout_s: float = 20) -> None:
        """Return once ``condition()`` is true. :raises TimeoutError: not in time."""
        async with asyncio.timeout(timeout_s):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    def note(self) -> None:
        """Let whoever waits look again."""
        self._changed.set()

    # --- what there is

    def install(
        self, app_id: str, *, team_id: str = "T0FAKEAAA", enterprise_id: str | None = None, org_wide: bool = False
    ) -> App:
        """Install an app, a new one or a known one, in a workspace, and return it."""
        app = self.apps.get(app_id)
        if app is None:
            app = App(app_id=app_id, app_token=f"xapp-fake-{app_id}", signing_secret=f"signing-secret-of-{app_id}")
            self.apps[app_id] = app
        number = len(app.installations)
        app.installations.append(
            Installation(
                token=f"xoxb-fake-{app_id}-{number}",
                team_id=team_id,
                user_id=f"U0BOT{app_id}{number}",
                bot_id=f"B0BOT{app_id}{number}",
                enterprise_id=enterprise_id,
                org_wide=org_wide,
            )
        )
        return app

    def person(self, user_id: str, name: str = "") -> str:
        """Return a token with which somebody writes by the Web API, as people do who have a client of their own."""
        token = f"xoxp-fake-{user_id}"
        self.persons[token] = user_id
        self.names[user_id] = name or user_id
        return token

    def response(self) -> ResponseUrl:
        """Return a new ``response_url``."""
        number = self.number("")
        found = self.responses[number] = ResponseUrl(url=f"{self.url}/response/{number}")
        return found

    def ts(self) -> str:
        """Return the time of a new message: no two are the same."""
        self._last_us = max(self._last_us + 1, time.time_ns() // 1000)
        return f"{self._last_us // 1_000_000}.{self._last_us % 1_000_000:06}"

    def number(self, prefix: str) -> str:
        """Return an id that was not there before."""
        return f"{prefix}{next(self._numbers)}"

    # --- telling apps

    def deliver(self, app: App, payload: Mapping[str, object], *, kind: str = "events_api") -> Envelope:
        """Let something come to an app by its socket, now or when it has one."""
        envelope = Envelope(id=self.number("env-"), kind=kind, payload=payload)
        app.envelopes[envelope.id] = envelope
        self.again(app, envelope)
        return envelope

    def again(self, app: App, envelope: Envelope) -> None:
        """Let an envelope come again."""
        self._spawn(self._send(app, envelope))

    async def raw(self, app: App, data: str) -> None:
        """Send a frame as it is."""
        for socket in app.sockets[-1:]:
            await socket.send_str(data)

    async def disconnect(self, app: App, reason: str, *, close: bool = False) -> None:
        """Tell every socket of an app to go, or close them, too."""
        if reason == "link_disabled":
            app.socket_mode = False
        frame = {"type": "disconnect", "reason": reason, "debug_info": {"host": "fake"}}
        for socket in tuple(app.sockets):
            await socket.send_json(frame)
            if close:
                app.sockets.remove(socket)
                await socket.close()

    async def push(
        self,
        app: App,
        url: str,
        payload: Mapping[str, object],
        *,
        form: bool = False,
        timestamp: str | None = None,
        signature: str | None = None,
        retry: int = 0,
    ) -> tuple[int, str]:
        """Call an Events API, signed; return status and body. 0: there was no answer."""
        body = urlencode([(key, str(value)) for key, value in payload.items()]) if form else json.dumps(payload)
        when = timestamp if timestamp is not None else str(int(time.time()))
        headers = {
            "Content-Type": "application/x-www-form-urlencoded" if form else "application/json",
            "X-Slack-Request-Timestamp": when,
            "X-Slack-Signature": signature or signature_of(app.signing_secret, when, body.encode()),
        }
        if retry:
            headers |= {"X-Slack-Retry-Num": str(retry), "X-Slack-Retry-Reason": "http_timeout"}
        if self._pusher is None:
            self._pusher = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5))
        try:
            async with self._pusher.post(url, data=body.encode(), headers=headers) as answer:
                return answer.status, await answer.text()
        except (aiohttp.ClientError, OSError, TimeoutError):
            return 0, ""

    async def _send(self, app: App, envelope: Envelope) -> None:
        if self.frozen or not app.sockets:
            return
        envelope.sent += 1
        frame = {
            "type": envelope.kind,
            "envelope_id": envelope.id,
            "accepts_response_payload": envelope.kind == "slash_commands",
            "retry_attempt": envelope.sent - 1,
            "retry_reason": "" if envelope.sent == 1 else "timeout",
            "payload": envelope.payload,
        }
        with suppress(ConnectionError, RuntimeError):
            await app.sockets[-1].send_json(frame)

    def _spawn(self, coroutine: object) -> None:
        # each ends by itself within one write; nobody waits for it
        task = asyncio.ensure_future(coroutine)  # type: ignore[call-overload]  # a coroutine
        task.add_done_callback(lambda done: done.cancelled() or done.exception())

    # --- endpoints

    async def _call(self, request: web.Request) -> web.StreamResponse:
        await self._unfrozen()
        return await WebApi(self).answer(request)

    async def _unfrozen(self) -> None:
        while self.frozen and not self._stopping.is_set():
            await self._thawed.wait()
            await asyncio.sleep(0)

    async def _link(self, request: web.Request) -> web.StreamResponse:
        await self._unfrozen()
        app = next((one for one in self.apps.values() if one.app_id == request.query.get("ticket")), None)
        if app is None:
            return web.Response(status=403)
        socket = web.WebSocketResponse(autoping=False)
        await socket.prepare(request)
        app.sockets.append(socket)
        app.opened += 1
        self.note()
        try:
            await self._talk(app, socket)
        finally:
            if socket in app.sockets:
                app.sockets.remove(socket)
            self.note()
        return socket

    async def _talk(self, app: App, socket: web.WebSocketResponse) -> None:
        info = {"host": "fake", "approximate_connection_time": 18060}
        await socket.send_json(
            {
                "type": "hello",
                "num_connections": len(app.sockets),
                "connection_info": {"app_id": app.app_id},
                "debug_info": info,
            }
        )
        if app.redelivers:
            for envelope in tuple(app.envelopes.values()):
                if not envelope.acknowledged:
                    await self._send(app, envelope)
        async for message in socket:
            await self._unfrozen()
            if message.type is aiohttp.WSMsgType.PING:
                await socket.pong(message.data)
            if message.type is aiohttp.WSMsgType.TEXT:
                self._acknowledge(app, message.data)

    def _acknowledge(self, app: App, data: str) -> None:
        found = json.loads(data)
        envelope = app.envelopes.get(str(found.get("envelope_id")))
        if envelope is None:
            self.faults.append(f"an acknowledgement of nothing: {data}")
            return
        envelope.acknowledged += 1
        self.note()

    def _cut(self, socket: web.WebSocketResponse) -> None:
        request = socket._req  # noqa: SLF001 - a connection that breaks says no goodbye, which aiohttp does not offer
        if request is not None and request.transport is not None:
            request.transport.abort()

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        await self._unfrozen()
        self.calls.append("response_url")
        found = await answered(self.responses.get(request.match_info["number"]), self.failures, request)
        self.note()
        return found

    async def _file(self, request: web.Request) -> web.StreamResponse:
        data = self.files.get(request.match_info["id"])
        tokens = {f"Bearer {one.token}" for app in self.apps.values() for one in app.installations}
        if request.headers.get("Authorization") not in tokens:
            return web.Response(text="<html>log in</html>", content_type="text/html")
        return web.Response(status=404) if data is None else web.Response(body=data)
