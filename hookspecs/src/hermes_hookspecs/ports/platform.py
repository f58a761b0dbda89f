"""The port of a chat platform's adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_hookspecs.inbox import AcceptResult, MessageEvent
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.source import Entrance, SessionSource
    from hermes_hookspecs.state import StateUpdate

__all__ = [
    "Deferred",
    "DeliveryPart",
    "Inlet",
    "Platform",
    "PlatformAbilities",
    "PlatformAdapter",
    "SendResult",
    "Sender",
    "Sent",
    "SentLookup",
    "ServedEntrance",
]


@attrs.frozen(kw_only=True)
class PlatformAbilities:
    """What a platform can do; the core adapts to it.

    Attributes:
        scoped: ids are unique only inside a workspace, so the scope is always part of the key.
        idempotent_send: a part sent twice with one key arrives once. max_length: characters of one part.
        parts_per_minute: most parts to one address in a minute, ``None`` where the platform sets no such limit.
    """

    scoped: bool = False
    threads: bool = False
    edits: bool = False
    typing: bool = False
    idempotent_send: bool = False
    media: bool = False
    max_length: int = 4000
    parts_per_minute: int | None = None
    formats: tuple[str, ...] = ("text",)


@attrs.frozen(kw_only=True)
class DeliveryPart:
    """One part of an answer, on its way out.

    Attributes:
        target: where it belongs, frozen when the answer was stored. key: idempotency key, minted once.
        index, count: which part of how many. reply_to: the platform's id of the message it answers.
        possible_repeat: it may have gone out before; where the platform cannot tell, the text says so already.
    """

    target: SessionSource
    text: str
    key: str
    index: int = 0
    count: int = 1
    format: str = "text"
    reply_to: str | None = None
    possible_repeat: bool = False


@attrs.frozen(kw_only=True)
class Sent:
    """It went out.

    Attributes:
        opened_thread_id: the thread that it opened; its key leads to the lineage from then on.
        possible_repeat: it may have gone out before, and the platform cannot tell.
        state: what the adapter has to remember of it, stored in the transaction that marks the part as sent.
    """

    platform_message_id: str | None = None
    opened_thread_id: str | None = None
    possible_repeat: bool = False
    state: tuple[StateUpdate, ...] = ()


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


class Sender(Protocol):
    """The sending half of an adapter."""

    async def send(self, part: DeliveryPart) -> SendResult:
        """Send one part.

        :raises RetryLater, AuthFailed, Rejected: what became of it. Anything else, a time limit too, leaves open
            whether it went out.
        """
        ...


class SentLookup(Protocol):
    """What a sender may have beside: asking the platform whether a part went out."""

    async def find_sent(self, part: DeliveryPart) -> Sent | None:
        """Return how the part went out, ``None`` when it did not. :raises RetryLater: the platform does not say."""
        ...


@attrs.frozen(kw_only=True)
class ServedEntrance:
    """An entrance that this process serves: its messages are answered, its deliveries are sent."""

    entrance: Entrance
    sender: Sender
    abilities: PlatformAbilities = attrs.field(factory=PlatformAbilities)


class PlatformAdapter(Sender, Protocol):
    """One account of a platform, connected. It accepts, normalises and sends; it owns no policy."""

    async def run(self, inlet: Inlet) -> None:
        """Receive until cancelled; reconnect by itself; finish the batch in hand before leaving."""
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
