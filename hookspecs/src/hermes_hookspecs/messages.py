"""Rows of a transcript."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_hookspecs.ids import InboxId, LineageId, MessageId, SessionId, TurnId

__all__ = [
    "ASSISTANT",
    "INTERRUPTED_RESULT",
    "KIND_ATTACHMENTS",
    "KIND_CLOSING",
    "KIND_INTERRUPTED",
    "KIND_NOTE",
    "KIND_RECOVERY",
    "KIND_SUMMARY",
    "NOT_APPROVED_RESULT",
    "NOT_BEGUN_RESULT",
    "ROLES",
    "SYSTEM",
    "TOOL",
    "USER",
    "Attachment",
    "Message",
    "MessageDraft",
    "ToolCall",
    "closing_text",
    "may_have_begun",
    "preview_of",
]

USER, ASSISTANT, TOOL, SYSTEM = "user", "assistant", "tool", "system"
ROLES = (USER, ASSISTANT, TOOL, SYSTEM)

KIND_INTERRUPTED = "interrupted"
"""A synthetic result: the call was not answered; its outcome is unknown, or it did not run, as the content says."""
KIND_CLOSING = "closing"
"""The assistant row that closes a turn which did not finish by itself."""
KIND_RECOVERY = "recovery"
"""The marked row with which a retry begins."""
KIND_SUMMARY = "summary"
"""The summary at the head of a compressed session."""
KIND_NOTE = "note"
"""A row for people that no model sees."""

KIND_ATTACHMENTS = "attachments"
"""Of a window, never of a store: the message of a user row's attachments, right behind it."""

INTERRUPTED_RESULT = "[interrupted, outcome unknown]"
"""Content of a synthetic result."""
NOT_APPROVED_RESULT = "[not approved, did not run]"
"""Content of a synthetic result of a call that was asked for and that nobody had approved when its turn ended."""
NOT_BEGUN_RESULT = "[not begun, did not run]"
"""Content of a synthetic result of a call that still waited for the result of one before it when its turn ended."""


def closing_text(outcome: str, reason: str) -> str:
    """Return the content of the row that closes a turn which ended as ``outcome`` (never ``done``)."""
    words = {
        "interrupted": "The answer was interrupted before it was complete",
        "stopped": "The answer was stopped",
        "failed": "The answer failed",
    }
    return f"[{words[outcome]}: {reason}]" if reason else f"[{words[outcome]}]"


PREVIEW_LIMIT = 80


def preview_of(content: str) -> str:
    """Return the beginning of a text on one line, at most 80 characters, for lists."""
    return " ".join(content[: 8 * PREVIEW_LIMIT].split())[:PREVIEW_LIMIT]


@attrs.frozen(kw_only=True)
class Attachment:
    """A file beside a text: an input of one turn, or what an answer brings along; the attachment store has its bytes.

    Attributes:
        kind: ``image``, ``audio``, ``video`` or ``document``.
        sha256: hexadecimal content hash; ``None`` while (or because) the bytes are not there.
        size: bytes, ``None`` when unknown. media_type: ``image/png``. name: file name, data from outside.
        text: what stands for it in prompts, exactly as sent; written when its turn begins.
        reference: what its platform knows it by, from which its bytes are fetched while ``sha256`` is ``None``.
    """

    kind: str
    name: str = ""
    media_type: str = ""
    size: int | None = None
    sha256: str | None = None
    text: str | None = None
    reference: str = ""


@attrs.frozen(kw_only=True)
class ToolCall:
    """One call that an assistant row asks for.

    Attributes:
        id: unique within its turn; its result names it.
        arguments: JSON text exactly as the model wrote it, legal or not.
        effect: ``read``, ``idempotent`` or ``write``: what a repetition would do.
        in_order: it begins only when every call before it in its row has a result that is stored.
    """

    id: str
    name: str
    arguments: str = "{}"
    effect: str = "write"
    in_order: bool = False


def may_have_begun(calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    """Return which of the calls of a row that have no result may have begun, in order.

    :param calls: all of the row that have no result, in order.
    """
    return tuple(call for place, call in enumerate(calls) if not (place and call.in_order))


@attrs.frozen(kw_only=True)
class MessageDraft:
    """A row to be stored.

    Attributes:
        sent: exact text as sent to the model, where it differs from ``content`` (sender prefix, notes).
        timestamp: UTC milliseconds, shown only; order is the order of storing.
        inbox_id: the accepted message that this user row holds; stored once per lineage.
        kind: one of the ``KIND_`` values, ``""`` for an ordinary row.
    """

    role: str
    content: str = ""
    timestamp: int
    sent: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    tool_name: str | None = None
    token_count: int | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    kind: str = ""
    inbox_id: InboxId | None = None
    attachments: tuple[Attachment, ...] = ()


@attrs.frozen(kw_only=True, weakref_slot=False)
class Message:
    """A stored row. Fields as in :class:`MessageDraft`, and where it stands.

    There are many of them at a time: no weak references to one, which also lets a store fill them quickly.

    Attributes:
        id: orders all rows of a store. turn_id: leads to platform, account, key, user and entrance;
            ``None`` for imported rows.
        hidden: taken back by undo: kept, shown to nobody.
    """

    id: MessageId
    lineage_id: LineageId
    session_id: SessionId
    turn_id: TurnId | None
    role: str
    content: str
    timestamp: int
    sent: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    tool_name: str | None = None
    token_count: int | None = None
    finish_reason: str | None = None
    reasoning: str | None = None
    kind: str = ""
    inbox_id: InboxId | None = None
    attachments: tuple[Attachment, ...] = ()
    hidden: bool = False
