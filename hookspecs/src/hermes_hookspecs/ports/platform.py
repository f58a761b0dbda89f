"""The port of a chat platform's adapter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from pathlib import Path

    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.files import OutgoingFile
    from hermes_hookspecs.inbox import AcceptResult, MessageEvent
    from hermes_hookspecs.messages import Attachment
    from hermes_hookspecs.outbox import PartDraft
    from hermes_hookspecs.source import Entrance, SessionSource
    from hermes_hookspecs.state import StateEntry, StateUpdate

__all__ = [
    "CONNECTED",
    "CONNECTING",
    "FAILED",
    "WAITING",
    "AccountSetup",
    "AttachmentFetcher",
    "Deferred",
    "DeliveryPart",
    "Editor",
    "Inlet",
    "Joiner",
    "Platform",
    "PlatformAbilities",
    "PlatformAdapter",
    "SendResult",
    "Sender",
    "Sent",
    "SentLookup",
    "ServedEntrance",
    "Splitter",
    "StateReader",
    "Typist",
]


@attrs.frozen(kw_only=True)
class PlatformAbilities:
    """What a platform can do; the core adapts to it.

    Attributes:
        scoped: ids are unique only inside a workspace, so the scope is always part of the key.
        idempotent_send: a part sent twice with one key arrives once. idempotent_for_s: for so long, from the first time
            on; ``None``: for ever. What may have gone out longer ago is sent with the mark of a possible repeat.
        max_length: characters of one part.
        media: pictures, sounds and documents that people send can be fetched.
        max_file_bytes: of one file that we send; 0 where none can be sent. For larger ones a line of text stands.
        parts_per_minute: most parts to one address in a minute, ``None`` where the platform sets no such limit.
        most_edits: how often one message can be edited, ``None`` for as often as one likes.
        leave_s: seconds in which a run that is cancelled has stored what it has in hand and ended; behind that it is
            left. A platform that hands things out once gives its requests the time to come back.
        admits: only who knows a secret of the operator comes through (a signed webhook, an API with a token): where the
            configuration sets no policy, whoever does is let in.
    """

    scoped: bool = False
    threads: bool = False
    edits: bool = False
    typing: bool = False
    idempotent_send: bool = False
    idempotent_for_s: float | None = None
    media: bool = False
    max_file_bytes: int = 0
    max_length: int = 4000
    parts_per_minute: int | None = None
    most_edits: int | None = None
    leave_s: float = 10.0
    admits: bool = False
    formats: tuple[str, ...] = ("text",)


@attrs.frozen(kw_only=True)
class DeliveryPart:
    """One part of an answer, on its way out.

    Attributes:
        target: where it belongs, frozen when the answer was stored. key: idempotency key, minted once.
        index, count: which part of how many. reply_to: the platform's id of the message it answers.
        possible_repeat: it may have gone out before; where the platform cannot tell, the text says so already.
        media: the file that the part is, at most ``max_file_bytes`` of it; the text is then not to be sent: it is what
            stands for the file where it cannot be, which the core sends by itself when the sender raises ``Rejected``.
        is_draft: the answer is still being written: what is sent is edited as it grows, and at last by the answer
            itself. A sender that cannot edit what it would send refuses it.
    """

    target: SessionSource
    text: str
    key: str
    index: int = 0
    count: int = 1
    format: str = "text"
    reply_to: str | None = None
    possible_repeat: bool = False
    media: OutgoingFile | None = None
    is_draft: bool = False


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


CONNECTING, CONNECTED, WAITING, FAILED = "connecting", "connected", "waiting", "failed"
"""What an adapter says of its connection: *waiting* until it tries again, *failed* until a person acts."""


class Inlet(Protocol):
    """Where an adapter hands messages in, and says how it is. Used on the loop that runs the adapter."""

    async def accept(
        self, events: Sequence[MessageEvent], *, state: Sequence[StateUpdate] = ()
    ) -> Sequence[AcceptResult]:
        """Store a batch and the adapter's state in one transaction; acknowledge to the platform only behind it.

        :returns: one result an event, in order; an event that access refuses has ``refused`` set and no row.
        :raises StorageError: nothing was stored: acknowledge nothing, and try the same batch again.
        """
        ...

    def alive(self) -> None:
        """Say that the platform was heard: a frame, a poll that came back.

        What a watchdog measures: from the first call in a run on, silence for ``gateway.watchdog_s`` ends the run, and
        another one begins. Who only listens, as a webhook does, and cannot know how long it will be quiet never calls
        this.
        """
        ...

    def report(self, state: str, detail: str = "") -> None:
        """Say how the connection is: one of the constants above, with one line for people; never a secret."""
        ...


@attrs.frozen(kw_only=True)
class AccountSetup:
    """What an adapter is made with.

    Attributes:
        account_id: the configured alias. state: reads what the adapter remembers, in its platform's own namespace,
            which is the platform's name. folder: its own, mode 0700, for what is no secret of the store.
        environ: where secrets come from.
    """

    account_id: str
    state: StateReader
    folder: Path
    clock: Clock
    environ: Mapping[str, str] = attrs.field(repr=False)


class StateReader(Protocol):
    """Reads a plugin's remembered values. Thread-safe; blocks for one read."""

    def get(self, key: str) -> StateEntry | None:
        """Return one entry, ``None`` where there is none or it has expired."""
        ...

    def list(self, prefix: str = "") -> Sequence[StateEntry]:
        """Return the entries whose keys begin with ``prefix``, sorted by key."""
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


