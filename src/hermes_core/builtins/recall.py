"""The agent without a model: answers with what it finds in past sessions.

It is what a fresh installation talks with, so it also says what can be typed. It reads with the principal of its
turn: what others said elsewhere is not there for it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hermes_hookspecs.messages import USER
from hermes_hookspecs.ports.agent import AssistantStep

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.ports.agent import AgentEvent, TurnContext
    from hermes_hookspecs.sessions import SessionSummary

__all__ = ["RecallAgent"]

_LOOKED_AT = 50
_SHOWN = 5
_SNIPPET = 160
_FIRST = ("help", "new", "sessions", "resume", "search")


class RecallAgent:
    """Searches earlier sessions for the words of the message and lists what it found."""

    name = "recall"
    model: str | None = None
    promptless = True
    """It asks no model; the tools of its sessions are frozen when one is asked."""

    async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
        """Yield one step with the answer."""
        rows = await asyncio.to_thread(turn.history.search, turn.text, limit=_LOOKED_AT)
        # Its own earlier answers quote what they were asked, and are no memory of anything.
        found = [(one, row) for one, row in rows if row.role == USER or one.model != self.name][:_SHOWN]
        recent = () if found else await asyncio.to_thread(turn.history.recent, limit=_SHOWN)
        yield AssistantStep(content=_answer(turn, found, recent), finish_reason="stop")


def _answer(
    turn: TurnContext, found: Sequence[tuple[SessionSummary, Message]], recent: Sequence[SessionSummary]
) -> str:
    """Return what is said: what was found, else what there is; at the beginning also what can be typed."""
    lines: list[str] = []
    begins = sum(row.role == USER for row in turn.messages) <= 1
    if found:
        lines.append(f"Earlier sessions that mention “{_short(turn.text, 60)}”:")
        lines += [f"- {_name(summary)}: {row.role}: {_around(row.content, turn.text)}" for summary, row in found]
    else:
        lines.append(f"I kept your message. No earlier session mentions “{_short(turn.text, 60)}”.")
        if recent and begins:
            lines.append("Lately you talked in:")
            lines += [f"- {_name(summary)}: {_short(summary.preview, 80)}" for summary in recent]
    if turn.commands and begins:
        lines.append(_commands([name for name, _ in turn.commands]))
    return "\n".join(lines)


def _commands(names: Sequence[str]) -> str:
    """Return the line that names the commands, or the first that somebody needs when there are many."""
    first = [name for name in _FIRST if name in names]
    if len(names) <= _SHOWN or not first:
        return "Commands: " + "  ".join(f"/{name}" for name in names)
    more = "; /help lists all" if "help" in first else ""
    return "Commands: " + "  ".join(f"/{name}" for name in first) + more


def _name(summary: SessionSummary) -> str:
    return f"{summary.title} ({summary.session_id})" if summary.title else summary.session_id


def _short(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _around(content: str, query: str) -> str:
    """Return the neighbourhood of the first word that is found, on one line."""
    line = " ".join(content.split())
    lowered = line.lower()
    places = [lowered.find(word.lower()) for word in query.split()]
    start = max(0, min((place for place in places if place >= 0), default=0) - _SNIPPET // 3)
    piece = line[start : start + _SNIPPET]
    return f"{'…' if start else ''}{piece}{'…' if start + _SNIPPET < len(line) else ''}"
