"""The fake as the contract's :class:`~hermes_hookspecs.testing.fakes.FakePlatform`, so that its suite can drive it."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from typing import TYPE_CHECKING

from aiohttp import web

from hermes_feishu.config import CONNECTION, WEBHOOK, FeishuConfig
from hermes_feishu.credentials import variable_of
from hermes_feishu.platform import FeishuPlatform
from hermes_feishu.testing.api import Api
from hermes_feishu.testing.files import file_of
from hermes_feishu.testing.hub import Hub
from hermes_feishu.testing.pushes import Push, Pushes, signed
from hermes_feishu.testing.world import Kept, World, shown
from hermes_hookspecs.sockets import close_server
from hermes_hookspecs.testing.fakes import FakeSent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from hermes_feishu.testing.world import FakeApp

__all__ = ["FakeFeishu"]

_TENANT = "tk_fake"


class FakeFeishu:
    """A platform on loopback.

    :param mode: how apps receive: ``connection`` or ``webhook``.

    Attributes:
        world: the knobs. hub: the long connections. pushes: events on their way.
    """

    name = "feishu"

    def __init__(self, mode: str = CONNECTION) -> None:
        self._mode = mode
        self.world = World()
        self.hub = Hub(self.world)
        self.pushes = Pushes(self.world, self.hub)
        self._api = Api(self.world)
        self._runner: web.AppRunner | None = None
        self._socket: asyncio.Server | None = None
        self._port = _free_port()
        self._events: dict[str, tuple[FakeApp, bytes]] = {}

    # --- the server

    @property
    def url(self) -> str:
        """Return the address of the API."""
        return f"http://127.0.0.1:{self._port}"

    async def start(self) -> None:
        """Listen; idempotent."""
        if self._runner is not None:
            return
        app = web.Application(middlewares=[self._frozen], client_max_size=1 << 26)
        app.add_routes([*self._api.routes(), *self.hub.routes()])
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.05)
        await self._runner.setup()
        server = self._runner.server
        assert server is not None  # noqa: S101 - it was set up
        self._socket = await asyncio.get_running_loop().create_server(server, "127.0.0.1", self._port)
        self.pushes.open()

    async def stop(self) -> None:
        """Stop listening and drop every connection."""
        runner, self._runner = self._runner, None
        if runner is None:
            return
        await self.pushes.close()
        self.hub.drop()
        open_socket, self._socket = self._socket, None
        if open_socket is not None:
            await close_server(open_socket)
        await runner.cleanup()

    @web.middleware
    async def _frozen(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        await self.world.thawed.wait()
        return await handler(request)

    # --- the product before it

    def config(self, accounts: Sequence[str] = ("default",), *, account: object = None, **more: object) -> FeishuConfig:
        """Return settings that lead here, in a hurry. ``account``: settings of each account."""
        tables = {}
        for alias in accounts:
            app = self.world.app(alias)
            table: dict[str, object] = {"app_id": app.app_id, "domain": self.url, "mode": self._mode}
            if self._mode == WEBHOOK:
                port = int(app.webhook.split(":")[2].split("/")[0]) if app.webhook else _free_port()
                app.webhook = f"http://127.0.0.1:{port}/feishu/{alias}"
                table["listen"] = f"127.0.0.1:{port}"
            tables[alias] = table | (dict(account) if isinstance(account, dict) else {})
        hurried = {"timeout_s": 5, "silence_s": 0.5, "reconnect_first_s": 0.02, "reconnect_most_s": 0.2}
        return FeishuConfig.of({"accounts": tables} | hurried | more)

    def table(self, accounts: Sequence[str] = ("default",)) -> Mapping[str, object]:
        """Return the table of a configuration that leads here."""
        apps = {alias: self.world.app(alias) for alias in accounts}
        tables = {alias: {"app_id": app.app_id, "domain": self.url} for alias, app in apps.items()}
        return {"accounts": tables, "timeout_s": 5, "reconnect_first_s": 0.05, "reconnect_most_s": 0.5}

    def logins(self, accounts: Sequence[str] = ("default",)) -> Sequence[Sequence[str]]:
        """Return nothing: the secrets stand in the environment."""
        return ()

    def platform(self, accounts: Sequence[str] = ("default",)) -> FeishuPlatform:
        """Return the product's platform."""
        return FeishuPlatform(self.config(accounts))

    def environ(self) -> Mapping[str, str]:
        """Return the secrets of the accounts ``default`` and ``second``, and of those that were configured."""
        found = {}
        for alias in {"default", "second", *self.world.apps}:
            app = self.world.app(alias)
            found[variable_of(alias, "app_secret")] = app.secret
            if self._mode == WEBHOOK:
                found[variable_of(alias, "encrypt_key")] = app.encrypt_key
                found[variable_of(alias, "verification_token")] = app.verification_token
        return found

    # --- people

    async def say(
        self,
        text: str,
        *,
        chat_id: str = "chat-1",
        user_id: str = "user-1",
        group: bool = False,
        thread_id: str | None = None,
        mention: bool = True,
        account_id: str = "default",
        from_bot: bool = False,
        own: bool = False,
        deliver: bool = True,
    ) -> str:
        """Let somebody write."""
        app = self.world.app(account_id)
        mentions = []
        if group and mention:
            text = f"@_user_1 {text}"
            mentions = [self.mention("@_user_1", app.bot_open_id, f"Bot {app.alias}")]
        return self.write(
            {"text": text},
            chat_id=chat_id,
            user_id=app.bot_open_id if own else user_id,
            chat_type="group" if group else "p2p",
            thread_id=thread_id or "",
            account_id=account_id,
            sender_type="app" if from_bot or own else "user",
            mentions=mentions,
            deliver=deliver,
        )

    def mention(self, key: str, open_id: str, name: str) -> dict[str, object]:
        """Return a mention as events have them."""
        ids = {"open_id": open_id, "union_id": f"on_{open_id}", "user_id": ""}
        return {"key": key, "id": ids, "name": name, "tenant_key": _TENANT}

    def write(
        self,
        content: object,
        *,
        message_type: str = "text",
        chat_id: str = "chat-1",
        user_id: str = "user-1",
        chat_type: str = "p2p",
        thread_id: str = "",
        parent_id: str = "",
        root_id: str = "",
        account_id: str = "default",
        sender_type: str = "user",
        mentions: Sequence[dict[str, object]] = (),
        deliver: bool = True,
        silent: Sequence[str] = (),
        age_s: float = 0.0,
    ) -> str:
        """Let somebody write anything; return the message's id.

        :param content: object, or the text that stands for it. silent: fields of the message that its event leaves out.
        :param age_s: how long ago it was written.
        """
        app = self.world.app(account_id)
        kept = self.world.keep(
            Kept(
                message_id=self.world.new_id("om"),
                chat_id=chat_id,
                type=message_type,
                content=content if isinstance(content, str) else json.dumps(content, ensure_ascii=False),
                sender=user_id,
                thread_id=thread_id,
                parent_id=parent_id,
                root_id=root_id or parent_id,
                mentions=list(mentions),
                created_ms=int((time.time() - age_s) * 1000),
            )
        )
        sender = {
            "sender_id": {"open_id": user_id, "union_id": f"on_{user_id}", "user_id": ""},
            "sender_type": sender_type,
            "tenant_key": _TENANT,
        }
        message = {
            "message_id": kept.message_id,
            "root_id": kept.root_id,
            "parent_id": parent_id,
            "create_time": str(kept.created_ms),
            "chat_id": chat_id,
            "thread_id": thread_id,
            "chat_type": chat_type,
            "message_type": message_type,
            "content": kept.content,
            "mentions": list(mentions) or None,
        }
        event = {"sender": sender, "message": {key: value for key, value in message.items() if key not in silent}}
        self._events[kept.message_id] = (app, self.event(app, "im.message.receive_v1", event))
        if deliver:
            self._push(kept.message_id)
        return kept.message_id

    def event(self, app: FakeApp, kind: str, event: object, *, app_id: str = "") -> bytes:
        """Return an event as it is pushed. ``app_id``: of another app than the one that it is pushed to."""
        header = {
            "event_id": self.world.new_id("ev"),
            "event_type": kind,
            "create_time": str(int(time.time() * 1000)),
            "token": app.verification_token,
            "app_id": app_id or app.app_id,
            "tenant_key": _TENANT,
        }
        return json.dumps({"schema": "2.0", "header": header, "event": event}, ensure_ascii=False).encode()

    def recall(self, message_id: str) -> None:
        """Let somebody take a message back."""
        kept = self.world.messages[message_id]
        kept.deleted = True
        app, _ = self._events[message_id]
        event = {"message_id": message_id, "chat_id": kept.chat_id, "recall_type": "message_owner"}
        self.push(app, self.event(app, "im.message.recalled_v1", event))

    def push(self, app: FakeApp, payload: bytes) -> None:
        """Push any event, until it is acknowledged."""
        self.pushes.send(Push(app, payload))

    def _push(self, message_id: str) -> None:
        app, payload = self._events[message_id]
        self.pushes.send(Push(app, payload, message_id))

    async def deliver(self, *message_ids: str) -> None:
        """Deliver messages, in this order, whether or not they were delivered before."""
        for message_id in message_ids:
            self._push(message_id)
        await asyncio.sleep(0)

    async def odd(self, kind: str) -> None:
        """Deliver something strange."""
        app = self.world.app("default")
        if kind == "unknown-event":
            self.pushes.send(Push(app, self.event(app, "im.chat.imagined_v9", {"x": 1}), again=False))
        elif kind == "oversize":
            self.write({"text": "x" * 200_000})
            if app.webhook:
                body, headers = signed(app, self.event(app, "im.chat.imagined_v9", {"x": "y" * 2_000_000}))
                await self.pushes.call(app, body, headers)
        else:
            self.pushes.send(Push(app, b"\xff\xfe{", again=False))
            if not app.webhook:
                await self.hub.raw(app, b"\x08\xff")

    # --- what is seen

    def is_acknowledged(self, message_id: str) -> bool:
        """Return whether the platform has been told."""
        return message_id in self.world.acknowledged

    async def acknowledged(self, message_id: str, timeout_s: float = 20) -> None:
        """Return once the platform has been told that a message arrived."""
        await self.world.until(lambda: self.is_acknowledged(message_id), timeout_s)

    async def refused(self, message_id: str = "", timeout_s: float = 20) -> None:
        """Return once an event was not taken, and will come again. ``message_id``: what it brings, ``""`` for any."""

        def was_refused() -> bool:
            return message_id in self.pushes.refused if message_id else bool(self.pushes.refused)

        await self.world.until(was_refused, timeout_s)

    async def settled(self, timeout_s: float = 20) -> None:
        """Return once no event is on its way."""
        await self.world.until(lambda: self.pushes.is_empty, timeout_s)

    async def sent(self, count: int = 1, timeout_s: float = 20) -> Sequence[FakeSent]:
        """Return what people see, oldest first, once there are ``count``."""
        await self.world.until(lambda: len(self.world.sent_by_apps()) >= count, timeout_s)
        aliases = {app.app_id: alias for alias, app in self.world.apps.items()}
        return [
            FakeSent(
                message_id=one.message_id,
                account_id=aliases[one.app_id],
                chat_id=one.chat_id,
                text=shown(one.type, one.content),
                thread_id=one.thread_id or None,
                key=one.uuid or None,
                edits=one.edits,
                file=None if (file := file_of(self.world, one)) is None else file.data,
                file_name="" if file is None else file.name,
            )
            for one in self.world.sent_by_apps()
        ]

    def is_typing(self, chat_id: str) -> bool:
        """Return whether a reaction in a chat says that an answer is being written."""
        return any(
            emoji == "Typing" and self.world.messages[message_id].chat_id == chat_id
            for _, message_id, emoji in self.world.reactions.values()
        )

    def next_sends(self, *answers: str) -> None:
        """Say how the next sends are answered."""
        self.world.answers.extend(answers)

    async def drop(self) -> None:
        """Cut the connections; new ones are welcome."""
        self.hub.drop()

    def freeze(self, frozen: bool) -> None:
        """Go on accepting bytes and answer nothing, until told otherwise."""
        if frozen:
            self.world.thawed.clear()
        else:
            self.world.thawed.set()

    async def connected(self, count: int = 1, timeout_s: float = 20) -> None:
        """Return once ``count`` connections were made; whoever is called makes none, and is not waited for."""
        if self._mode == CONNECTION:
            await self.world.until(lambda: self.world.connections_made >= count, timeout_s)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
