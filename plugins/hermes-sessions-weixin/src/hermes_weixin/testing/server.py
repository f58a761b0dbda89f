"""The server: nine endpoints and a content network, strict in what it takes and as odd as it is told to be.

It hands a batch out once: whoever gives up just when it answers has lost it, as with the real one.
"""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import time
from collections import deque
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

from aiohttp import web

from hermes_hookspecs.sockets import close_server
from hermes_weixin.testing.cdn import Cdn
from hermes_weixin.testing.headers import app_faults, credential_faults
from hermes_weixin.testing.logins import Logins
from hermes_weixin.testing.state import Bot, SentMessage, dicts_of, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["LOST", "FakeILink"]

LOST = "lost"

_BURST, _BURST_S = 2, 1.0
_STALE = {"ret": -14, "errcode": -14, "errmsg": "session timeout"}
"""Clients look at one of the two codes, or at both."""


class FakeILink:
    """An iLink server on 127.0.0.1. For one event loop.

    :ivar hold_s: how long a poll without messages is held. announce_ms: what it says of that; ``None`` for nothing.
    :ivar quota: messages for each one that came. window_s: seconds behind it. burst: whether three within a second
        block the bot, for ``block_s``. errmsg: of every -2.
    :ivar bare_success: a success has no ``ret``. faults: what requests are found to break, for ``assert not``.
    :ivar answers: how the next sends are answered: ``ok``, ``broken`` (500, nothing arrives), ``arrived`` (500, but it
        arrived), ``-2``, ``-14``, ``rejected`` (-3).
    :ivar poll_failures: how the next polls are answered: an HTTP status, a code below zero, a text, or ``LOST``: what
        they bring is handed out, and the connection is cut.
    :ivar replays: what a poll brought comes again, with another id and context token, to one that does not come back
        with its cursor: the real server does that now and then, and more often does not.
    :ivar over_quota: sends that quota, window or burst refused.
    :ivar cdn: the content network, with knobs of its own.
    :ivar logins: codes and their states; qr_states, qr_tokens, verify_codes are its own.
    """

    def __init__(self) -> None:
        self.bots: dict[str, Bot] = {}
        self.sent: list[SentMessage] = []
        self.faults: list[str] = []
        self.cdn = Cdn(self.faults)
        self.answers: deque[str] = deque()
        self.logins = Logins(self.faults)
        self.qr_states = self.logins.states
        self.qr_tokens = self.logins.tokens
        self.verify_codes = self.logins.verify_codes
        self.hold_s = 0.2
        self.announce_ms: int | None = 35_000
        self.quota = 10
        self.window_s = 86_400.0
        self.burst = False
        self.block_s = 60.0
        self.errmsg = ""
        self.bare_success = False
        self.frozen = False
        self.replays = False
        self.over_quota = 0
        self.poll_failures: deque[int | str] = deque()
        self._last_ms = 0
        self._numbers = count(7_400_000_000_000_000_001)
        self._blocked_until = 0.0
        self._recent: deque[float] = deque(maxlen=_BURST)
        self._changed = asyncio.Event()
        self._stopping = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._socket: asyncio.Server | None = None
        self._port = 0
        self.url = ""

    # --- running

    async def start(self) -> None:
        """Listen; on the same port as before, if there was one."""
        if self._runner is not None:
            return
        self._stopping.clear()
        app = web.Application(client_max_size=1 << 26)
        app.router.add_route("*", "/ilink/bot/{path:.+}", self._bot)
        app.router.add_post("/c2c/upload", self.cdn.upload)
        app.router.add_get("/c2c/download", self.cdn.download)
        self._runner = web.AppRunner(app, shutdown_timeout=0.05, access_log=None)
        await self._runner.setup()
        server = self._runner.server
        assert server is not None  # noqa: S101 - it was set up
        self._socket = await asyncio.get_running_loop().create_server(server, "127.0.0.1", self._port)
        host, self._port = self._socket.sockets[0].getsockname()[:2]
        self.url = f"http://{host}:{self._port}"

    async def stop(self) -> None:
        """Stop listening and cut every connection."""
        runner, self._runner = self._runner, None
        self._stopping.set()
        for bot in self.bots.values():
            bot.arrived.set()
        open_socket, self._socket = self._socket, None
        if open_socket is not None:
            await close_server(open_socket)
        if runner is not None:
            await runner.cleanup()

    def bind(self, user_id: str) -> Bot:
        """Bind a new bot to a person; older ones of the same person are refused from now on."""
        for bot in self.bots.values():
            bot.stale = bot.stale or bot.user_id == user_id
        number = secrets.token_hex(6)
        bot = Bot(token=f"fake-{number}", bot_id=f"{number}@im.bot", user_id=user_id)
        self.bots[bot.token] = bot
        return bot

    def confirmation(self, user_id: str) -> dict[str, object]:
        """Bind a new bot; return what a login that is confirmed says of it."""
        bot = self.bind(user_id)
        return {
            "bot_token": bot.token,
            "ilink_bot_id": bot.bot_id,
            "ilink_user_id": user_id,
            "baseurl": "https://ilinkai.weixin.qq.com",
        }

    async def until(self, condition: Callable[[], object], timeout_s: float = 20) -> None:
        """Return once ``condition()`` is true. :raises TimeoutError: not in time."""
        async with asyncio.timeout(timeout_s):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    def note(self) -> None:
        """Let whoever waits look again."""
        self._changed.set()

    # --- people

    def message(self, peer: str, text: str, **more: object) -> dict[str, object]:
        """Return a message of a person as it travels; ``more`` replaces its fields."""
        number = next(self._numbers)
        item = {
            "type": 1,
            "create_time_ms": number,
            "is_completed": True,
            "msg_id": str(number),
            "text_item": {"text": text},
        }
        return {
            "seq": number % 1_000_000,
            "message_id": number,
            "from_user_id": peer,
            "to_user_id": "",
            "client_id": f"cli-{number}",
            "create_time_ms": self._time(),
            "session_id": "fake",
            "group_id": "",
            "message_type": 1,
            "message_state": 2,
            "context_token": f"CTX{number}",
            "item_list": [item],
        } | more  # fmt: skip

    def _time(self) -> int:
        """Return the time of a message: nobody writes two of them in one millisecond."""
        self._last_ms = max(self._last_ms + 1, time.time_ns() // 1_000_000)
        return self._last_ms

    def again(self, message: Mapping[str, object], **more: object) -> dict[str, object]:
        """Return a message as the server brings it again: the ids and the context token are new; ``more`` as above."""
        number = next(self._numbers)
        fresh = {"seq": number % 1_000_000, "message_id": number, "context_token": f"CTX{number}"}
        items = [dict(item) | {"msg_id": str(number)} for item in dicts_of(message.get("item_list"))]
        return dict(message) | fresh | {"client_id": f"cli-{number}", "item_list": items} | more

    def say(self, bot: Bot, *messages: Mapping[str, object], counts: bool = True) -> None:
        """Let messages wait for a bot's next poll. ``counts``: they open quota and window anew."""
        for message in messages:
            bot.waiting.append(dict(message))
            if not counts:
                continue
            peer = str(message.get("from_user_id", ""))
            bot.window[peer] = 0
            bot.since[peer] = asyncio.get_running_loop().time()
        bot.arrived.set()

    # --- endpoints

    async def _bot(self, request: web.Request) -> web.StreamResponse:
        path = request.match_info["path"]
        if self.frozen:
            await self._stopping.wait()
            return web.Response(status=503)
        self.faults += app_faults(path, request.headers)
        if path == "get_qrcode_status":
            return self.logins.status(request)
        self.faults += credential_faults(path, request.headers)
        body = await self._body(request, path)
        if path == "get_bot_qrcode":
            return self.logins.code(body)
        bot = self.bots.get(request.headers.get("Authorization", "").removeprefix("Bearer "))
        if bot is None:
            return web.json_response(_STALE)
        if path.startswith("msg/notify"):
            return self._notified(bot, path.removeprefix("msg/notify"))
        if bot.stale:
            self.note()
            return web.json_response(_STALE)
        if path == "getupdates":
            return await self._updates(bot, body, request)
        answers = {
            "sendmessage": self._send,
            "getconfig": self._ticket,
            "sendtyping": self._type,
            "getuploadurl": self._announce,
        }
        return answers[path](bot, body) if path in answers else web.Response(status=404)

    def _announce(self, _bot: Bot, body: Mapping[str, object]) -> web.StreamResponse:
        return web.json_response(self.cdn.announce(body, f"{self.url}/c2c"))

    def _ticket(self, _bot: Bot, _body: Mapping[str, object]) -> web.StreamResponse:
        return web.json_response({"ret": 0, "typing_ticket": base64.b64encode(b"ticket").decode()})

    def _type(self, bot: Bot, body: Mapping[str, object]) -> web.StreamResponse:
        status = body.get("status")
        bot.typing.append((str(body.get("ilink_user_id")), status if isinstance(status, int) else 0))
        self.note()
        return web.json_response({"ret": 0})

    def _notified(self, bot: Bot, what: str) -> web.StreamResponse:
        bot.notified.append(what)
        if what == "start" and bot.cured_by_start:
            bot.stale = False
        return web.json_response({"ret": 0})

    def _failed_poll(self) -> web.StreamResponse | None:
        if not self.poll_failures or self.poll_failures[0] == LOST:
            return None
        failure = self.poll_failures.popleft()
        self.note()
        if isinstance(failure, str):
            return web.Response(text=failure, content_type="application/json")
        if failure > 0:
            return web.Response(status=failure)
        return web.json_response({"ret": failure, "errmsg": self.errmsg})

    async def _updates(self, bot: Bot, body: Mapping[str, object], request: web.Request) -> web.StreamResponse:
        bot.polls += 1
        failed = self._failed_poll()
        if failed is not None:
            return failed
        said = str(body.get("get_updates_buf", ""))
        came = int(said[1:]) if said.startswith("C") and said[1:].isdigit() else 0
        bot.acknowledged = max(bot.acknowledged, came)
        self.note()
        if not bot.waiting:
            bot.arrived.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(bot.arrived.wait(), self.hold_s)
        if bot.stale:
            return web.json_response(_STALE)
        answer = self._batch(bot, came)
        if answer["msgs"] and self.poll_failures and self.poll_failures[0] == LOST:
            self.poll_failures.popleft()
            if request.transport is not None:
                request.transport.abort()
        return web.json_response(answer)

    def _batch(self, bot: Bot, came: int) -> dict[str, object]:
        """Return what a poll brings that came back with a cursor: at its end, since others may poll meanwhile."""
        missed = [message for cursor, message in bot.handed if cursor > came] if self.replays else []
        messages = [*map(self.again, missed), *bot.waiting]
        bot.waiting = []
        if messages:
            bot.cursor += 1
        bot.handed = [(bot.cursor, message) for message in dicts_of(messages)]  # a test may let anything wait
        for _, message in bot.handed:
            bot.brought[str(message.get("message_id"))] = bot.cursor
            bot.tokens[str(message.get("context_token", ""))] = str(message.get("from_user_id", ""))
        answer: dict[str, object] = {"msgs": messages, "get_updates_buf": f"C{bot.cursor}"}
        if not self.bare_success:
            answer["ret"] = 0
        if self.announce_ms is not None:
            answer["longpolling_timeout_ms"] = self.announce_ms
        return answer

    def _send(self, bot: Bot, body: Mapping[str, object]) -> web.StreamResponse:
        message = body.get("msg")
        if not isinstance(message, dict):
            self.faults.append("sendmessage without msg")
            return web.json_response({"ret": -1})
        self._check_message(message)
        peer = str(message.get("to_user_id"))
        answer = self.answers.popleft() if self.answers else "ok"
        if answer in ("-2", "-14", "rejected"):
            self.note()
            return web.json_response({"ret": {"-2": -2, "-14": -14, "rejected": -3}[answer], "errmsg": self.errmsg})
        if answer == "broken":
            return web.Response(status=500)
        if not self._may_carry(bot, peer, str(message.get("context_token", ""))):
            self.faults.append("sendmessage: a context token of somebody else")
        if self._limit(bot, peer):
            self.over_quota += 1
            return web.json_response({"ret": -2, "errmsg": self.errmsg})
        arrived = self._arrive(bot, peer, message)
        self.note()
        if answer == "arrived":
            return web.Response(status=500)
        success: dict[str, object] = {"message_id": int(arrived.message_id)}
        return web.json_response(success if self.bare_success else success | {"ret": 0})

    def _check_message(self, message: Mapping[str, object]) -> None:
        items = message.get("item_list")
        if not isinstance(items, list) or len(items) != 1:
            self.faults.append("not one item a message")
        if message.get("message_type") != 2 or message.get("from_user_id") != "":
            self.faults.append("sendmessage is not of a bot")
        faults = [self.cdn.fault_of_item(item) for item in dicts_of(items)]
        self.faults += [f"sendmessage: {fault}" for fault in faults if fault]

    def _arrive(self, bot: Bot, peer: str, message: Mapping[str, object]) -> SentMessage:
        """Return a message as it is shown: the first one of its ``client_id``."""
        place = (bot.token, peer, str(message.get("client_id")))
        items = dicts_of(message.get("item_list"))
        known = next((one for one in self.sent if (one.token, one.peer, one.client_id) == place), None)
        if known is not None:
            if known.text != text_of(items):
                self.faults.append("sendmessage: one client_id for two texts")
            return known
        token, peer, client_id = place
        arrived = SentMessage(
            message_id=str(next(self._numbers)),
            token=token,
            peer=peer,
            client_id=client_id,
            item=items[0] if items else {},
            context_token=str(message.get("context_token", "")),
        )
        self.sent.append(arrived)
        return arrived

    def _may_carry(self, bot: Bot, peer: str, token: str) -> bool:
        """Return whether a context token is of this person and this bot's owner, or of nobody that is known."""
        of = {(each.user_id, each.tokens[token]) for each in self.bots.values() if token in each.tokens}
        return not of or (bot.user_id, peer) in of

    def _limit(self, bot: Bot, peer: str) -> bool:
        """Return whether quota, window or burst refuse a message."""
        now = asyncio.get_running_loop().time()
        if now < self._blocked_until:
            return True
        if self.burst and len(self._recent) == _BURST and now - self._recent[0] < _BURST_S:
            self._blocked_until = now + self.block_s
            return True
        self._recent.append(now)
        used = bot.window.get(peer)
        if used is None or used >= self.quota or now - bot.since[peer] > self.window_s:
            return True
        bot.window[peer] = used + 1
        return False

    # --- what every request must be

    async def _body(self, request: web.Request, path: str) -> dict[str, object]:
        try:
            body = json.loads(await request.read() or b"{}")
        except ValueError:
            body = None
        if not isinstance(body, dict):
            self.faults.append(f"{path}: no JSON object")
            return {}
        info = body.get("base_info")
        if path != "get_bot_qrcode" and (not isinstance(info, dict) or "channel_version" not in info):
            self.faults.append(f"{path}: base_info")
        return body
