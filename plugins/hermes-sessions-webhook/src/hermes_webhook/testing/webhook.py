"""The platform ``webhook`` from outside: a program that posts signed messages, and takes callbacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_webhook.config import WEBHOOK
from hermes_webhook.signing import headers_of
from hermes_webhook.testing.entrance import FakeEntrance
from hermes_webhook.testing.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_hookspecs.testing.fakes import FakeSent

__all__ = ["FakeWebhook"]


class FakeWebhook(FakeEntrance):
    """A :class:`~hermes_hookspecs.testing.fakes.FakePlatform`. ``receiver`` is where answers arrive.

    :param answers_by_callback: the account has a ``callback_url``; otherwise answers wait to be fetched.
    """

    def __init__(self, *, answers_by_callback: bool = True) -> None:
        self.answers_by_callback = answers_by_callback
        super().__init__(WEBHOOK, "accounts", "/webhook", "WEBHOOK_SECRET")
        self.receiver = Receiver(self.secret, self.clock, self.caller.nudge)

    def headers(self, account_id: str, payload: bytes) -> Mapping[str, str]:
        """Return the headers of a signature that is made now."""
        return headers_of(self.secret(account_id), payload, self.clock.now())

    def _account(self) -> dict[str, object]:
        return {"callback_url": self.receiver.url} if self.answers_by_callback else {}

    async def start(self) -> None:
        """Listen for callbacks."""
        await self.receiver.start()

    async def stop(self) -> None:
        """Take no callbacks, and post nothing any more."""
        await self.caller.close()
        await self.receiver.stop()

    async def sent(self, count: int = 1, timeout_s: float = 20) -> Sequence[FakeSent]:
        """Return the answers that arrived."""
        await self.caller.until(lambda: len(self.receiver.bodies) >= count, timeout_s)
        return self.receiver.sent()

    def next_sends(self, *answers: str) -> None:
        """Say how the next callbacks are answered."""
        self.receiver.next_answers(*answers)

    def freeze(self, frozen: bool) -> None:
        """Post half of each message, and answer no callback."""
        self.caller.freeze(frozen)
        self.receiver.freeze(frozen)
