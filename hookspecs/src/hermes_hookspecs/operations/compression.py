"""The write that lets a lineage go on in a child session with a smaller context."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.operations.operation import Operation

if TYPE_CHECKING:
    from hermes_hookspecs.ids import LineageId, MessageId, SessionId
    from hermes_hookspecs.messages import MessageDraft
    from hermes_hookspecs.sessions import Session
    from hermes_hookspecs.turns import Fence

__all__ = ["COMPRESSION", "UNCOMPRESSION", "Compress", "Compressed", "child_title", "is_summary"]

COMPRESSION = "compression"
"""End reason of a session whose head was replaced by a summary in its child."""
UNCOMPRESSION = "uncompression"
"""End reason of a session whose child sees once more what was there before a compression."""


@attrs.frozen(kw_only=True)
class Compressed:
    """What a compression made.

    Attributes:
        session: the child, which is the tip. version: of the lineage now.
    """

    lineage_id: LineageId
    session: Session
    version: int


@attrs.frozen(kw_only=True)
class Compress(Operation[Compressed]):
    """Close the tip, make its child with a summary, move the tip there: one transaction; no row is copied or removed.

    The tip ends with ``reason``; where it had ended before, the child has that end. The child has the parent's source,
    sender, model, configuration and system text, no numbers yet, and, in a lineage with a title, that title with
    `` #N`` behind it, the N-th session of its lineage (the title is cut where both are too long). The lineage keeps its
    title, routes lead to the lineage and so to the child. The summary is the child's first row and belongs to the turn,
    which goes on in the child. Like a step it counts as a renewal. The change feed tells of the row and the lineage.

    Recognised by ``session_id``: a repetition answers with the child as it is now, whoever has the lease by then.

    Attributes:
        fence: of the running turn, or of one without an agent. expected: the tip that the summary was made of.
        session_id: of the child, fresh. kept_from: first row of the lineage that stays in the context; ``None`` where
            none does, since even the last ones are too long for the model: the context begins with the summary's row.
        summary: a system row of :data:`~hermes_hookspecs.messages.KIND_SUMMARY` without calls; ``None`` where nothing
            stands before the rows that stay. reason: :data:`COMPRESSION` or :data:`UNCOMPRESSION`.
        finish: the turn ends with this, done, and the lease is free.

    :raises LeaseLost: the token is no longer the lineage's; nothing was written.
    :raises Conflict: the tip is another one by now; nothing was written.
    :raises IllegalMessage: ``kept_from`` is no row of the lineage that may stand first (a result, a summary, hidden),
        the summary is not one or nothing stays without one, or calls wait for their results; nothing was written.
    """

    fence: Fence
    expected: SessionId
    session_id: SessionId
    kept_from: MessageId | None
    now: int
    summary: MessageDraft | None = None
    reason: str = COMPRESSION
    finish: bool = False


def child_title(title: str | None, number: int) -> str | None:
    """Return the title of the ``number``-th session of a lineage called ``title``, no longer than a title may be."""
    from hermes_hookspecs.sessions import TITLE_LIMIT

    if title is None:
        return None
    mark = f" #{number}"
    return f"{title[: TITLE_LIMIT - len(mark)]}{mark}"


def is_summary(draft: MessageDraft) -> bool:
    """Return whether a row may stand for the head of a conversation."""
    from hermes_hookspecs.messages import KIND_SUMMARY, SYSTEM

    plain = not draft.tool_calls and draft.tool_call_id is None and draft.inbox_id is None
    return plain and draft.role == SYSTEM and draft.kind == KIND_SUMMARY and bool(draft.content.strip())
