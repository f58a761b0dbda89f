"""Tools that an agent brings along stand in the prompt as those of the profile do: as the session began with them."""

from __future__ import annotations

import pytest

from hermes_core.context.toolset import offered_by
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.ports.agent import AssistantStep
from hermes_hookspecs.source import SessionSource
from hermes_hookspecs.testing.agents import FakeTool

SOURCE = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1")


class Equipped:
    """An agent with tools of its own, which calls one of them."""

    name = "equipped"
    model = None

    def __init__(self, *own_tools):
        self.own_tools = own_tools
        self.seen = []

    async def run(self, turn):
        self.seen.append([(one.name, one.description) for one in turn.tools.values()])
        tool = turn.tools.get("recall")
        yield AssistantStep(content="nothing" if tool is None else await tool.call({}, turn))


class Tools:
    @hookimpl
    def hermes_tools(self):
        return [FakeTool("look", description="of the profile"), FakeTool("recall", "the profile's")]


def test_they_stand_among_those_of_the_profile_by_name(profile):
    agent = Equipped(FakeTool("zoom"), FakeTool("around"))

    profile(plugins=[Tools()]).ask("hi", SOURCE, agent=agent)

    assert [name for name, _ in agent.seen[0]] == ["around", "look", "recall", "zoom"]


def test_of_one_name_the_profiles_is_there(profile):
    result = profile(plugins=[Tools()]).ask("hi", SOURCE, agent=Equipped(FakeTool("recall", "mine")))

    assert result.text == "the profile's"


def test_an_upgraded_agent_changes_nothing_of_the_list_and_answers_with_todays_tool(profile):
    app = profile()
    old = Equipped(FakeTool("recall", "old", description="as it was"))
    new = Equipped(FakeTool("recall", "new", description="other words"), FakeTool("added"))

    answers = [app.ask(str(number), SOURCE, agent=agent).text for number, agent in enumerate((old, new))]

    assert answers == ["old", "new"]
    assert old.seen == new.seen == [[("recall", "as it was")]]


def test_another_agent_answers_a_call_of_them_with_an_error(profile):
    app = profile()
    app.ask("one", SOURCE, agent=Equipped(FakeTool("recall")))

    result = app.ask("two", SOURCE, agent=Equipped())

    assert result.text == "error: the tool recall is not available here any more"


@pytest.mark.parametrize("agent", [Equipped(), object()])
def test_an_agent_without_tools_has_those_of_the_profile(agent):
    look = FakeTool("look")

    assert offered_by(agent, {"look": look}) == {"look": look}
