"""What a search found, as lines: each as wide as the screen on a terminal, one a message and whole in a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli.columns import GAP, clip, display_width, wrap
from hermes_cli.safe_text import safe_line, safe_text
from hermes_cli.times import counted, local_time
from hermes_hookspecs.ports.search import BROWSE, DISCOVER, HIT_END, HIT_START, READ

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes_hookspecs.ports.search import FoundSession, SearchAnswer, ShownMessage

__all__ = ["found_lines"]

_BOLD, _PLAIN = "\x1b[1;33m", "\x1b[0m"
_LEAST_NAME = 8
"""Columns of a name below which what is known of a session gets a line of its own."""
_INDENT = " " * 4
_DEEP = " " * 8


def found_lines(answer: SearchAnswer, *, full: bool, width: int | None) -> Iterator[str]:
    """Yield the lines of an answer.

    :param full: also what stands around each hit. width: columns of the terminal, ``None`` for no terminal: there
        nothing is cut or wrapped, and hits stand between ``>>>`` and ``<<<`` instead of being coloured.
    """
    for at, found in enumerate(answer.results):
        if at and answer.mode != BROWSE:
            yield ""
        yield from _heading(found, width)
        if answer.mode == DISCOVER:
            yield from _hit(found, width)
            if full:
                yield from _messages(found.messages, width)
        elif answer.mode == READ:
            yield from _messages(found.messages, width)
        elif answer.mode != BROWSE:
            yield from _more(found.messages_before, "before")
            yield from _messages(found.messages, width)
            yield from _more(found.messages_after, "behind")


def _heading(found: FoundSession, width: int | None) -> Iterator[str]:
    """Yield the id, the title (in quotes the preview, where there is none), and the facts; the title gives way."""
    name = safe_line(found.title) if found.title else f'"{safe_line(found.preview)}"' if found.preview else ""
    known = f"{found.source}, {local_time(found.last_active)}, {counted(found.message_count, 'message')}"
    first, facts = safe_line(found.session_id), f"({safe_line(known)})"
    if width is None:
        yield GAP.join(filter(None, (first, name, facts)))
        return
    room = width - display_width(first) - display_width(facts) - (2 if name else 1) * len(GAP)
    if room < 0 or (name and room < min(display_width(name), _LEAST_NAME)):
        yield clip(GAP.join(filter(None, (first, name))), width)
        yield _INDENT + facts
    else:
        yield GAP.join(filter(None, (first, clip(name, room), facts)))


def _hit(found: FoundSession, width: int | None) -> Iterator[str]:
    """Yield where a hit is, and its snippet: on the same line where that has room for it."""
    what = "title" if found.by_title else safe_line(found.matched_role or "")
    where = f"{_INDENT}{what}, message {found.match_message_id}:"
    before, *parts = " ".join(found.snippet.split()).split(HIT_START)
    plain, marked, spans = safe_text(before), safe_text(before), []
    for part in parts:
        hit, rest = (safe_text(piece) for piece in part.partition(HIT_END)[::2])
        spans.append((len(plain), len(plain) + len(hit)))
        plain += hit + rest
        marked += f">>>{hit}<<<{rest}"
    if width is None:
        yield f"{where} {marked}"
    elif display_width(f"{where} {plain}") <= width:
        yield f"{where} {_coloured(plain, 0, spans)}"
    else:
        yield where
        at = 0
        for line in wrap(plain, width - len(_DEEP)):
            at = plain.index(line, at)
            yield _DEEP + _coloured(line, at, spans)
            at += len(line)


def _coloured(line: str, at: int, spans: Sequence[tuple[int, int]]) -> str:
    """Return a piece of a text with the hits in it in colour; ``at`` is where it begins in the text."""
    pieces: list[str] = []
    done = 0
    for start, end in spans:
        first, last = max(start - at, done), min(end - at, len(line))
        if first < last:
            pieces += (line[done:first], _BOLD, line[first:last], _PLAIN)
            done = last
    return "".join((*pieces, line[done:]))


def _messages(rows: Sequence[ShownMessage], width: int | None) -> Iterator[str]:
    """Yield rows, each behind its role and id, so that no text can pass for another row."""
    for row in rows:
        sign = ">" if row.anchor else " "
        name = f"{row.role} {row.tool_name}" if row.tool_name else row.role
        lines = safe_text(row.content).split("\n")
        yield from _fitted(f"  {sign} [{row.message_id}] {safe_line(name)}> {lines[0]}", width)
        for line in lines[1:]:
            yield from _fitted(f"{_DEEP}{line}", width)
        for tool, arguments in row.tool_calls:
            yield from _fitted(f"{_DEEP}calls {safe_line(tool)} {safe_line(arguments)}", width)


def _fitted(line: str, width: int | None) -> Iterator[str]:
    """Yield a line in as many as it takes, those behind the first one indented."""
    if width is None or display_width(line) <= width:
        yield line.rstrip()
        return
    line = line.expandtabs(4)
    first = wrap(line, width)[0]
    yield first
    # What follows has less room, so it is broken by itself.
    rest = line[len(first) :].lstrip()
    if rest:
        yield from (f"{_DEEP}{each}" for each in wrap(rest, width - len(_DEEP)))


def _more(count: int, where: str) -> Iterator[str]:
    if count:
        yield f"{_INDENT}... {counted(count, 'message')} {where} ..."
