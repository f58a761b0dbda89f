"""Commands of a chat that change how its conversation goes on: each once, in its place, whenever a process dies."""

from __future__ import annotations

import asyncio

import pytest

from hermes_core.commands.controls import ControlRunner
from hermes_hookspecs.messages import ToolCall
from hermes_hookspecs.ports.agent import AssistantStep, ToolResult
from hermes_hookspecs.principal import operator
from hermes_hookspecs.testing.agents import Gate

ALL = operator()


def half_done(hall, number):
    """Run a row's command as a process does that is killed before its reply is stored."""
    runner = ControlRunner(hall.app, hall.app.command_book, hall.app.desk.entry_behind, hall.app.say)
    return asyncio.run(runner.run(hall.item(number)))


def rows(hall):
    return [row.content for row in hall.app.store.messages(hall.lineage(), ALL)]


def test_undo_waits_for_its_place_and_takes_back_what_was_said_before_it(hall):
    hall.say("one", "two", "/undo", "three")

    texts = hall.work("echo")

    assert texts[2].startswith("Taken back: “two”.")
    assert texts[3] == "echo 2: three"
    assert rows(hall) == ["one", "echo 1: one", "three", "echo 2: three"]


@pytest.mark.parametrize("times", [1, 2])
def test_undo_that_died_before_its_reply_takes_back_no_more(hall, times):
    hall.say("one", "two", "three")
    hall.work("echo")
    hall.say("/undo")
    for _ in range(times):
        half_done(hall, 4)

    texts = hall.work("echo")

    assert texts[-1].startswith("Taken back: “three”.")
    assert rows(hall) == ["one", "echo 1: one", "two", "echo 2: two"]


@pytest.mark.parametrize("times", [0, 1, 3])
def test_retry_says_the_message_again_once_however_often_the_command_is_run(hall, times):
    hall.say("one")
    hall.work("echo")
    hall.say("/retry")
    for _ in range(times):
        half_done(hall, 2)

    texts = hall.work("echo")

    assert texts[1].startswith("Trying again: “one”.")
    assert texts[2:] == ["echo 1: one"]
    assert rows(hall) == ["one", "echo 1: one"]
    assert hall.app.store.stats().hidden == 2


@pytest.mark.parametrize("times", [0, 2])
def test_branch_makes_one_conversation_that_remembers_where_it_came_from(hall, times):
    hall.say("one")
    hall.work("echo")
    origin = hall.lineage()
    tip = hall.app.store.lineage(origin, ALL).tip
    hall.say("/branch another way", "two")
    for _ in range(times):
        half_done(hall, 2)

    texts = hall.work("echo")

    assert texts[1].startswith("You go on in 'another way'")
    assert f"/resume {tip}" in texts[1]
    assert texts[2] == "echo 2: two"
    assert hall.lineage() != origin
    assert hall.app.store.lineage(hall.lineage(), ALL).branched_from == tip
    assert len(hall.app.store.messages(origin, ALL)) == 2
    assert len(hall.app.store.summaries(ALL)) == 2


def test_queue_shows_what_waits_and_clears_only_what_came_before_it(hall):
    hall.say("one", "two", "/queue", "/queue clear", "three")
    shown = half_done(hall, 3)
    half_done(hall, 4)

    texts = hall.work("echo")

    assert "1. one" in shown
    assert "2. two" in shown
    assert any(text.startswith("2 messages were taken back") for text in texts)
    assert [hall.item(number).status for number in (1, 2, 5)] == ["withdrawn", "withdrawn", "done"]
    assert "echo 1: three" in texts


class Steered:
    """Makes one call, stands at the gate, and says what it was told meanwhile."""

    name, model, steers = "steered", None, True

    def __init__(self):
        self.gate, self.heard = Gate(), []

    async def run(self, turn):
        yield AssistantStep(tool_calls=(ToolCall(id="c1", name="look"),))
        await self.gate.pass_through()
        yield ToolResult(call_id="c1", name="look", content="seen")
        self.heard += turn.steering.take()
        yield AssistantStep(content="done")


def test_steer_goes_into_the_turn_that_runs_whatever_the_busy_policy(hall, wait_for, wait_until):
    agent = Steered()

    async def play():
        async with hall.serving(agent):
            await hall.accept("begin")
            await wait_for(agent.gate.reached)
            await hall.accept("/steer mind the gap")
            await wait_until(lambda: any("goes into the turn" in text for text in hall.sender.texts()))
            agent.gate.open()
            await wait_until(lambda: "done" in hall.sender.texts())

    asyncio.run(play())

    assert agent.heard == ["mind the gap"]
    assert [content for role, content in hall.rows() if role == "user"] == ["begin", "mind the gap"]


def test_what_was_not_sent_to_steer_waits_as_ever(hall, wait_for, wait_until):
    agent = Steered()

    async def play():
        async with hall.serving(agent):
            await hall.accept("begin")
            await wait_for(agent.gate.reached)
            await hall.accept("something else")
            agent.gate.open()
            await wait_until(lambda: hall.sender.texts().count("done") == 2)

    asyncio.run(play())

    assert agent.heard == []


def test_steer_where_nothing_runs_is_a_message(hall):
    hall.say("/steer hello")

    texts = hall.work("echo")

    assert texts == ["No turn runs here; it is taken as a message.", "echo 1: hello"]
