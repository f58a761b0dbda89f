"""What a resumed session shows of its past: the last exchanges, short, with tool calls folded.

The rules are those that people know from the original (settings ``[display] resume_*``): system and tool rows are never
shown, reasoning is left out, long texts are cut by lines and then by characters, and the last answer is complete.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import attrs

from hermes_cli.columns import clip, display_width, prefix_of, wrap
from hermes_cli.safe_text import safe_line, safe_text
from hermes_cli.times import counted
from hermes_hookspecs.messages import (
    ASSISTANT,
    KIND_NOTE,
    KIND_RECOVERY,
    KIND_SUMMARY,
    USER,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hermes_hookspecs.ids import TurnId
    from hermes_hookspecs.messages import Message, ToolCall
    from hermes_hookspecs.ports.app import App

__all__ = ["Recap", "RecapEntry", "RecapLimits", "build_recap", "draw_recap", "recap_limits", "without_reasoning"]

_TAGS = "think|thinking|thought|reasoning|reasoning_scratchpad"
_CLOSED = re.compile(rf"<({_TAGS})\b[^<>]*>.*?</\1\s*>", re.IGNORECASE | re.DOTALL)
_OPEN = re.compile(rf"<({_TAGS})\b[^<>]*>.*\Z", re.IGNORECASE | re.DOTALL)
_STRAY = re.compile(rf"</({_TAGS})\s*>", re.IGNORECASE)
_NAMES = 4
"""Most tool names in a folded line."""
_LABELS = {USER: "You: ", ASSISTANT: "Hermes: "}
_MOST_WIDTH = 100
_LEAST_TITLE = 8
"""Columns of a title that are shown even where the heading is longer than the panel then."""


@attrs.frozen(kw_only=True)
class RecapLimits:
    """The settings ``[display] resume_*``; lengths in characters, an exchange is two entries."""

    exchanges: int = 10
    user_chars: int = 300
    assistant_chars: int = 200
    assistant_lines: int = 3
    skip_tool_only: bool = True


@attrs.frozen(kw_only=True)
class RecapEntry:
    """One row of a recap: ``role`` ``user`` or ``assistant``; ``text`` safe and cut; ``door`` names its entrance."""

    role: str
    text: str
    door: str


@attrs.frozen(kw_only=True)
class Recap:
    """Entries, oldest first, and how many entries before them are left out."""

    entries: tuple[RecapEntry, ...]
    earlier: int


def recap_limits(app: App) -> RecapLimits:
    """Return the limits in force."""

    def number(key: str) -> int:
        value = app.setting("display", key)
        return value if isinstance(value, int) else 0

    return RecapLimits(
        exchanges=number("resume_exchanges"),
        user_chars=number("resume_max_user_chars"),
        assistant_chars=number("resume_max_assistant_chars"),
        assistant_lines=number("resume_max_assistant_lines"),
        skip_tool_only=bool(app.setting("display", "resume_skip_tool_only")),
    )


def without_reasoning(text: str) -> str:
    """Return ``text`` without what stands between reasoning tags; an unclosed tag reaches to the end."""
    if "<" not in text:
        return text.strip()
    text = _CLOSED.sub("", text)
    text = _OPEN.sub("", text)
    return _STRAY.sub("", text).strip()


def _calls_text(calls: Sequence[ToolCall]) -> str:
    """Return ``[3 tool calls: terminal, read_file]``: each name once, at most four."""
    names = list(dict.fromkeys(safe_line(call.name) for call in calls))
    shown = ", ".join([*names[:_NAMES], *(["..."] if len(names) > _NAMES else [])])
    return f"[{counted(len(calls), 'tool call')}: {shown}]"


def _cut(text: str, count: int) -> str:
    return text if len(text) <= count else f"{prefix_of(text, count)}..."


def _with_attachments(row: Message, text: str) -> str:
    return "\n".join(each for each in (text, *(f"[{safe_line(item.kind)}]" for item in row.attachments)) if each)


def _user_text(row: Message, limits: RecapLimits) -> str:
    return _cut(_with_attachments(row, safe_text(row.content).strip()), limits.user_chars)


def _assistant_texts(row: Message, limits: RecapLimits) -> tuple[str, str] | None:
    """Return the cut and the complete form of an answer, ``None`` when there is nothing to show of it."""
    full = _with_attachments(row, safe_text(without_reasoning(row.content)))
    if not full and (not row.tool_calls or limits.skip_tool_only):
        return None
    short = full
    lines = full.splitlines()
    if len(lines) > limits.assistant_lines:
        short = "\n".join(lines[: limits.assistant_lines]) + " ..."
    short = _cut(short, limits.assistant_chars)
    calls = _calls_text(row.tool_calls) if row.tool_calls else ""
    return " ".join(filter(None, (short, calls))), " ".join(filter(None, (full, calls)))


def build_recap(rows: Iterable[Message], limits: RecapLimits, door_of: Callable[[TurnId | None], str]) -> Recap:
    """Return what to show of a transcript.

    :param rows: in order of storing; hidden ones are not among them.
    :param door_of: names the entrance of a turn.
    """
    found: list[tuple[Message, str]] = []
    last: tuple[int, str] | None = None
    for row in rows:
        if row.kind in (KIND_NOTE, KIND_RECOVERY, KIND_SUMMARY):
            continue
        if row.role == USER:
            found.append((row, _user_text(row, limits)))
        elif row.role == ASSISTANT and (texts := _assistant_texts(row, limits)) is not None:
            last = (len(found), texts[1])
            found.append((row, texts[0]))
    if last is not None:
        found[last[0]] = (found[last[0]][0], last[1])
    earlier = max(len(found) - 2 * limits.exchanges, 0)
    shown = found[earlier:]
    entries = (RecapEntry(role=row.role, text=text, door=door_of(row.turn_id)) for row, text in shown)
    return Recap(entries=tuple(entries), earlier=earlier)


def draw_recap(recap: Recap, title: str, session_id: str, width: int) -> list[str]:
    """Return the panel as lines of at most ``width`` columns; a bar at the left marks what is past.

    The entrance is named before the first entry and wherever it changes.

    :param title: one safe line, cut where the heading is too long; ``""`` for none.
    :param session_id: one safe line, never cut: it is what a person types to come back.
    """
    width = min(max(width, 24), _MOST_WIDTH)
    top = f"╭─ {session_id} "
    if title:
        room = width - display_width(top) - len(" ()") - 1
        top = f"╭─ {clip(title, max(room, _LEAST_TITLE))} ({session_id}) "
    lines = [top + "─" * (width - display_width(top))]
    if recap.earlier:
        lines.append(f"│ ... {counted(recap.earlier, 'earlier message')} ...")
    door: str | None = None
    for entry in recap.entries:
        if entry.door != door:
            door = entry.door
            lines.append(f"│ ── {clip(door, width - 6)}")
        label = _LABELS[entry.role]
        room = width - 2 - len(label)
        texts = wrap(entry.text, room) or [""]
        lines.append(f"│ {label}{texts[0]}".rstrip())
        lines += [f"│ {' ' * len(label)}{text}".rstrip() for text in texts[1:]]
    lines.append("╰" + "─" * (width - 1))
    return lines
