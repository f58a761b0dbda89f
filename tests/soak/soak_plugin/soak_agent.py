"""The agent of the soak, as a plugin: it writes for a while, and says where in its session it stands."""

from __future__ import annotations

import asyncio
from random import Random

from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.messages import USER
from hermes_hookspecs.ports.agent import AssistantStep, TextDelta

PIECES = 8


class SoakAgent:
    """Takes 0.2 to 2 seconds, so that many turns are under way when a gateway dies."""

    name, model = "soak", None

    async def run(self, turn):
        said = [row.content for row in turn.messages if row.role == USER and not row.kind]
        answer = f"answer {len(said)} to {turn.text} after {said[0]}"
        pause_s = Random(turn.text).uniform(0.2, 2) / PIECES
        for at in range(PIECES):
            yield TextDelta(text=answer[at * len(answer) // PIECES : (at + 1) * len(answer) // PIECES])
            await asyncio.sleep(pause_s)
        yield AssistantStep(content=answer)


class SoakPlugin:
    """Entry point of the plugin."""

    def __init__(self, config):
        pass

    @hookimpl
    def hermes_agents(self):
        return (SoakAgent(),)
