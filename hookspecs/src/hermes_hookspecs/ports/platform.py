"""The port of a chat platform's adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_hookspecs.inbox import AcceptResult, MessageEvent
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.state import StateUpdate

__all__ = [
    "Deferred",
    "DeliveryPart",
    "Inlet",
    "Platform",
    "PlatformAbilities",
    "PlatformAdapter",
    "SendResult",
    "Sent",
]


@attrs.frozen(kw_only=True)
class PlatformAbilities:
    """What a platform can do; the core adapts to it.

    Attributes:
        scoped: ids are unique only inside a workspace, so the scope is always part of the key.
        idempotent_send: a part sent twice with one key arrives once. max_length: characters of one part.
    """

    scoped: bool = False
    threads: bool = False
    edits: bool = False
    typing: bool = False
    idempotent_send: bool = False
    media: bool = False
    max_length: int = 4000
    formats: tuple[str, ...] = ("text",)


@attrs.frozen(kw_only=True)
class DeliveryPart:
    """One part of an answer, on its way out.

    Attributes:
        target: where it belongs, frozen when the answer was stored. key: idempotency key, minted once.
        index, count: which part of how many. reply_to: the platform's id of the message it answers.
    """

    target: SessionSource
    text: str
    key: str
    index: int = 0
    count: int = 1
    format: str = "text"
    reply_to: str | None = None


@attrs.frozen(kw_only=True)
class Sent:
    """It went out. ``possible_repeat``: it may have gone out before, and the platform cannot tell."""

    platform_message_id: str | None = None
    opened_thread_id: str | None = None
    possible_repeat: bool = False


@attrs.frozen(kw_only=True)
class Deferred:
    """Not now: from ``at`` (UTC milliseconds), or with the next message from there."""

    reason: str
    at: int | None = None


SendResult = Sent | Deferred


class Inlet(Protocol):
    """Where an adapter hands messages in."""

    async def accept(
        self, events: Sequence[MessageEvent], *, state: Sequence[StateUpdate] = ()
    ) -> Sequence[AcceptResult]:
        """Store a batch and the adapter's state in one transaction; acknowledge to the platform only behind it."""
        ...


class PlatformAdapter(Protocol):
    """One account of a platform, connected. It accepts, normalises and sends; it owns no policy."""

    async def run(self, inlet: Inlet) -> None:
        """Receive until cancelled; reconnect by itself; finish the batch in hand before leaving."""
        ...

    async def send(self, part: DeliveryPart) -> SendResult:
        """Send one part.

        :raises RetryLater, AuthFailed, Rejected: what became of it.
        """
        ...


class Platform(Protocol):
    """A platform, by name."""

    name: str
    abilities: PlatformAbilities

    def adapter(self, account_id: str, settings: Mapping[str, object], store: Store) -> PlatformAdapter:
        """Return the adapter of one account; connects to nothing yet.

        :raises ConfigError: settings or credentials are missing.
        """
        ...
