"""A conversation written down for a model that is to say something about it, not to go on with it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hermes_hookspecs.messages import KIND_NOTE, SYSTEM, TOOL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from hermes_hookspecs.messages import Message

__all__ = ["lines_of", "parts_of"]

_SAID, _RESULT, _CALL = 8000, 1500, 500
"""Most characters of one row, of a tool's result, of the arguments of a call."""


def lines_of(rows: Iterable[Message]) -> Iterator[str]:
    """Yield one JSON object a row: quoted, so that nothing in it can look like the end of the quotation."""
    for row in rows:
        if row.role == SYSTEM or row.kind == KIND_NOTE:
            continue
        told: dict[str, object] = {"role": row.role}
        if row.role == TOOL and row.tool_name:
            told["tool"] = row.tool_name
        content = row.content if row.sent is None else row.sent
        if content.strip():
            told["text"] = _middle(content, _RESULT if row.role == TOOL else _SAID)
        if row.attachments:
            told["attachments"] = [_middle(one.text or one.name or one.kind, _RESULT) for one in row.attachments]
        if row.tool_calls:
            told["calls"] = [f"{call.name} {_middle(call.arguments, _CALL)}" for call in row.tool_calls]
        if len(told) > 1:
            yield json.dumps(told, ensure_ascii=False)


def parts_of(lines: Iterable[str], most: int) -> Sequence[str]:
    """Return the lines joined to texts of at most ``most`` characters, in order; a longer line is cut."""
    parts: list[str] = []
    part: list[str] = []
    size = 0
    for line in lines:
        cut = line if len(line) <= most else _middle(line, most)
        if part and size + len(cut) + 1 > most:
            parts.append("\n".join(part))
            part, size = [], 0
        part.append(cut)
        size += len(cut) + 1
    if part:
        parts.append("\n".join(part))
    return parts


def _middle(text: str, most: int) -> str:
    """Return a text without its middle, where it is too long: what matters stands at its ends."""
    if len(text) <= most:
        return text
    left = max(0, (most - 20) // 2)
    return f"{text[:left]} [...] {text[len(text) - left :]}"[:most]
