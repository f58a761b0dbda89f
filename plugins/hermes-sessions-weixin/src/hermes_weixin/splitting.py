"""How many messages an answer is: few enough for the quota, or one line and a file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes_hookspecs.outbox import PartDraft

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_weixin.config import WeixinConfig

__all__ = ["FILE_FORMAT", "joined_within", "parts_within"]

FILE_FORMAT = "file"
"""Format of a part whose text goes as a document."""

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*$", re.MULTILINE)
_LEAD = 200
_MOST_JOINED = 200_000
"""Characters of what is joined: it is a file then that somebody may want to read on a phone."""


def parts_within(text: str, config: WeixinConfig, left: int) -> Sequence[PartDraft]:
    """Return the parts of a text, in order.

    :param left: messages that may still be sent to the person.
    """
    if not text.strip():
        return ()
    parts = _cut(text, config.chunk_characters)
    if len(parts) < config.file_from_parts and len(parts) <= left:
        return tuple(PartDraft(text=part) for part in parts)
    document = PartDraft(text=text, format=FILE_FORMAT)
    if left < 2:
        return (document,)
    first = " ".join(text.split())[:_LEAD]
    return (PartDraft(text=f"{first}…\n(the whole answer is in the file)"), document)


def joined_within(texts: Sequence[str], config: WeixinConfig, left: int) -> tuple[int, Sequence[PartDraft]]:
    """Return how many of several answers that waited go out together, and the parts that they then are.

    :param left: messages that may still be sent to the person.
    """
    count, size = 0, 0
    for text in texts:
        size += len(text)
        if count >= 2 and size > _MOST_JOINED:
            break
        count += 1
    heading = f"({count} answers that waited)"
    return count, parts_within("\n\n".join((heading, *texts[:count])), config, left)


def _cut(text: str, most: int) -> list[str]:
    """Cut between paragraphs, lines or words; a block of code that is cut is closed and opened again."""
    parts, rest, opening = [], text.strip("\n"), ""
    while rest:
        room = most - len(opening) - 8
        piece = rest if len(rest) <= room else rest[: _border(rest, room)]
        rest = rest[len(piece) :].lstrip("\n")
        whole = f"{opening}\n{piece}" if opening else piece
        opening = _open_fence(whole)
        parts.append(f"{whole}\n{_marker(opening)}" if opening and rest else whole)
    return [part for part in parts if part.strip()]


def _border(text: str, room: int) -> int:
    for mark, least in (("\n\n", room // 2), ("\n", room // 3), ("。", room // 2), (" ", room // 2)):
        at = text.rfind(mark, least, room)
        if at >= 0:
            return at + len(mark)
    return room


def _open_fence(text: str) -> str:
    """Return the line that opened a block of code which the text does not close, ``""`` where there is none."""
    opening = ""
    for found in _FENCE.finditer(text):
        if not opening:
            opening = found[0]
        elif found[1].startswith(_marker(opening)) and found[0].strip() == found[1]:
            opening = ""
    return opening if len(opening) < 100 else _marker(opening)


def _marker(opening: str) -> str:
    found = _FENCE.match(opening)
    return found[1] if found else ""
