"""Cutting a text into parts that a platform takes.

A cut stands, in order of preference, between paragraphs, lines, sentences, words, and never inside a character as
people see it. Parts lose nothing but white space at the cuts. A code block that is cut is closed and opened again.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import attrs

from hermes_core.outbox.characters import is_border, last_border
from hermes_hookspecs.outbox import PartDraft

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.outbox import Delivery
    from hermes_hookspecs.ports.platform import PlatformAbilities

__all__ = ["REPEAT_MARK", "is_taken_once", "mark_repeat", "parts_of", "split_text"]

REPEAT_MARK = "(may be a repeat)"
"""What people read before a part that may have reached them already."""

_MARK_ROOM = len(REPEAT_MARK) + 1
_LEAST_FOR_MARK = 4 * _MARK_ROOM
_LEAST_FOR_FENCES = 32
"""Shorter parts are cut like any text: nothing would be left beside the fences."""

_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})([^\n]*)(?:\n|\Z)")
_PARAGRAPH = re.compile(r"\n[ \t]*\n")
_LINE = re.compile(r"\n")
_SENTENCE = re.compile(r"[.!?…][\"')\]»”’]*(?=\s)|[。！？；][”’」』）】]*")
_WORD = re.compile(r"\s|[，、：]")
_PROSE = ((_PARAGRAPH, 2), (_LINE, 2), (_SENTENCE, 2), (_LINE, 4), (_SENTENCE, 4), (_WORD, 4))
_CODE = ((_LINE, 8), (_WORD, 4))
"""Borders in order of preference; each counts only behind this share (one half, one quarter) of the room."""


@attrs.frozen
class _Fence:
    """An open code block: its marker, and the line that opens it again."""

    marker: str
    opening: str


def parts_of(text: str, abilities: PlatformAbilities) -> tuple[PartDraft, ...]:
    """Return the parts of ``text`` for a platform, in order; none when it has nothing but white space.

    Where a part may have to say that it is a repeat, its room for that is left free.
    """
    most = abilities.max_length
    takes_once_for_ever = abilities.idempotent_send and abilities.idempotent_for_s is None
    if not takes_once_for_ever and most >= _LEAST_FOR_MARK:
        most -= _MARK_ROOM
    return tuple(PartDraft(text=part) for part in split_text(text, most))


def is_taken_once(delivery: Delivery, abilities: PlatformAbilities, now: int) -> bool:
    """Return whether the platform still knows the keys of a delivery, so that none of its parts arrives twice.

    When a part was first sent is not known, but surely not before the delivery was made.
    """
    if not abilities.idempotent_send or abilities.idempotent_for_s is None:
        return abilities.idempotent_send
    return 0 <= now - delivery.created_at < abilities.idempotent_for_s * 1000


def mark_repeat(text: str, max_length: int) -> str:
    """Return ``text`` with the mark of a possible repeat; without it where it would be too long for the platform."""
    # behind a mark on its own line a code block still begins its line
    marked = f"{REPEAT_MARK}\n{text}" if _FENCE.match(text) else f"{REPEAT_MARK} {text}"
    return marked if len(marked) <= max_length else text


def split_text(text: str, max_length: int) -> tuple[str, ...]:
    """Return ``text`` in parts of at most ``max_length`` characters, none of them blank.

    :raises ValueError: there is room for less than one character.
    """
    if max_length < 1:
        raise ValueError(f"parts of at most {max_length} characters hold no text")
    if len(text) <= max_length:
        return (text,) if text.strip() else ()
    parts: list[str] = []
    fence: _Fence | None = None
    at = _content_from(text, 0)
    while at < len(text):
        part, at, fence = _next_part(text, at, fence, max_length)
        if part.strip():
            parts.append(part)
    return tuple(parts)


def _next_part(text: str, at: int, fence: _Fence | None, most: int) -> tuple[str, int, _Fence | None]:
    """Return the part that begins at ``at``, where the next one begins, and the code block that is open there."""
    opening = "" if fence is None else f"{fence.opening}\n"
    if len(opening) + len(text) - at <= most:
        return opening + text[at:].rstrip(), len(text), None
    room = most - len(opening)
    mind_fences = most >= _LEAST_FOR_FENCES
    closing_room = 0
    if mind_fences:
        # whether the cut will be inside a block is known only behind it, so the room for closing it is kept
        closing_room = _longest_closing(text[at : at + room], fence)
        room -= closing_room
    cut = _cut(text, at, at + room, in_code=fence is not None, blanks_count=closing_room > 0)
    still_open = fence
    if mind_fences:
        cut = _off_the_fence_lines(text, at, cut, fence)
        still_open = _open_at(text, at, cut, fence, most)
    body = text[at:cut]
    if still_open is None:
        return (opening + body).rstrip(), _content_from(text, cut), None
    body = body.removesuffix("\n")
    part = f"{opening}{body}\n{still_open.marker}" if body.strip() else ""
    closing = _FENCE.match(text, cut)
    if closing is not None and _closes(closing, still_open):
        return part, _content_from(text, closing.end()), None
    return part, cut, still_open


def _cut(text: str, at: int, end: int, *, in_code: bool, blanks_count: bool) -> int:
    """Return the best place to cut: behind ``at``, and before ``end`` but for white space that the part will not have.

    :param blanks_count: the part loses no more than one line end.
    """
    reach = end
    while reach < len(text) and (text[reach] == "\n" if blanks_count else text[reach].isspace()):
        reach += 1
        if blanks_count:
            break
    for pattern, share in _CODE if in_code else _PROSE:
        least = at + (end - at) // share
        places = [found.end() for found in pattern.finditer(text, least, reach)]
        best = next((place for place in reversed(places) if is_border(text, place, since=at)), None)
        if best is not None:
            return best
    return last_border(text, at, end)


def _content_from(text: str, at: int) -> int:
    """Return where the next content begins behind a cut: blank lines go, the indentation of a line stays."""
    behind = at
    while behind < len(text) and text[behind].isspace():
        behind += 1
    if behind == len(text):
        return behind
    return text.rfind("\n", max(0, at - 1), behind) + 1 or behind


# ------------------------------------------------------------------ code blocks


def _lines(text: str, at: int, end: int) -> Sequence[tuple[int, re.Match[str]]]:
    """Return the lines between ``at`` and ``end`` that look like the border of a code block, with their beginnings."""
    found = []
    while at < end:
        match = _FENCE.match(text, at)
        if match is not None:
            found.append((at, match))
        following = text.find("\n", at, end)
        if following < 0:
            break
        at = following + 1
    return found


def _closes(match: re.Match[str], fence: _Fence) -> bool:
    return match[1].startswith(fence.marker) and not match[2].strip()


def _after(match: re.Match[str], fence: _Fence | None, most: int) -> _Fence | None:
    """Return what is open behind a border line, when ``fence`` was open before it."""
    if fence is not None:
        return None if _closes(match, fence) else fence
    if match[1][0] == "`" and "`" in match[2]:
        return None  # a span of code within one line
    marker = match[1] if len(match[1]) * 8 <= most else match[1][:3]
    opening = marker + match[2].rstrip()
    return _Fence(marker, opening if len(opening) * 4 <= most else marker)


def _open_at(text: str, at: int, end: int, fence: _Fence | None, most: int) -> _Fence | None:
    for _, match in _lines(text, at, end):
        fence = _after(match, fence, most)
    return fence


def _longest_closing(window: str, fence: _Fence | None) -> int:
    markers = [match[1] for _, match in _lines(window, 0, len(window))]
    if fence is not None:
        markers.append(fence.marker)
    return min(max((len(marker) + 1 for marker in markers), default=0), len(window) // 2)


def _off_the_fence_lines(text: str, at: int, cut: int, fence: _Fence | None) -> int:
    """Move a cut that stands inside a border line, or right behind one that opens a block, before that line."""
    borders = _lines(text, at, cut)
    if not borders:
        return cut
    start, match = borders[-1]
    if start == at:
        return cut
    is_open = fence
    for _, border in borders[:-1]:
        is_open = _after(border, is_open, len(text))
    inside = cut < match.end() and cut < len(text)
    opens = cut == match.end() and is_open is None and _after(match, None, len(text)) is not None
    return start if inside or opens else cut
