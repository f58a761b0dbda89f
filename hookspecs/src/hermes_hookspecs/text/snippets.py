"""The part of a text that shows why it was found."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from hermes_hookspecs.ports.search import HIT_END, HIT_START
from hermes_hookspecs.text.folding import fold, fold_with_origins
from hermes_hookspecs.text.query import leaves
from hermes_hookspecs.text.written import may_hold_as_written

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_hookspecs.text.query import Leaf, Node

__all__ = ["snippet"]

_ELLIPSIS = "…"
_WINDOW = 4096
_OVERLAP = 512
_BEFORE = 3  # a third of the room goes to what stands before the first hit


def snippet(text: str, query: Node, *, width: int = 160) -> str:
    """Return one line around the hits, each between U+0002 and U+0003, at most ``width`` columns of text.

    Marks and ellipses are not counted; wide characters count as two columns. The part with the most different needles
    is taken, the first of equals. Control and formatting characters of the text become spaces, marks in it too; white
    space is joined. A text without a hit (a prefix of it was found elsewhere, say) gives its beginning.
    """
    needles = tuple(leaves(query))
    offset = _window(text, needles)
    part = text[offset : offset + _WINDOW]
    folded, origins = fold_with_origins(part)
    found = sorted((origins[start], _end(origins, end)) for leaf in needles for start, end in leaf.needle.spans(folded))
    spans = _joined((start, _without_blanks(part, start, end)) for start, end in found)
    start, end = _frame(part, spans, width)
    marked = _marked(part, start, end, spans)
    before = _ELLIPSIS if (start > 0 and part[:start].strip()) or offset > 0 else ""
    after = _ELLIPSIS if part[end:].strip() or offset + _WINDOW < len(text) else ""
    return f"{before}{marked}{after}"


def _window(text: str, needles: Sequence[Leaf]) -> int:
    """Return where the first part of a long text begins that holds the most needles."""
    if len(text) <= _WINDOW:
        return 0
    best, most = 0, 0
    looks = [may_hold_as_written(leaf) for leaf in needles]
    for offset in range(0, len(text), _WINDOW - _OVERLAP):
        part = text[offset : offset + _WINDOW]
        if not any(may_hold(part) for may_hold in looks):
            continue
        folded = fold(part)
        count = sum(leaf.needle.occurs(folded) for leaf in needles)
        if count > most:
            best, most = offset, count
            if most == len(needles):
                break
    return best


def _end(origins: Sequence[int], end: int) -> int:
    """Return where the cluster of the last folded character ends."""
    last = origins[end - 1]
    while end < len(origins) - 1 and origins[end] == last:
        end += 1
    return origins[end]


def _without_blanks(text: str, start: int, end: int) -> int:
    """Return the end of a hit without the blanks that folding took out behind it."""
    return start + max(1, len(text[start:end].rstrip()))


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def _frame(text: str, spans: Sequence[tuple[int, int]], width: int) -> tuple[int, int]:
    """Return the part to show: from a third of the width before a hit, where the most hits are in view."""
    if not spans:
        return 0, _forward(text, 0, width)
    best, most = 0, 0
    for first, (start, _end_of) in enumerate(spans):
        limit = _forward(text, start, width - width // _BEFORE)
        count = sum(end <= limit for _start, end in spans[first:])
        if count > most:
            best, most = start, count
    start = _backward(text, best, width // _BEFORE)
    end = _forward(text, start, width)
    if end == len(text):
        start = _backward(text, end, width)
    return start, end


def _forward(text: str, start: int, width: int) -> int:
    """Return the end of as much text behind ``start`` as fits."""
    used = 0
    for at in range(start, len(text)):
        used += _columns(text[at])
        if used > width:
            return at
    return len(text)


def _backward(text: str, end: int, width: int) -> int:
    """Return the start of as much text before ``end`` as fits, not within a word where a space is near."""
    used, at = 0, end
    while at > 0 and used + _columns(text[at - 1]) <= width:
        at -= 1
        used += _columns(text[at])
    if at > 0 and not text[at - 1].isspace():
        space = next((found for found in range(at, min(at + 12, end)) if text[found].isspace()), None)
        return at if space is None else space + 1
    return at


def _columns(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def _marked(text: str, start: int, end: int, spans: Sequence[tuple[int, int]]) -> str:
    """Return a part of a text with its hits marked, on one line."""
    pieces: list[str] = []
    at = start
    for hit_start, hit_end in spans:
        first, last = max(hit_start, start), min(hit_end, end)
        if first < last:
            pieces += (_safe(text[at:first]), HIT_START, _safe(text[first:last]), HIT_END)
            at = last
    pieces.append(_safe(text[at:end]))
    line = " ".join("".join(pieces).split(" "))
    while "  " in line:
        line = line.replace("  ", " ")
    return line.strip(" ")


def _safe(text: str) -> str:
    """Return a text whose control and formatting characters, line ends and marks are spaces."""
    if text.isprintable():
        return text
    return "".join(" " if unicodedata.category(one) in {"Cc", "Cf", "Cs", "Zl", "Zp"} else one for one in text)
