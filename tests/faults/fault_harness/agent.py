"""The scripted agent: numbered steps with tools whose every effect is written down."""

from __future__ import annotations

import asyncio
from hashlib import sha256

from fault_harness.script import steps_of
from hermes_hookspecs.messages import ToolCall
from hermes_hookspecs.ports.agent import AssistantStep, TextDelta, ToolResult

__all__ = ["ScriptedAgent"]


class ScriptedAgent:
    """Does what the script says about the text of its turn, and then names the messages that it answers.

    :param ledgers: take what it was sent, and what its tools did.
    """

    name = "scripted"
    model = None
    steers = True

    def __init__(self, ledgers):
        self._ledgers = ledgers

    async def run(self, turn):
        """Yield the steps of one turn."""
        row = turn.turn
        place = {"turn": row.id, "lineage": row.lineage_id, "token": row.token}
        texts = [turn.text]
        self._ledgers.windows.write(**place, digests=[_digest(message) for message in turn.messages])
        for number, step in enumerate(steps_of(turn.text), 1):
            calls = [
                ToolCall(id=f"{number}.{n}", name=f"{effect}_it", effect=effect)
                for n, effect in enumerate(step.effects)
            ]
            yield AssistantStep(content=f"step {number} of {row.id}", tool_calls=tuple(calls))
            for call in calls:
                await asyncio.sleep(step.pause_s)
                self._ledgers.effects.write(**place, call=call.id)
                yield ToolResult(call_id=call.id, name=call.name, content=f"done {call.id} in {row.id}")
                texts += () if turn.steering is None else turn.steering.take()
        names = " ".join(word for text in texts for word in text.split() if word.startswith("#"))
        yield TextDelta(text="answer")
        yield AssistantStep(content=f"answer to {names} " + "and so on " * (len(turn.text) % 12))


def _digest(message):
    told = (message.role, message.content, message.tool_call_id, [(call.id, call.name) for call in message.tool_calls])
    return sha256(repr(told).encode()).hexdigest()[:10]
