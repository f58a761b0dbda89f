"""The agent keeps the contract, in a stream and without one."""

from __future__ import annotations

import json
import threading
from contextlib import ExitStack

import pytest

from hermes_hookspecs.testing.agent_stage import Asks, Breaks, Says
from hermes_hookspecs.testing.agent_suite import AgentSuite
from hermes_openai.agent import OpenAIAgent
from hermes_openai.config import OpenAIConfig
from hermes_openai.testing import FakeEndpoint, answer, calls, cut, hold, refuse


def _reply(move):
    if isinstance(move, Says):
        prompt, completion = move.usage or (None, None)
        told = {"prompt_tokens": prompt, "completion_tokens": completion} if move.usage else {}
        return answer(*move.pieces, usage=told)
    if isinstance(move, Asks):
        return calls(*move.calls, text=move.text)
    if isinstance(move, Breaks):
        return cut(*move.pieces) if move.pieces else refuse(403, "no")
    return hold(threading.Event(), *move.pieces)


class EndpointStage:
    """An endpoint of its own for each agent."""

    def __init__(self, stack, **settings):
        self._stack = stack
        self._settings = {"session_search": False, "send_files": False} | settings
        self._endpoint = None

    def agent(self, *moves, most_requests=None):
        self._stack.close()  # of the agent before
        self._endpoint = self._stack.enter_context(FakeEndpoint(*map(_reply, moves)))
        table = {"model": "m", "base_url": self._endpoint.base_url} | self._settings
        if most_requests is not None:
            table["max_steps"] = most_requests
        return OpenAIAgent(OpenAIConfig.of(table), environ={})

    def sent(self):
        return [
            [json.dumps(part, ensure_ascii=False) for part in (asked.tools, *asked.messages)]
            for asked in self._endpoint.requests
        ]


class TestOpenAI(AgentSuite):
    @pytest.fixture
    def stage(self):
        with ExitStack() as stack:
            yield EndpointStage(stack)


class TestWithoutAStream(AgentSuite):
    @pytest.fixture
    def stage(self):
        with ExitStack() as stack:
            yield EndpointStage(stack, stream=False)
