"""The fake as the contract's :class:`~hermes_hookspecs.testing.fakes.FakePlatform`, so that its suite can drive it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hermes_hookspecs.testing.fakes import ARRIVED_BUT_FAILED, BROKEN, DEFERRED, OK, RATE_LIMITED, REJECTED, FakeSent
from hermes_weixin.config import WeixinConfig
from hermes_weixin.credentials import Credentials, save
from hermes_weixin.platform import WeixinPlatform
from hermes_weixin.testing.server import FakeILink

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_hookspecs.ports.platform import AccountSetup, PlatformAdapter
    from hermes_weixin.testing.state import Bot

__all__ = ["FakeWeixin"]

_ANSWERS = {
    OK: "ok", RATE_LIMITED: "-2", BROKEN: "broken", ARRIVED_BUT_FAILED: "arrived", REJECTED: "rejected", DEFERRED: "ok",
}  # fmt: skip


class _LoggedIn(WeixinPlatform):
    """The platform, whose accounts are logged in at the fake when their adapters are made."""

    def __init__(self, fake: FakeWeixin, accounts: Sequence[str]) -> None:
        super().__init__(fake.config(accounts), lambda _alias, _owner: None)
        self._fake = fake

    def adapter(self, setup: AccountSetup) -> PlatformAdapter:
        save(setup.folder, self._fake.login(setup.account_id))
        return super().adapter(setup)


class FakeWeixin:
    """A platform on loopback. ``server`` has the knobs that only this platform has."""

    name = "weixin"

    def __init__(self) -> None:
        self.server = FakeILink()
        self._bots: dict[str, Bot] = {}
        self._said: dict[str, tuple[str, dict[str, object]]] = {}

    async def start(self) -> None:
        """Listen."""
        await self.server.start()

    async def stop(self) -> None:
        """Stop listening."""
        await self.server.stop()

    def config(self, accounts: Sequence[str] = ("default",), **more: object) -> WeixinConfig:
        """Return settings that lead here."""
        return WeixinConfig.of({**self.table(accounts), **more})

    def table(self, accounts: Sequence[str] = ("default",)) -> Mapping[str, object]:
        """Return the table of a configuration that leads here, without the pauses between messages."""
        return {
            "accounts": tuple(accounts),
            "base_url": self.server.url,
            "cdn_url": f"{self.server.url}/c2c",
            "peer_pause_s": 0,
            "bot_pause_s": 0,
            "leave_s": 5,
        }

    def logins(self, accounts: Sequence[str] = ("default",)) -> Sequence[Sequence[str]]:
        """Return one login for each account; its code is scanned at once."""
        for account_id in accounts:
            bot = self.bot(account_id)
            self.server.qr_states.append(
                {
                    "status": "confirmed",
                    "bot_token": bot.token,
                    "ilink_bot_id": bot.bot_id,
                    "ilink_user_id": bot.user_id,
                    "baseurl": self.server.url,
                }
            )
        return [("weixin", "login", account_id) for account_id in accounts]

    def platform(self, accounts: Sequence[str] = ("default",)) -> WeixinPlatform:
        """Return the product's platform."""
        return _LoggedIn(self, accounts)

    def environ(self) -> Mapping[str, str]:
        """Return nothing: logins are files."""
        return {}

    def bot(self, account_id: str = "default") -> Bot:
        """Return the bot of an account, bound if need be."""
        if account_id not in self._bots:
            self._bots[account_id] = self.server.bind(f"owner-of-{account_id}")
        return self._bots[account_id]

    def login(self, account_id: str = "default") -> Credentials:
        """Return the login of an account."""
        bot = self.bot(account_id)
        return Credentials(
            token=bot.token, bot_id=bot.bot_id, user_id=bot.user_id, base_url=self.server.url, saved_at=1
        )

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
        """Let somebody write. A direct chat is its person here, so ``chat_id`` counts in a group alone."""
        peer = user_id if group or chat_id == "chat-1" else chat_id
        more: dict[str, object] = {"group_id": chat_id} if group else {}
        if from_bot or own:
            more["message_type"] = 2
        message = self.server.message(peer, text, **more)
        message_id = str(message["message_id"])
        self._said[message_id] = (account_id, message)
        if deliver:
            await self.deliver(message_id)
        return message_id

    async def deliver(self, *message_ids: str) -> None:
        """Deliver messages, in this order."""
        for message_id in message_ids:
            account_id, message = self._said[message_id]
            self.server.say(self.bot(account_id), message)
        await asyncio.sleep(0)

    async def odd(self, kind: str) -> None:
        """Deliver something strange."""
        bot = self.bot()
        if kind == "malformed":
            bot.waiting.append([])
            bot.arrived.set()
        elif kind == "oversize":
            self.server.say(bot, self.server.message("user-1", "x" * 200_000))
        else:
            self.server.say(bot, self.server.message("user-1", "", item_list=[{"type": 99, "new_item": {}}]))

    def is_acknowledged(self, message_id: str) -> bool:
        """Return whether a poll has come back with the cursor behind a message: that is how it is told."""
        account_id, _ = self._said[message_id]
        bot = self.bot(account_id)
        cursor = bot.brought.get(message_id)
        return cursor is not None and bot.acknowledged >= cursor

    async def acknowledged(self, message_id: str, timeout_s: float = 20) -> None:
        """Return once :meth:`is_acknowledged`."""
        await self.server.until(lambda: self.is_acknowledged(message_id), timeout_s)

    async def sent(self, count: int = 1, timeout_s: float = 20) -> Sequence[FakeSent]:
        """Return what people see."""
        await self.server.until(lambda: len(self.server.sent) >= count, timeout_s)
        accounts = {bot.token: alias for alias, bot in self._bots.items()}
        return [
            FakeSent(
                message_id=one.message_id,
                account_id=accounts[one.token],
                chat_id=one.peer,
                text=one.text,
                key=one.client_id,
                file=self.server.cdn.plain_of(one.item),
                file_name=one.file_name,
            )
            for one in self.server.sent
        ]

    def next_sends(self, *answers: str) -> None:
        """Say how the next sends are answered; what cannot be deferred by the server is an ordinary success."""
        self.server.answers.extend(_ANSWERS[answer] for answer in answers)

    async def drop(self) -> None:
        """Cut the connections."""
        await self.server.stop()
        await self.server.start()

    def freeze(self, frozen: bool) -> None:
        """Answer nothing."""
        self.server.frozen = frozen

    async def connected(self, count: int = 1, timeout_s: float = 20) -> None:
        """Return once there were ``count`` polls."""
        await self.server.until(lambda: sum(bot.polls for bot in self.server.bots.values()) >= count, timeout_s)
