"""The agent of the demo: no model, a small book, and the pace of somebody who thinks while they write."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from hermes_demo.book import answer_to, is_long
from hermes_hookspecs.messages import USER
from hermes_hookspecs.ports.agent import AssistantStep, TextDelta

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hermes_hookspecs.ports.agent import AgentEvent, TurnContext

__all__ = ["DemoAgent"]

_PIECE: Final = 4
_PAUSE_S, _LONG_PAUSE_S = 0.01, 0.2
"""Between two pieces of an answer: an ordinary one takes a fraction of a second, a long one some five."""


class DemoAgent:
    """Answers out of :mod:`hermes_demo.book`, piece by piece."""

    name = "demo"
    model: str | None = None

    async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
        """Yield the answer in pieces, and then as the step that is kept."""
        # a row with a kind is none that a person wrote, as the one that tells of an interrupted attempt
        said = [row.content for row in turn.messages if row.role == USER and not row.kind]
        answer = answer_to(turn.text, said[:-1])
        pause_s = _LONG_PAUSE_S if is_long(turn.text) else _PAUSE_S
        for at in range(0, len(answer), _PIECE):
            yield TextDelta(text=answer[at : at + _PIECE])
            await asyncio.sleep(pause_s)
        yield AssistantStep(content=answer, finish_reason="stop")
