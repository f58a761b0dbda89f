"""What both fakes have in common: people who write through a program."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from yarl import URL

from hermes_hookspecs.clock import SystemClock
from hermes_webhook.config import WebhookConfig
from hermes_webhook.platform import platforms
from hermes_webhook.testing.callers import Caller, Posted, free_listen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_hookspecs.ports.platform import Platform

__all__ = ["FakeEntrance"]


class FakeEntrance:
    """The part of a fake that writes. For one event loop.

    :param name: of the platform. kind: ``accounts`` or ``api``, as the configuration has it.

    Attributes:
        listen: where the product listens. caller: the program that posts.
        settings: further keys of ``[plugins.webhook]``. account_settings: of each account.
    """

    def __init__(self, name: str, kind: str, path: str, variable: str) -> None:
        self.settings: dict[str, object] = {}
        self.account_settings: dict[str, object] = {}
        self.name = name
        self.clock = SystemClock()
        self.listen = free_listen()
        self.caller = Caller(self.url, self.headers)
        self._kind = kind
        self._path = path
        self._variable = variable

    # --- the product

    def table(self, accounts: Sequence[str] = ("default",)) -> dict[str, object]:
        """Return ``[plugins.webhook]`` with these accounts."""
        tables = {alias: self._account() | self.account_settings for alias in accounts}
        return {"listen": self.listen, self._kind: tables} | self.settings

    def platform(self, accounts: Sequence[str] = ("default",)) -> Platform:
        """Return the product's platform."""
        found = platforms(WebhookConfig.of(self.table(accounts)))
        return next(platform for platform in found if platform.name == self.name)

    def secret(self, account_id: str) -> str:
        """Return the secret of an account."""
        return f"a-secret-of-{self.name}-{account_id}"

    def environ(self) -> Mapping[str, str]:
        """Return where the secrets are."""
        accounts = {"": "default", "_SECOND": "second"}
        return {self._variable + suffix: self.secret(alias) for suffix, alias in accounts.items()}

    def url(self, account_id: str = "default") -> str:
        """Return where messages of an account are posted to."""
        return f"http://{self.listen}{self._path}/{account_id}/messages"

    def headers(self, account_id: str, payload: bytes) -> Mapping[str, str]:
        """Return the headers that say who posts, or asks."""
        raise NotImplementedError

    def _account(self) -> dict[str, object]:
        return {}

    async def get(self, path: str, account_id: str = "default", **query: str) -> tuple[int, dict[str, object]]:
        """Ask for something below an account's path; return status and body."""
        target = f"{path}?{urlencode(query)}" if query else path
        url = URL(self.url(account_id).removesuffix("/messages") + target, encoded=True)
        headers = self.headers(account_id, target.encode())
        async with self.caller.client.get(url, headers=headers) as response:
            return response.status, json.loads(await response.read())

    async def fetch(self, path: str, account_id: str = "default") -> bytes:
        """Return the bytes of a file of an answer."""
        url = URL(self.url(account_id).removesuffix("/messages") + path, encoded=True)
        async with self.caller.client.get(url, headers=self.headers(account_id, path.encode())) as response:
            response.raise_for_status()
            return await response.read()

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
        **more: object,
    ) -> str:
        """Let somebody write. ``more``: further fields of the body."""
        message_id = f"message-{len(self.caller.posted) + 1}"
        said: dict[str, object] = {
            "id": message_id,
            "chat_id": chat_id,
            "chat_type": "group" if group else "dm",
            "user_id": "hermes" if own else user_id,
            "text": text,
            "is_bot": from_bot or own,
            "addressed": mention,
        }
        if thread_id is not None:
            said["thread_id"] = thread_id
        self.caller.posted[message_id] = Posted(account_id, json.dumps(said | more).encode())
        if deliver:
            await self.deliver(message_id)
        return message_id

    async def deliver(self, *message_ids: str) -> None:
        """Post messages, in this order; the next one is not posted before the one before it is on its way."""
        for message_id in message_ids:
            await self.caller.post(message_id)

    async def odd(self, kind: str) -> None:
        """Post something strange, once."""
        body = {
            "unknown-event": b'{"type": "reaction", "id": "r1", "user_id": "user-1"}',
            "malformed": b'{"id": "x1", "user_id": ',
            "oversize": b'{"id": "x2", "user_id": "user-1", "text": "' + b"x" * 400_000 + b'"}',
        }[kind]
        await self.caller.raw("default", body)

    def is_acknowledged(self, message_id: str) -> bool:
        """Return whether the program knows what became of a message."""
        return self.caller.posted[message_id].is_final

    async def acknowledged(self, message_id: str, timeout_s: float = 20) -> None:
        """Return once it knows."""
        await self.caller.until(lambda: self.is_acknowledged(message_id), timeout_s)

    async def drop(self) -> None:
        """Cut the connections."""
        await self.caller.drop()

    async def connected(self, count: int = 1, timeout_s: float = 20) -> None:
        """Return once somebody listens: the product makes no connections."""
        host, _, port = self.listen.rpartition(":")
        async with asyncio.timeout(timeout_s):
            while True:
                try:
                    _, writer = await asyncio.open_connection(host, int(port))
                except OSError:
                    await asyncio.sleep(0.02)
                    continue
                writer.close()
                return
