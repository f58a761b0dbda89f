"""The tool list of a session is that of its first turn, whatever became of the plugins since."""

from __future__ import annotations

import asyncio
import json

import pytest
from talking import Tools

from hermes_core.context.toolset import freeze_tools, tools_of
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import SessionSource

SOURCE = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1")


def tools(version):
    return {one.name: one for one in Tools(version).hermes_tools()}


def as_sent(found):
    return json.dumps([[one.name, one.description, one.parameters] for one in found.values()])


def test_an_upgraded_plugin_changes_no_byte_of_the_list():
    frozen = freeze_tools(tools(1))

    assert as_sent(tools_of(frozen, tools(2))) == as_sent(tools_of(frozen, tools(1)))
    assert list(tools_of(frozen, tools(2))) == ["count", "look"]
    assert as_sent(tools_of(freeze_tools(tools(2)), tools(2))) != as_sent(tools_of(frozen, tools(2)))


def test_a_tool_that_is_as_it_was_is_the_tool_itself():
    live = tools(1)

    assert tools_of(freeze_tools(live), live)["look"] is live["look"]


def test_a_call_goes_to_the_tool_of_today_with_what_else_it_has():
    live = tools(2)
    live["look"].dangerous = True

    look = tools_of(freeze_tools(tools(1)), live)["look"]

    assert asyncio.run(look.call({}, None)) == "look of version 2"
    assert (look.dangerous, look.effect, look.description) == (True, "read", "look, version 1")
    with pytest.raises(AttributeError):
        _ = look.nothing


def test_a_tool_that_is_gone_says_so_to_the_model():
    gone = tools_of(freeze_tools(tools(1)), {})["look"]

    assert "not available" in asyncio.run(gone.call({}, None))
    assert gone.effect == "read"


@pytest.mark.parametrize("config", [None, "", "{}", "[]", "{broken", '{"tools": [{"name": "x"}]}', '{"model": "m"}'])
def test_a_session_without_a_list_has_what_there_is(config):
    live = tools(1)

    assert tools_of(config, live) == live


def test_no_tools_are_frozen_as_none():
    assert tools_of(freeze_tools({}), tools(1)) == {}


def test_a_schema_that_is_no_json_freezes_nothing():
    live = tools(1)
    live["look"].parameters = {"type": object()}

    assert freeze_tools(live) is None
    assert tools_of(freeze_tools(tools(1)), live)["look"].description == "look, version 1"


def test_a_session_keeps_its_list_and_the_next_one_has_the_new_one(profile):
    seen = []
    for version in (1, 2):
        app = profile(plugins=[Tools(version)], listens=False)
        app.ask("hello", SOURCE, agent=lambda turn: seen.append(as_sent(turn.tools)) or "yes")
        if version == 1 and app.store.stats().sessions != 1:
            pytest.fail("the session is there")
        if version == 2:
            entry = app.get_or_create_session(SOURCE, force_new=True)
            app.ask("hello", SOURCE, entry=entry, agent=lambda turn: seen.append(as_sent(turn.tools)) or "yes")
        app.close()

    first, second, fresh = seen
    assert "version 1" in first
    assert "version 2" in fresh
    assert (first == second) is (app.settings.storage.backend == "sqlite")


def test_a_session_that_began_without_tools_keeps_none(profile):
    seen = []
    for plugins in ([], [Tools(1)]):
        app = profile(plugins=plugins, listens=False)
        app.ask("hello", SOURCE, agent=lambda turn: seen.append(as_sent(turn.tools)) or "yes")
        is_kept = app.settings.storage.backend == "sqlite"
        app.close()

    assert (seen[0] == seen[1]) is is_kept


@pytest.mark.parametrize("first", ["recall", "echo"])
def test_a_session_that_began_without_a_model_is_frozen_by_its_first_turn_with_one(profile, first):
    app, seen = profile(plugins=[Tools(1)]), []

    def agent(turn):
        seen.append(as_sent(turn.tools))
        return "yes"

    before = app.ask("hello", SOURCE, agent=first).entry
    unfrozen = app.store.session(before.session_id, operator()).model_config
    app.ask("hello", SOURCE, agent=agent)
    session = app.store.session(before.session_id, operator())

    assert (unfrozen, session.model) == (None, first)
    assert "version 1" in session.model_config
    assert "version 1" in seen[0]
