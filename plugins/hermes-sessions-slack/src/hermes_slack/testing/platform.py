"""The fake as the contract's :class:`~hermes_hookspecs.testing.fakes.FakePlatform`, so that its suite can drive it."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.testing.fakes import ARRIVED_BUT_FAILED, BROKEN, DEFERRED, OK, RATE_LIMITED, REJECTED, FakeSent
from hermes_slack.config import CHANNEL, HTTP, SOCKET, SlackConfig
from hermes_slack.credentials import variable
from hermes_slack.mrkdwn import escaped
from hermes_slack.platform import SlackPlatform
from hermes_slack.testing.payloads import callback, mention_twin, message
from hermes_slack.testing.server import FakeSlackServer
from hermes_slack.wire import mapping, text
from hermes_slack.words import read

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_slack.testing.state import App, Envelope

__all__ = ["FakeSlack"]

_ANSWERS = {
    OK: "ok", RATE_LIMITED: "ratelimited", BROKEN: "broken", ARRIVED_BUT_FAILED: "cut",
    REJECTED: "channel_not_found", DEFERRED: "ok",
}  # fmt: skip


@attrs.define(kw_only=True)
class _Said:
    account_id: str
    payloads: list[Mapping[str, object]]
    envelopes: list[Envelope] = attrs.field(factory=list)
    answered: int = 0


class FakeSlack:
    """A platform on loopback. ``server`` has the knobs that only this platform has.

    :param mode: the way in. replies: what the top of a channel is; the rest of the settings is :meth:`config`'s.
    """

    name = "slack"

    def __init__(self, mode: str = SOCKET, replies: str = CHANNEL) -> None:
        self.server = FakeSlackServer()
        self.mode = mode
        self._replies = replies
        self._said: dict[str, _Said] = {}
        self._pushing: set[asyncio.Task[None]] = set()
        self._listen = ""

    async def start(self) -> None:
        """Listen."""
        await self.server.start()
        self._listen = self._listen or _free_address()

    async def stop(self) -> None:
        """Stop listening."""
        for task in self._pushing:
            task.cancel()
        if self._pushing:
            await asyncio.wait(self._pushing)
        await self.server.stop()

    def config(self, accounts: Sequence[str] = ("default",), **more: object) -> SlackConfig:
        """Return settings that lead here, with little patience."""
        hurried: dict[str, object] = {"ping_s": 0.1, "silence_s": 0.6, "leave_s": 5}
        return SlackConfig.of({**self.table(accounts), **hurried, **more})

    def table(self, accounts: Sequence[str] = ("default",)) -> Mapping[str, object]:
        """Return the table of a configuration that leads here."""
        for account_id in accounts:
            self.app(account_id)
        return {
            "accounts": tuple(accounts),
            "mode": self.mode,
            "listen": self._listen,
            "base_url": f"{self.server.url}/api",
            "replies": self._replies,
        }

    def logins(self, accounts: Sequence[str] = ("default",)) -> Sequence[Sequence[str]]:
        """Return nothing: the tokens stand in the environment."""
        return ()

    def platform(self, accounts: Sequence[str] = ("default",)) -> SlackPlatform:
        """Return the product's platform."""
        return SlackPlatform(self.config(accounts))

    def app(self, account_id: str = "default") -> App:
        """Return the app of an account, installed if need be. All are in one workspace."""
        app_id = f"A0{account_id.upper()}"
        return self.server.apps.get(app_id) or self.server.install(app_id)

    def environ(self) -> Mapping[str, str]:
        """Return the secrets of the accounts ``default`` and ``second``."""
        found = {}
        for account_id in ("default", "second"):
            app = self.app(account_id)
            found[variable("BOT_TOKEN", account_id)] = ",".join(one.token for one in app.installations)
            found[variable("APP_TOKEN", account_id)] = app.app_token
            found[variable("SIGNING_SECRET", account_id)] = app.signing_secret
        return found

    def address(self, account_id: str = "default") -> str:
        """Return where an account's Events API is."""
        return f"http://{self._listen}/slack/{account_id}"

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
        """Let somebody write; ``more`` replaces fields of the event. In a group, a mention has its twin."""
        app = self.app(account_id)
        here = app.installations[0]
        words = escaped(text)
        mentions = group and mention and not own
        if mentions:
            words = f"<@{here.user_id}> {words}"
        if own:
            more |= {"user": here.user_id, "bot_id": here.bot_id}
        elif from_bot:
            more |= {"bot_id": f"B-{user_id}"}
        ts = self.server.ts()
        kind = "channel" if group else "im"
        inner = message(chat_id, user_id, words, ts, channel_type=kind, thread_ts=thread_id, **more)
        inners = [inner, mention_twin(inner)] if mentions else [inner]
        payloads = [callback(app, here, each, self.server.number("Ev")) for each in inners]
        self._said[ts] = _Said(account_id=account_id, payloads=list(payloads))
        if deliver:
            await self.deliver(ts)
        return ts

    async def deliver(self, *message_ids: str) -> None:
        """Deliver messages, in this order."""
        for message_id in message_ids:
            said = self._said[message_id]
            app = self.app(said.account_id)
            if self.mode == HTTP:
                self._push(app, said)
            elif said.envelopes and any(envelope.acknowledged for envelope in said.envelopes):
                # what was acknowledged comes in another envelope, when it comes again
                said.envelopes += [self.server.deliver(app, payload) for payload in said.payloads]
            elif said.envelopes:
                for envelope in said.envelopes:
                    self.server.again(app, envelope)
            else:
                said.envelopes = [self.server.deliver(app, payload) for payload in said.payloads]
        await asyncio.sleep(0)

    def _push(self, app: App, said: _Said) -> None:
        async def pushed() -> None:
            for payload in said.payloads:
                await self.server._unfrozen()  # noqa: SLF001 - of one house
                status, _ = await self.server.push(app, self.address(said.account_id), payload)
                said.answered += status == 200
                self.server.note()

        task = asyncio.create_task(pushed(), name="fake-slack-push")
        self._pushing.add(task)
        task.add_done_callback(self._pushing.discard)

    async def odd(self, kind: str) -> None:
        """Deliver something strange."""
        app = self.app()
        here = app.installations[0]
        odd: Mapping[str, object]
        if kind == "malformed":
            await self.server.raw(app, "{]")
            odd = callback(app, here, ["not", "an", "object"], self.server.number("Ev"))
        elif kind == "oversize":
            inner = message("chat-1", "user-1", "x" * 200_000, self.server.ts())
            odd = callback(app, here, inner, self.server.number("Ev"))
        else:
            odd = callback(app, here, {"type": "galaxy_created", "galaxy": {}}, self.server.number("Ev"))
        if self.mode == HTTP:
            self._push(app, _Said(account_id="default", payloads=[odd]))
        else:
            self.server.deliver(app, odd)

    def is_acknowledged(self, message_id: str) -> bool:
        """Return whether a message, or its twin, was acknowledged."""
        said = self._said[message_id]
        return said.answered > 0 or any(envelope.acknowledged for envelope in said.envelopes)

    async def acknowledged(self, message_id: str, timeout_s: float = 20) -> None:
        """Return once :meth:`is_acknowledged`."""
        await self.server.until(lambda: self.is_acknowledged(message_id), timeout_s)

    async def sent(self, count: int = 1, timeout_s: float = 20) -> Sequence[FakeSent]:
        """Return what people see of what bots posted."""
        await self.server.until(lambda: len(self._posts()) >= count, timeout_s)
        return self._posts()

    def _posts(self) -> list[FakeSent]:
        accounts = {one.token: alias for alias in ("default", "second") for one in self.app(alias).installations}
        return [
            FakeSent(
                message_id=post.ts,
                account_id=accounts[post.token],
                chat_id=post.channel,
                text=read(post.text),
                thread_id=post.thread_ts,
                key=text(mapping(post.metadata or {}, "event_payload"), "id") or None,
                edits=post.edits + post.appended,
                file=post.files[0].data if post.files else None,
                file_name=post.files[0].title if post.files else "",
            )
            for post in self.server.posts
            if post.token in accounts
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
        self.server.freeze(frozen)

    async def connected(self, count: int = 1, timeout_s: float = 20) -> None:
        """Return once there were ``count`` sockets; of an Events API, once an account asked who it is."""
        if self.mode == HTTP:
            await self.server.until(lambda: "auth.test" in self.server.calls, timeout_s)
            return
        await self.server.until(lambda: sum(app.opened for app in self.server.apps.values()) >= count, timeout_s)


def _free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"
