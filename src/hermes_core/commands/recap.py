"""The scene of a conversation, restored without a model: what was wanted, done, decided, what failed, what is open."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hermes_core.context.languages import section_of
from hermes_core.context.summaries import extract, parted
from hermes_hookspecs.errors import SessionNotFound
from hermes_hookspecs.messages import ASSISTANT, KIND_INTERRUPTED, KIND_SUMMARY, TOOL, USER, preview_of
from hermes_hookspecs.ports.conversations import Recap

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.principal import Principal

__all__ = ["read_recap"]

_MOST_ROWS: Final = 2000
"""Rows that are looked at, the newest; what a compression said of older ones stands for them."""
_MOST_FAILURES: Final = 10
_LONGEST: Final = 160
_FAILED: Final = re.compile(
    r"\A\s*(error|traceback|fatal|exception|failed)\b|\bexit(ed with)?( code| status)?[ :=]+[1-9]|\A\s*(错误|失败)",
    re.IGNORECASE,
)


def read_recap(reader: StoreReader, lineage_id: LineageId, principal: Principal) -> Recap:
    """Return the recap of a conversation; blocks, and reads up to 2000 rows.

    :raises SessionNotFound: no such lineage, or not the principal's.
    """
    lineage = reader.lineage(lineage_id, principal)
    if lineage is None:
        raise SessionNotFound(lineage_id)
    rows = reader.last_messages(lineage_id, principal, count=_MOST_ROWS)
    summary = next((row for row in reversed(rows) if row.kind == KIND_SUMMARY), None)
    found = _sections(rows, summary)
    said = [row for row in rows if not row.kind and row.content.strip()]
    return Recap(
        session_id=lineage.tip,
        title=lineage.title,
        messages=lineage.message_count,
        turns=lineage.turn_count,
        last_activity=lineage.last_activity,
        goals=found.get("goals", ()),
        decisions=found.get("decisions", ()),
        commands=found.get("commands", ()),
        files=found.get("files", ()),
        done=found.get("results", ()),
        failures=tuple(_failures(rows)),
        open=found.get("open", ()),
        last_asked=_last(said, USER),
        last_answered=_last(said, ASSISTANT),
    )


def _sections(rows: Sequence[Message], summary: Message | None) -> Mapping[str, tuple[str, ...]]:
    """Return the lines of each part, from a summary that is there and from what was said."""
    previous = None if summary is None else parted(summary.content)[0]
    lines: dict[str, list[str]] = {}
    section = ""
    for line in extract(rows, previous=previous).splitlines():
        if line.startswith("## "):
            section = section_of(line[3:])
        elif section and line.startswith("- ") and line != "- …":
            lines.setdefault(section, []).append(line[2:])
    return {name: tuple(found) for name, found in lines.items()}


def _failures(rows: Sequence[Message]) -> Iterator[str]:
    """Return the last calls that failed, as their results say, the oldest first, each once."""
    found: dict[str, None] = {}
    for row in rows:
        if row.role != TOOL or not (row.kind == KIND_INTERRUPTED or _FAILED.search(row.content[:400])):
            continue
        line = f"{row.tool_name or 'a tool'}: {preview_of(row.content)}"
        found.pop(line, None)
        found[line] = None
    yield from list(found)[-_MOST_FAILURES:]


def _last(said: Sequence[Message], role: str) -> str:
    return next((_line(row.content) for row in reversed(said) if row.role == role), "")


def _line(text: str) -> str:
    line = " ".join(text[: 4 * _LONGEST].split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
