"""The agents that come with the core keep the contract."""

from __future__ import annotations

import pytest

from hermes_core.builtins.echo import EchoAgent
from hermes_core.builtins.recall import RecallAgent
from hermes_hookspecs.testing.agent_stage import Alone
from hermes_hookspecs.testing.agent_suite import AgentSuite


class TestEcho(AgentSuite):
    asks_model = calls_tools = False

    @pytest.fixture
    def stage(self):
        return Alone(EchoAgent)


class TestRecall(AgentSuite):
    asks_model = calls_tools = False

    @pytest.fixture
    def stage(self):
        return Alone(RecallAgent)
