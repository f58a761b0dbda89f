"""The agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.ports.agent import AssistantStep

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hermes_hookspecs.ports.agent import AgentEvent, TurnContext

__all__ = ["ShoutAgent"]


class ShoutAgent:
    """Answers with what it heard, louder.

    :param mark: stands behind every answer.
    """

    name = "shout"
    model: str | None = None

    def __init__(self, mark: str) -> None:
        self._mark = mark

    async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
        """Yield one step."""
        yield AssistantStep(content=f"{turn.text.upper()}{self._mark}", finish_reason="stop")
