"""Rows as a search shows them: bounded, whatever somebody stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.ports.search import ShownMessage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_hookspecs.ids import MessageId
    from hermes_hookspecs.messages import Message

__all__ = ["MOST_CALLS", "show"]

MOST_CALLS = 16


def show(rows: Iterable[Message], *, most: int, anchor: MessageId | None = None) -> tuple[ShownMessage, ...]:
    """Return rows for an answer, in their order.

    :param most: characters of a content, and of the arguments of each call; at most 16 calls are shown.
    :param anchor: id of the row to be marked.
    """
    return tuple(_shown(row, most, anchor) for row in rows)


def _shown(row: Message, most: int, anchor: MessageId | None) -> ShownMessage:
    content = _bounded(row.content, most)
    calls = tuple((call.name, _bounded(call.arguments, most)) for call in row.tool_calls[:MOST_CALLS])
    is_cut = (
        content is not row.content
        or len(row.tool_calls) > MOST_CALLS
        or any(shown is not call.arguments for (_name, shown), call in zip(calls, row.tool_calls, strict=False))
    )
    return ShownMessage(
        message_id=row.id,
        session_id=row.session_id,
        role=row.role,
        timestamp=row.timestamp,
        content=content,
        tool_name=row.tool_name,
        tool_calls=calls,
        cut=is_cut,
        anchor=row.id == anchor,
    )


def _bounded(text: str, most: int) -> str:
    """Return a text, or its beginning and end around a mark that says how many characters are missing."""
    if len(text) <= most:
        return text
    head = most * 2 // 3
    tail = most - head
    return f"{text[:head]} […{len(text) - most} characters left out…] {text[len(text) - tail :]}"
