"""Columns that stand under each other, whatever script and emoji are in them.

Width is what a terminal shows, not the number of characters; a cut never parts what is one sign on the screen (a
family of joined emoji, a letter and its accents). Plain ASCII, the common case, loads no width tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["GAP", "clip", "clip_middle", "display_width", "layout", "prefix_of", "wrap"]

GAP = "  "
"""What stands between two columns."""
_ELLIPSIS = "…"
_LEAST = 8
"""Columns below which the one that gives way is not cut any more; the line grows longer instead."""


def display_width(text: str) -> int:
    """Return how many columns ``text`` (one line, already safe) takes on a screen."""
    if text.isascii():
        return len(text)
    from wcwidth import wcswidth

    width: int = wcswidth(text)
    return width if width >= 0 else len(text)


def _signs(text: str) -> Iterator[str]:
    """Yield what a person sees as one sign each."""
    if text.isascii():
        yield from text
        return
    from wcwidth import iter_graphemes

    yield from iter_graphemes(text)


def clip(text: str, width: int) -> str:
    """Return ``text`` in at most ``width`` columns, cut between two signs and then ended by ``…``."""
    if len(text) * 2 <= width or display_width(text) <= width:
        return text
    kept: list[str] = []
    used = 1
    for sign in _signs(text):
        used += display_width(sign)
        if used > width:
            break
        kept.append(sign)
    return "".join(kept).rstrip() + _ELLIPSIS


def clip_middle(text: str, width: int) -> str:
    """Return ``text`` in at most ``width`` columns, its middle replaced by ``…`` where it is too long."""
    if len(text) * 2 <= width or display_width(text) <= width:
        return text
    signs = list(_signs(text))
    head: list[str] = []
    tail: list[str] = []
    room = width - 1
    while signs:
        from_head = len(head) <= len(tail)
        sign = signs.pop(0 if from_head else -1)
        room -= display_width(sign)
        if room < 0:
            break
        (head if from_head else tail).append(sign)
    return "".join((*head, _ELLIPSIS, *reversed(tail)))


def prefix_of(text: str, count: int) -> str:
    """Return at most the first ``count`` characters of ``text``, never ending inside a sign."""
    if len(text) <= count:
        return text
    head = text[:count]
    if text[: count + 1].isascii():
        return head
    # Only the neighbourhood of the cut matters; a sign of more than 64 characters is an attack, not a sign.
    start = max(0, count - 64)
    at = start
    for sign in _signs(text[start : count + 64]):
        if at + len(sign) > count:
            break
        at += len(sign)
    return head[:at] if at > start else head


def wrap(text: str, width: int) -> list[str]:
    """Return ``text`` in lines of at most ``width`` columns, broken at blanks where there are some."""
    lines: list[str] = []
    for paragraph in text.expandtabs(4).split("\n"):
        lines.extend(_wrapped(paragraph, max(width, 2)))
    return lines


def _fitting(text: str, width: int) -> str:
    """Return the longest beginning of ``text`` in ``width`` columns, at least one sign."""
    used = taken = 0
    for sign in _signs(text):
        used += display_width(sign)
        if taken and used > width:
            break
        taken += len(sign)
    return text[:taken]


def _wrapped(paragraph: str, width: int) -> Iterator[str]:
    line: str | None = None
    used = 0
    for word in paragraph.split(" "):  # a run of blanks gives empty words, so that indentation stays
        size = display_width(word)
        if line is not None and used + 1 + size <= width:
            line = f"{line} {word}"
            used += 1 + size
            continue
        rest = word
        if line is not None and size > width and width - used > 2:
            # It is broken anyway, so it begins here: most often a text without blanks.
            head = _fitting(rest, width - used - 1)
            line, rest = f"{line} {head}", rest[len(head) :]
            size = display_width(rest)
        if line is not None:
            yield line.rstrip()
        while size > width:
            head = _fitting(rest, width)
            yield head
            rest = rest[len(head) :]
            size = display_width(rest)
        line, used = rest, size
    yield (line or "").rstrip()


def layout(
    rows: Sequence[Sequence[str]],
    *,
    width: int | None,
    giving: int,
    right: frozenset[int] = frozenset(),
    cut: Callable[[str, int], str] = clip,
) -> list[str]:
    """Return ``rows`` as lines with aligned columns, two blanks between them, none at the end.

    :param width: columns of the screen; ``None`` (no terminal) cuts nothing.
    :param giving: index of the one column that is cut where a line would be too long. Every other is shown complete,
        if need be by a line that is longer than the screen.
    :param right: indices of the columns that are aligned to the right.
    :param cut: shortens a cell of that column to a number of columns.
    """
    if not rows:
        return []
    sizes = [[display_width(cell) for cell in row] for row in rows]
    widest = [max(column) for column in zip(*sizes, strict=True)]
    if width is not None:
        others = sum(widest) - widest[giving] + len(GAP) * (len(widest) - 1)
        room = max(width - others, _LEAST)
        if widest[giving] > room:
            rows = [[cut(cell, room) if at == giving else cell for at, cell in enumerate(row)] for row in rows]
            sizes = [[display_width(cell) for cell in row] for row in rows]
            widest[giving] = max(row[giving] for row in sizes)
    return [
        GAP.join(
            " " * (widest[at] - size) + cell if at in right else cell + " " * (widest[at] - size)
            for at, (cell, size) in enumerate(zip(row, row_sizes, strict=True))
        ).rstrip()
        for row, row_sizes in zip(rows, sizes, strict=True)
    ]
