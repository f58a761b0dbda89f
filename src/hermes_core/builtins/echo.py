"""An agent that says what it heard: to try a set-up, and for tests of people who embed the core."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.messages import USER
from hermes_hookspecs.ports.agent import AssistantStep

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from hermes_hookspecs.ports.agent import AgentEvent, TurnContext

__all__ = ["EchoAgent"]


class EchoAgent:
    """Answers with the text of the message and which one of the conversation it is."""

    name = "echo"
    model: str | None = None
    promptless = True
    """It asks no model; the tools of its sessions are frozen when one is asked."""

    async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
        """Yield one step: ``echo 3: the text``."""
        heard = sum(row.role == USER for row in turn.messages)
        yield AssistantStep(content=f"echo {heard}: {turn.text}", finish_reason="stop")
