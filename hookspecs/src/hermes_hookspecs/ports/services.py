"""Smaller ports: attachment bytes, waking, context pieces, titles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.messages import Attachment, Message
    from hermes_hookspecs.ports.agent import History
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import Session
    from hermes_hookspecs.source import SessionSource

__all__ = [
    "AttachmentCopier",
    "AttachmentDescriber",
    "AttachmentReader",
    "AttachmentStore",
    "ContextPiece",
    "ContextProvider",
    "Titler",
    "TurnOpening",
    "Waker",
]


class AttachmentReader(Protocol):
    """Reads bytes by their content hash. Thread-safe; blocks: call it off the event loop."""

    def get(self, sha256: str) -> bytes | None:
        """Return the bytes, ``None`` when they are gone, damaged, or none of the reader's business.

        :raises StorageError: they are there, it may be, and cannot be read now; never raised to an agent.
        """
        ...


class AttachmentStore(AttachmentReader, Protocol):
    """Keeps bytes by their content hash, as long as a lineage refers to them. Thread-safe; blocks."""

    def put(self, data: bytes, *, lineage_id: LineageId | None = None) -> str:
        """Store bytes and return their SHA-256, hexadecimal, once they are durable; the same bytes are stored once.

        :param lineage_id: refers to them from now on; ``None`` where it is not known yet: :meth:`keep` follows.
        :raises AttachmentRefused: more bytes than the store takes; nothing was written.
        :raises StorageError: they could not be written.
        """
        ...

    def keep(self, sha256s: Iterable[str], lineage_id: LineageId) -> None:
        """Let a lineage refer to what is there; a hash without bytes is passed over. Idempotent."""
        ...

    def drop(self, lineage_id: LineageId) -> int:
        """Let go of what a lineage referred to; return how many contents went because nobody refers to them now.

        Called after the lineage's rows are gone, so that a row never names bytes that an erase took away.
        """
        ...

    def sweep(self, lives: Callable[[LineageId], bool], *, older_than_s: float) -> int:
        """Remove what an interrupted erase, or a message that was never taken, left behind; return how many went.

        :param lives: says whether a lineage is there. older_than_s: contents and halves of files are left alone that
            are younger: somebody may be about to refer to them.
        """
        ...


class AttachmentCopier(Protocol):
    """What an attachment store may have beside: a copy of all that it keeps, for a backup."""

    def copy_to(self, folder: str) -> int:
        """Copy everything into a folder that is not there yet; return how many contents. Blocks.

        The copy is laid out as the built-in folder of a profile, so that the built-in store can read it. Nothing is
        made where nothing is kept. What others remove meanwhile may be missing in the copy.

        :raises StorageError: it could not be written; what was made is left there for the caller to remove.
        """
        ...


class AttachmentDescriber(Protocol):
    """Turns an attachment into text: speech to text, a picture's description, a document's words."""

    name: str
    kinds: tuple[str, ...]

    async def describe(self, attachment: Attachment, data: bytes) -> str | None:
        """Return the text that stands for it, ``None`` to leave it to the next.

        Asked once, before the turn begins. The text is cut to what a prompt can bear and stored; an exception, or
        taking longer than the time limit, leaves it to the next.
        """
        ...


class Waker(Protocol):
    """Wakes those who wait for a lineage, in this process and in others of this host."""

    def wake(self, topic: str) -> None:
        """Wake everybody who waits for ``topic``; never blocks."""
        ...

    async def wait(self, topic: str, timeout_s: float) -> bool:
        """Return ``True`` when woken, ``False`` after ``timeout_s`` seconds. May wake without a cause."""
        ...


@attrs.frozen(kw_only=True)
class TurnOpening:
    """A turn that is about to begin, as context providers see it. Everything is a copy; nothing here writes.

    Attributes:
        session: where it is going to be. principal: on whose behalf it reads.
        text: of the new messages, joined by line feeds. history: the past, as far as the principal may see it.
    """

    session: Session
    source: SessionSource
    principal: Principal
    text: str
    attachments: tuple[Attachment, ...] = ()
    history: History


@attrs.frozen(kw_only=True)
class ContextPiece:
    """A labelled piece of text for one turn: memory, a retrieved passage. Stored exactly as sent.

    Attributes:
        label: where it comes from, at most 80 characters are sent. priority: higher goes in first, among all providers.
    """

    label: str
    text: str
    priority: int = 0


class ContextProvider(Protocol):
    """Hands in pieces for the turn that begins, within a token budget."""

    name: str

    async def pieces(self, opening: TurnOpening, *, budget_tokens: int) -> Sequence[ContextPiece]:
        """Return pieces, most useful first; what does not fit among those of all providers is left out, and said so.

        Asked once per message, before the turn has its lease, together with all other providers; it may be asked
        again for a turn that did not begin after all. An exception, or taking longer than the time limit, hands in
        nothing.
        """
        ...


class Titler(Protocol):
    """Finds a title for a conversation that has none."""

    name: str

    async def title(self, rows: Sequence[Message]) -> str | None:
        """Return a title for the first rows of a conversation, oldest first; ``None`` leaves it to the next.

        Awaited on a loop of its own, for a bounded time; cancelled where the profile closes meanwhile. The title is
        put on one line and cut.
        """
        ...
