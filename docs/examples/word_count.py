"""A tool, and an agent that calls it: a step with calls is on disk before the tool runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.messages import ToolCall
from hermes_hookspecs.ports.agent import AssistantStep, ToolResult

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from hermes_hookspecs.ports.agent import Agent, AgentEvent, Tool, TurnContext


class CountWords:
    """Counts the words of a text."""

    name = "count_words"
    description = "Count the words of a text."
    effect = "read"
    parameters: Mapping[str, object] = {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    }

    async def call(self, arguments: Mapping[str, object], turn: TurnContext) -> str:
        """Return the number as text."""
        return str(len(str(arguments["text"]).split()))


class CountingAgent:
    """Asks the tool how many words it was given, and says so."""

    name = "counting"
    model: str | None = None

    async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
        """Yield the call, its result, and the answer."""
        tool = turn.tools["count_words"]
        arguments = {"text": turn.text}
        call = ToolCall(id="call-1", name=tool.name, arguments=json.dumps(arguments), effect=tool.effect)
        yield AssistantStep(tool_calls=(call,))
        # Behind this yield the call is stored, and the lease was still ours: only now may the tool run.
        found = await tool.call(arguments, turn)
        yield ToolResult(call_id=call.id, name=tool.name, content=found)
        yield AssistantStep(content=f"Words: {found}", finish_reason="stop")


class WordCountPlugin:
    """Brings both."""

    @hookimpl
    def hermes_tools(self) -> Sequence[Tool] | None:
        return (CountWords(),)

    @hookimpl
    def hermes_agents(self) -> Sequence[Agent] | None:
        return (CountingAgent(),)