class Typist(Protocol):
    """What an adapter of a platform with ``typing`` has beside."""

    async def typing(self, target: SessionSource, *, on: bool) -> None:
        """Show, or stop showing, that an answer is being written. Repeated while it is; errors are not told."""
        ...


class Splitter(Protocol):
    """What an adapter may have beside: it cuts answers itself, because more than their length matters."""

    def split(self, text: str, target: SessionSource) -> Sequence[PartDraft]:
        """Return the parts of an answer, in order, each with a format of the abilities.

        Asked once, before the first part is sent; does not block, and depends on nothing but what it knows of the
        target.
        """
        ...


class Joiner(Protocol):
    """What an adapter may have beside: it joins answers that waited for the same place, because messages are scarce."""

    def join(self, texts: Sequence[str], target: SessionSource) -> tuple[int, Sequence[PartDraft]]:
        """Return how many of the texts go out together, from the first one on, and the parts that they then are.

        Asked when an answer that was put off is sent, and others wait behind it; does not block. Fewer than two join
        nothing.

        :param texts: at least two, in order: what is unsent of the answer, and those behind it.
        """
        ...


class Editor(Protocol):
    """What an adapter of a platform with ``edits`` has beside: a message that was sent gets another text."""

    async def edit(self, part: DeliveryPart, platform_message_id: str) -> SendResult:
        """Replace the whole text of a message by the part's. Errors as :meth:`Sender.send` raises them.

        :raises Rejected: it cannot be edited any more; what is missing is sent as a message of its own.
        """
        ...


class AttachmentFetcher(Protocol):
    """What an adapter of a platform with ``media`` has beside."""

    def fetch(self, attachment: Attachment, source: SessionSource) -> AsyncIterator[bytes]:
        """Yield the bytes of an attachment that came with a message from ``source``, by its ``reference``.

        :raises RetryLater: not now. :raises Rejected: they are gone, or not for us.
        """
        ...


class PlatformAdapter(Sender, Protocol):
    """One account of a platform, connected. It accepts, normalises and sends; it owns no policy.

    What else it can do it says with :class:`PlatformAbilities`, and has the methods of :class:`Typist`,
    :class:`Splitter`, :class:`Joiner`, :class:`Editor`, :class:`SentLookup`, :class:`AttachmentFetcher`.
    """

    async def run(self, inlet: Inlet) -> None:
        """Receive until cancelled; reconnect by itself, with jitter; finish the batch in hand before leaving.

        Sending works while this runs. An exception other than a cancellation makes the gateway run it again later.

        :raises AuthFailed: a person must act; it is not run again until the gateway is told to reload.
        """
        ...


class Platform(Protocol):
    """A platform, by name."""

    name: str
    abilities: PlatformAbilities

    def accounts(self) -> Sequence[str]:
        """Return the aliases of the accounts that are configured, ``default`` first; empty where there are none."""
        ...

    def adapter(self, setup: AccountSetup) -> PlatformAdapter:
        """Return the adapter of one account; connects to nothing yet.

        :raises ConfigError: settings or credentials are missing: the error names section and key.
        """
        ...
