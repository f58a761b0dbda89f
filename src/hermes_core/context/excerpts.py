"""What stands for messages that are too long for a model: their beginnings and ends, with a mark in between. Pure.

Nothing is lost by it: the rows stay as they are, are shown, exported and found. What is made here is one text for a
context in which not even the last messages have room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.context.described import text_of
from hermes_core.context.summaries import extract, with_request
from hermes_core.context.tokens import estimate_tokens, shortened
from hermes_hookspecs.messages import KIND_NOTE, TOOL, USER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes_hookspecs.messages import Message

__all__ = ["in_short", "last_request"]

_LATEST = "## Latest, shortened"
"""Heading of what came behind the last request."""
_FOR_REQUEST, _FOR_LATEST = 0.35, 0.3
"""Shares of the room; the summary of all that was said before has the rest, and what these two leave."""
_MOST_ROWS = 12
"""Most rows behind the request that are told of, the newest."""


def last_request(rows: Sequence[Message]) -> int | None:
    """Return the place of what a person asked last, ``None`` where nobody did."""
    return next((at for at in range(len(rows) - 1, -1, -1) if rows[at].role == USER and not rows[at].kind), None)


def in_short(rows: Sequence[Message], *, previous: str | None, request: str | None, most_tokens: int) -> str:
    """Return one text for a whole context: a summary, what was done last, and the last request, each as far as it fits.

    :param rows: of a context without its summary, oldest first. previous, request: what that summary consists of.
    :param most_tokens: a hundred or more.
    """
    at = last_request(rows)
    before, latest = (rows, ()) if at is None else (rows[: at + 1], rows[at + 1 :])
    asked = request if at is None else "\n".join(_words_of(rows[at]))
    wanted = None if not asked else shortened(asked, int(most_tokens * _FOR_REQUEST))
    done = _told(latest, int(most_tokens * _FOR_LATEST))
    frame = with_request(f"{_LATEST}\n{done}" if done else "", wanted)
    text = extract(
        rows if latest else before, previous=previous, most_tokens=max(most_tokens - estimate_tokens(frame) - 2, 40)
    )
    return with_request(f"{text}\n\n{_LATEST}\n{done}" if done else text, wanted)


def _told(rows: Sequence[Message], most_tokens: int) -> str:
    """Return rows as lines that cannot pass for a heading; all have the same room, short ones leave theirs."""
    told = [line for row in rows if row.kind != KIND_NOTE for line in _lines_of(row)][-_MOST_ROWS:]
    left, texts = most_tokens, []
    for place, line in enumerate(told):
        text = shortened(line, left // (len(told) - place))
        left -= estimate_tokens(text)
        texts.append("\n".join(f"| {part}" for part in text.splitlines()))
    return "\n".join(text for text in texts if text)


def _lines_of(row: Message) -> Iterator[str]:
    text = "\n".join(_words_of(row))
    if text.strip():
        yield f"{row.tool_name or 'tool'} returned: {text}" if row.role == TOOL else f"{row.role}: {text}"
    for call in row.tool_calls:
        yield f"{row.role} called {call.name} {call.arguments}"


def _words_of(row: Message) -> Iterator[str]:
    yield row.content
    yield from (text_of(one) for one in row.attachments)
