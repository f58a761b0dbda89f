"""What a fake platform can be told, and what it tells: the same for every platform, so that one suite drives all.

A fake is a real server on loopback that speaks its platform's protocol down to redelivery, quotas and odd errors. Each
platform's distribution ships its own in ``hermes_<x>.testing``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_hookspecs.ports.platform import Platform

__all__ = [
    "ARRIVED_BUT_FAILED",
    "BROKEN",
    "DEFERRED",
    "FAKES_GROUP",
    "OK",
    "RATE_LIMITED",
    "REJECTED",
    "FakePlatform",
    "FakeSent",
    "ServesProcesses",
    "ShowsTyping",
]

OK, RATE_LIMITED, BROKEN, ARRIVED_BUT_FAILED, REJECTED, DEFERRED = (
    "ok", "rate-limited", "broken", "arrived-but-failed", "rejected", "deferred",
)  # fmt: skip
"""How a fake answers a send: *broken* fails and nothing arrives, *arrived-but-failed* fails and it did arrive."""
FAKES_GROUP = "hermes.fakes.v1"
"""Entry points, named as their platform, of classes made without arguments: each a :class:`ServesProcesses`."""


@attrs.frozen(kw_only=True)
class FakeSent:
    """One message as people in the chat see it. ``text`` is the newest one, where it was edited.

    Attributes:
        file: bytes of the file that it is, ``None`` for a text. file_name: as people see it; pictures may have none.
    """

    message_id: str
    account_id: str
    chat_id: str
    text: str
    thread_id: str | None = None
    key: str | None = None
    edits: int = 0
    file: bytes | None = None
    file_name: str = ""


class FakePlatform(Protocol):
    """A platform on loopback. Used on one event loop; a fake in a process of its own may stand behind it."""

    name: str

    async def start(self) -> None:
        """Listen; idempotent."""
        ...

    async def stop(self) -> None:
        """Stop listening and drop every connection; what was said and sent stays."""
        ...

    def platform(self, accounts: Sequence[str] = ("default",)) -> Platform:
        """Return the product's platform, configured for this fake."""
        ...

    def environ(self) -> Mapping[str, str]:
        """Return the environment that holds the secrets of the accounts."""
        ...

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
        """Let somebody write, and return the message's id. Returns when it is on its way, not when it is accepted.

        :param own: our own account is the sender (an echo). deliver: ``False`` holds it back until :meth:`deliver`.
        """
        ...

    async def deliver(self, *message_ids: str) -> None:
        """Deliver messages, in this order, whether or not they were delivered before."""
        ...

    async def odd(self, kind: str) -> None:
        """Deliver something strange: ``unknown-event``, ``malformed``, ``oversize``."""
        ...

    async def acknowledged(self, message_id: str, timeout_s: float = 20) -> None:
        """Return once the platform has been told that a message arrived. :raises TimeoutError: not in time."""
        ...

    def is_acknowledged(self, message_id: str) -> bool:
        """Return whether the platform has been told."""
        ...

    async def sent(self, count: int = 1, timeout_s: float = 20) -> Sequence[FakeSent]:
        """Return what people see, oldest first, once there are ``count``. :raises TimeoutError: not in time."""
        ...

    def next_sends(self, *answers: str) -> None:
        """Say how the next sends are answered, one each; then they succeed again."""
        ...

    async def drop(self) -> None:
        """Cut the connections; new ones are welcome."""
        ...

    def freeze(self, frozen: bool) -> None:
        """Go on accepting bytes and answer nothing (half open), until told otherwise."""
        ...

    async def connected(self, count: int = 1, timeout_s: float = 20) -> None:
        """Return once ``count`` receiving connections were made since the start. :raises TimeoutError: not in time."""
        ...


class ShowsTyping(Protocol):
    """What a fake of a platform with ``typing`` has beside."""

    def is_typing(self, chat_id: str) -> bool:
        """Return whether people in a chat see that an answer is being written."""
        ...


class ServesProcesses(FakePlatform, Protocol):
    """A fake that a gateway in a process of its own can be configured for, as a person would."""

    def table(self, accounts: Sequence[str] = ("default",)) -> Mapping[str, object]:
        """Return ``[plugins.<name>]`` of a ``config.toml`` that leads here; sub-tables are mappings."""
        ...

    def logins(self, accounts: Sequence[str] = ("default",)) -> Sequence[Sequence[str]]:
        """Return what is to be run once before the gateway, each the words behind ``hermes``; often nothing.

        The fake is told of it by this call, and answers what is run as a person's phone would.
        """
        ...
