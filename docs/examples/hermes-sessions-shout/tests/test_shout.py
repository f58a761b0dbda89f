"""The suite of every plugin, that of agents, and the agent in a whole turn."""

from __future__ import annotations

import pytest
from hermes_shout.agent import ShoutAgent

from hermes_core import SessionSource, open_app
from hermes_hookspecs.testing.agent_stage import Alone
from hermes_hookspecs.testing.agent_suite import AgentSuite
from hermes_hookspecs.testing.plugins import PluginSuite


class TestShoutPlugin(PluginSuite):
    distribution = "hermes-sessions-shout"
    entry_point = "shout"


def test_an_answer_is_louder_than_its_question(tmp_path):
    source = SessionSource(platform="cli", chat_id="test")

    with open_app(tmp_path, overrides={"storage.backend": "memory"}, environ={}) as app:
        result = app.ask("hello", source, agent="shout")

    assert result.text == "HELLO!"


class TestShoutAgent(AgentSuite):
    asks_model = calls_tools = False

    @pytest.fixture
    def stage(self):
        return Alone(lambda: ShoutAgent("!"))
