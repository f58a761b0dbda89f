"""Busy policy ``steer``: what a sender adds goes into the turn that runs, behind the newest tool result, and once."""

from __future__ import annotations

import asyncio

import pytest

from hermes_hookspecs.commands import Command, CommandReply
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.messages import TOOL, USER, Attachment, ToolCall
from hermes_hookspecs.ports.agent import AssistantStep, ToolResult


class Steered:
    """An agent with two rounds of tools that says what was put into its turn behind each."""

    name = "steered"
    model = None

    def __init__(self, *between, takes_late=False, steers=True):
        self.steers = steers
        self._between = list(between)
        self._takes_late = takes_late
        self.texts = []
        self.attachments = []

    async def run(self, turn):
        self.texts.append(turn.text)
        self.attachments.append(turn.attachments)
        taken = []
        rounds = self._between if len(self.texts) == 1 else []
        for number, meanwhile in enumerate(rounds):
            yield AssistantStep(tool_calls=(ToolCall(id=f"c{number}", name="look", effect="read"),))
            await meanwhile()
            yield ToolResult(call_id=f"c{number}", name="look", content="42")
            if not self._takes_late:
                taken += _take(turn)
        if self._takes_late:
            taken += _take(turn)
        yield AssistantStep(content=f"{turn.text} | {', '.join(taken)}")


def _take(turn):
    return turn.steering.take() if turn.steering is not None else ["nobody steers"]


async def nothing():
    pass


@pytest.fixture
def steered_hall(open_hall):
    def make(**settings):
        return open_hall({"inbox.busy": "steer", "routing.group_sessions_per_user": False} | settings)

    return make


def test_what_is_said_meanwhile_reaches_the_turn_and_is_not_answered_again(steered_hall):
    hall = steered_hall()
    agent = Steered(lambda: hall.accept("and blue"), nothing)
    hall.say("paint it")

    assert hall.work(agent) == ["paint it | and blue"]
    assert (hall.item(2).status, hall.item(2).attempts) == ("done", 1)
    assert agent.texts == ["paint it"]


def test_a_steered_message_stands_behind_the_result_it_came_after(steered_hall):
    hall = steered_hall()
    agent = Steered(lambda: hall.accept("and blue", "or green"), nothing)
    hall.say("paint it")

    hall.work(agent)

    assert [role for role, _ in hall.rows()] == [USER, "assistant", TOOL, USER, USER, "assistant", TOOL, "assistant"]
    assert hall.said() == ["paint it", "and blue", "or green"]
    (turn,) = hall.app.store.turns(hall.lineage(), hall.app.principal(hall.source()))
    assert turn.inbox_ids == (1, 2, 3)


@pytest.mark.parametrize("takes_late", [False, True])
def test_each_text_is_given_once_and_waits_until_it_is_taken(steered_hall, takes_late):
    hall = steered_hall()
    agent = Steered(lambda: hall.accept("one"), lambda: hall.accept("two"), takes_late=takes_late)
    hall.say("go")

    assert hall.work(agent) == ["go | one, two"]


def test_what_another_sender_says_waits_for_a_turn_of_its_own_and_keeps_later_texts_behind_it(steered_hall):
    hall = steered_hall()
    ann = hall.source(chat_type="group", user_id="ou_1")
    bob = hall.source(chat_type="group", user_id="ou_2")
    agent = Steered(
        lambda: hall.accept(hall.event("from Bob", source=bob), hall.event("Ann again", source=ann)), nothing
    )
    hall.say(hall.event("go", source=ann))

    hall.work(agent)

    assert agent.texts == ["go", "from Bob", "Ann again"]


def test_a_command_is_no_text_to_be_steered_in(steered_hall):
    hall = steered_hall()
    agent = Steered(lambda: hall.accept("/help"), nothing)
    hall.say("go")

    texts = hall.work(agent)

    assert "go | " in texts
    assert len(texts) == 2


def test_an_agent_that_does_not_say_that_it_steers_gets_what_is_said_meanwhile_in_the_next_turn(steered_hall):
    """What it never asked for counted as answered, and was not."""
    hall = steered_hall()
    agent = Steered(lambda: hall.accept("and blue"), steers=False)
    hall.say("paint it")

    assert hall.work(agent) == ["paint it | nobody steers", "and blue | "]


@pytest.mark.parametrize(("says", "answers"), [(True, ["go | later"]), (False, ["go | nobody steers", "later | "])])
def test_a_function_says_that_it_steers_by_an_attribute(steered_hall, says, answers):
    hall = steered_hall()
    steered = Steered(lambda: hall.accept("later"))

    async def agent(turn):
        async for event in steered.run(turn):
            yield event

    if says:
        agent.steers = True
    hall.say("go")

    assert hall.work(agent) == answers


def test_a_message_with_an_attachment_waits_for_a_turn_that_shows_it_and_keeps_later_ones_behind_it(steered_hall):
    hall = steered_hall()
    picture = Attachment(kind="image", name="wall.png")
    agent = Steered(lambda: hall.accept("a wall", hall.event("this one", attachments=(picture,)), "in blue"), nothing)
    hall.say("paint it")

    hall.work(agent)

    assert agent.texts == ["paint it", "this one", "in blue"]
    assert [[one.name for one in shown] for shown in agent.attachments] == [[], ["wall.png"], []]
    assert hall.sender.texts()[0] == "paint it | a wall"


def test_what_was_not_sent_to_steer_does_not_where_the_policy_is_another(open_hall):
    hall = open_hall()
    agent = Steered(lambda: hall.accept("later"))
    hall.say("go")

    assert hall.work(agent) == ["go | ", "later | "]


def test_what_was_steered_in_before_a_turn_was_stopped_never_runs_again(steered_hall):
    hall = steered_hall()

    async def stop():
        await hall.accept("/stop")
        await asyncio.Event().wait()

    agent = Steered(lambda: hall.accept("and blue"), stop)
    hall.say("paint it")

    assert hall.work(agent) == ["Stopped."]
    assert (hall.item(2).status, agent.texts) == ("done", ["paint it"])


class AfterTheFirst:
    """A plugin with a command that ends when the first message is answered."""

    @hookimpl
    def hermes_commands(self):
        async def slow(call):
            while call.app.store.inbox_item(1).status != "done":  # noqa: ASYNC110 - what is waited for has no event
                await asyncio.sleep(0.002)
            return CommandReply(text="slow is done")

        return (Command(name="slow", summary="waits for the first message", run=slow),)


def test_what_is_said_behind_a_command_that_is_not_done_is_not_put_into_the_turn_before_it(open_hall):
    hall = open_hall({"inbox.busy": "steer"}, plugins=[AfterTheFirst()])
    agent = Steered(lambda: hall.accept("with it"), lambda: hall.accept("/slow", "/new", "fresh start"), nothing)
    hall.say("old")

    answers = [text for text in hall.work(agent) if " | " in text]

    assert answers == ["old | with it", "fresh start | "]
