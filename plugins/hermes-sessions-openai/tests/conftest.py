"""The agent before a fake endpoint, and short ways to run a turn."""

from __future__ import annotations

import asyncio

import pytest

from hermes_hookspecs.ids import LineageId, MessageId, SessionId, TurnId
from hermes_hookspecs.messages import Message
from hermes_hookspecs.ports.agent import AssistantStep, Progress, TextDelta, ToolResult, TurnContext, UsageReport
from hermes_openai.agent import OpenAIAgent
from hermes_openai.config import OpenAIConfig
from hermes_openai.testing import FakeEndpoint

LIMIT_S = 30


class Shown(list):
    """The events of a turn, in order, and what is in them."""

    def _of(self, kind):
        return [event for event in self if isinstance(event, kind)]

    @property
    def text(self):
        return "".join(event.text for event in self._of(TextDelta))

    @property
    def steps(self):
        return self._of(AssistantStep)

    @property
    def answer(self):
        return self.steps[-1].content

    @property
    def results(self):
        return {event.call_id: event.content for event in self._of(ToolResult)}

    @property
    def usages(self):
        return [event.usage for event in self._of(UsageReport)]

    @property
    def labels(self):
        return [event.label for event in self._of(Progress)]


@pytest.fixture
def row():
    """Return a function that makes a stored row."""

    def row(role="user", content="hello", **fields):
        ids = {"id": MessageId(1), "lineage_id": LineageId("l"), "session_id": SessionId("s"), "turn_id": TurnId("t")}
        return Message(**ids, role=role, content=content, timestamp=0, **fields)

    return row


@pytest.fixture
def context(row):
    """Return a function that makes what an agent gets."""

    def context(*rows, tools=(), history=None, steering=None):
        none = dict.fromkeys(("turn", "session", "source", "principal"))
        return TurnContext(
            **none,
            messages=rows or (row(),),
            text="hello",
            attachments=(),
            history=history,
            tools={one.name: one for one in tools},
            steering=steering,
        )

    return context


@pytest.fixture
def endpoint():
    with FakeEndpoint() as endpoint:
        yield endpoint


@pytest.fixture
def waits():
    """Seconds that were waited before each repetition; nothing is really waited."""
    return []


@pytest.fixture
def agent(endpoint, waits):
    """Return a function that makes an agent of this endpoint; settings may be given."""

    def agent(*, environ=None, **settings):
        async def sleep(seconds):
            waits.append(seconds)

        table = {"model": "m", "base_url": endpoint.base_url, "session_search": False, "send_files": False} | settings
        return OpenAIAgent(OpenAIConfig.of(table), environ=environ or {}, sleep=sleep)

    return agent


@pytest.fixture
def run(agent, context):
    """Return a function that runs one turn; ``events`` in it hold what came before an error."""

    def run(*rows, of=None, tools=(), history=None, steering=None, events=None, **settings):
        shown = Shown() if events is None else events

        async def turn():
            runner = of or agent(**settings)
            async with asyncio.timeout(LIMIT_S):
                async for event in runner.run(context(*rows, tools=tools, history=history, steering=steering)):
                    shown.append(event)

        asyncio.run(turn())
        return shown

    run.Shown = Shown
    return run
