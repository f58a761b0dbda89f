"""Whether the events of a turn are legal: each of a sound type, each in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.messages import ToolCall
from hermes_hookspecs.ports.agent import AssistantStep, Progress, TextDelta, ToolResult, UsageReport
from hermes_hookspecs.turns import Usage

if TYPE_CHECKING:
    from hermes_hookspecs.testing.agent_stage import Performance

__all__ = ["faults_of_turn"]

_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


def faults_of_turn(performance: Performance) -> list[str]:
    """Return what is wrong with the events of a turn, in words; empty for a legal one."""
    return _Looking(performance).faults


class _Looking:
    """Goes through the events of a turn once."""

    def __init__(self, performance: Performance) -> None:
        self.faults: list[str] = []
        self._tools = performance.turn.tools
        self._used = {call.id for row in performance.turn.messages for call in row.tool_calls}
        self._open: dict[str, ToolCall] = {}
        self._shown = ""
        for event in performance.events:
            self._look(event)
        if performance.error is None and self._open:
            self._say(f"no result for {', '.join(self._open)}")
        if self._shown.strip():
            self._say(f"{self._shown!r} was shown and stands in no row")

    def _say(self, words: str) -> None:
        self.faults.append(words)

    def _look(self, event: object) -> None:
        if isinstance(event, AssistantStep):
            self._step(event)
        elif isinstance(event, ToolResult):
            self._result(event)
        elif isinstance(event, UsageReport):
            self._usage(event.usage)
        elif isinstance(event, TextDelta | Progress):
            text: object = event.text if isinstance(event, TextDelta) else event.label
            if not isinstance(text, str):
                self._say(f"{type(event).__name__} without a text: {text!r}")
            elif isinstance(event, TextDelta):
                self._shown += text
        else:
            self._say(f"{type(event).__name__} is no event of an agent")

    def _step(self, step: AssistantStep) -> None:
        content: object = step.content
        if not isinstance(content, str):
            self._say(f"the content of a step is {type(content).__name__}")
        elif not content.startswith(self._shown):
            self._say(f"{self._shown!r} was shown, {content!r} is stored")
        self._shown = ""
        if self._open:
            self._say(f"a step before the results of {', '.join(self._open)}")
        self._open = {}
        for call in step.tool_calls:
            self._call(call)

    def _call(self, call: object) -> None:
        if not isinstance(call, ToolCall):
            self._say(f"{type(call).__name__} is no call")
            return
        if call.id in self._used:
            self._say(f"the id {call.id!r} was used before")
        if not call.id or not isinstance(call.arguments, str):
            self._say(f"{call!r} has no id, or arguments that are no text")
        tool = self._tools.get(call.name)
        if tool is not None and call.effect != tool.effect:
            self._say(f"{call.name} is said to be {call.effect}, and is {tool.effect}")
        self._used.add(call.id)
        self._open[call.id] = call

    def _result(self, result: ToolResult) -> None:
        call = self._open.pop(result.call_id, None)
        if call is None:
            self._say(f"a result of {result.call_id!r}, which is not open")
        elif call.name != result.name:
            self._say(f"the result of {call.name} calls itself {result.name}")
        content: object = result.content
        if not isinstance(content, str):
            self._say(f"a result that is {type(content).__name__}")

    def _usage(self, usage: object) -> None:
        if not isinstance(usage, Usage):
            self._say(f"usage that is {type(usage).__name__}")
            return
        for name in _COUNTS:
            count: object = getattr(usage, name)
            if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 0):
                self._say(f"{name} is {count!r}")
