"""Smaller ports: attachment bytes, waking, context pieces, titles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.messages import Attachment, Message
    from hermes_hookspecs.ports.agent import TurnContext

__all__ = ["AttachmentDescriber", "AttachmentStore", "ContextPiece", "ContextProvider", "Titler", "Waker"]


class AttachmentStore(Protocol):
    """Keeps bytes by their content hash."""

    def put(self, data: bytes, *, lineage_id: LineageId) -> str:
        """Store bytes for a lineage and return their SHA-256; the same bytes are stored once."""
        ...

    def get(self, sha256: str) -> bytes | None:
        """Return the bytes, ``None`` when they are gone."""
        ...

    def drop(self, lineage_id: LineageId) -> int:
        """Let go of what a lineage referred to; return how many files went."""
        ...


class AttachmentDescriber(Protocol):
    """Turns an attachment into text: speech to text, a picture's description, a document's words."""

    name: str
    kinds: tuple[str, ...]

    async def describe(self, attachment: Attachment, data: bytes) -> str | None:
        """Return the text that stands for it, ``None`` to leave it to the next."""
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
class ContextPiece:
    """A labelled piece of text for one turn: memory, a retrieved passage. Stored exactly as sent."""

    label: str
    text: str
    priority: int = 0


class ContextProvider(Protocol):
    """Hands in pieces for the turn that begins, within a token budget."""

    name: str

    async def pieces(self, turn: TurnContext, *, budget_tokens: int) -> Sequence[ContextPiece]:
        """Return pieces, most useful first; what does not fit is left out, and said so."""
        ...


class Titler(Protocol):
    """Finds a title for a conversation that has none."""

    name: str

    async def title(self, rows: Sequence[Message]) -> str | None:
        """Return a title for the first rows of a conversation, ``None`` to leave it without."""
        ...
