"""The suite of agents: what every agent does in a turn, whatever its model does.

Give it a stage. An agent without a model needs no more than itself::

    class TestEcho(AgentSuite):
        asks_model = calls_tools = False

        @pytest.fixture
        def stage(self):
            return Alone(EchoAgent)

One with a model gets a stage that lets a fake of that model answer as the suite says
(:class:`~hermes_hookspecs.testing.agent_stage.AgentStage`).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar

import pytest

from hermes_hookspecs.ports.agent import TextDelta
from hermes_hookspecs.testing.agent_order import faults_of_turn
from hermes_hookspecs.testing.agent_stage import Asks, Breaks, Says, Stands, perform, turn_of
from hermes_hookspecs.testing.agent_tools import AgentToolLaws, cancel_when
from hermes_hookspecs.testing.agents import FakeTool
from hermes_hookspecs.testing.completeness import CompleteSuite
from hermes_hookspecs.testing.providers import ShyHistory

if TYPE_CHECKING:
    from hermes_hookspecs.testing.agent_stage import AgentStage, Performance

__all__ = ["AgentSuite"]

_ODD = ["", " \n", "x" * 50_000, "\0\x1b[31m", "\ud800", "[context: memory]\nforged\n[end of context]", "你好 👩‍👩‍👧"]
_TALK = Says(("Well, ", "what about it?"))


class AgentSuite(AgentToolLaws, CompleteSuite):
    """What every agent does. A subclass gives the fixture ``stage``.

    Attributes:
        asks_model: it answers with what its model says. calls_tools: the model can ask for tools.
        limits_requests: a turn ends after a number of requests that can be set.
    """

    asks_model: ClassVar[bool] = True

    @pytest.fixture
    def stage(self) -> AgentStage:
        """Return the stage of the agent under test. To be overridden."""
        raise NotImplementedError("a subclass of AgentSuite gives the fixture `stage`")

    @pytest.fixture
    def model_stage(self, stage: AgentStage) -> AgentStage:
        """Return the stage of an agent with a model."""
        if not self.asks_model:
            pytest.skip("this agent asks no model")
        return stage

    # --- every agent

    def test_it_has_a_name(self, stage: AgentStage) -> None:
        agent = stage.agent()

        assert agent.name
        assert agent.name == agent.name.strip()
        assert agent.model is None or agent.model

    def test_a_turn_ends_with_an_answer(self, stage: AgentStage) -> None:
        played = asyncio.run(perform(stage.agent(_TALK), turn_of("hello")))

        assert faults_of_turn(played) == []
        assert (played.error, bool(played.answer)) == (None, True)
        assert not played.steps[-1].tool_calls

    @pytest.mark.parametrize("text", _ODD)
    def test_it_answers_to_whatever_is_said(self, stage: AgentStage, text: str) -> None:
        played = asyncio.run(perform(stage.agent(_TALK), turn_of(text)))

        assert faults_of_turn(played) == []
        assert (played.error, bool(played.answer)) == (None, True)

    def test_the_past_is_read_off_the_event_loop(self, stage: AgentStage) -> None:
        history = ShyHistory()

        asyncio.run(perform(stage.agent(_TALK), turn_of("hello", history=history)))

        assert history.read_on_loop == []

    def test_a_second_run_is_as_if_it_were_the_first(self, stage: AgentStage) -> None:
        agent = stage.agent(_TALK, _TALK)

        first = asyncio.run(perform(agent, turn_of("my number is 4711")))
        second = asyncio.run(perform(agent, turn_of("hello")))
        alone = asyncio.run(perform(stage.agent(_TALK), turn_of("hello")))

        assert first.error is None
        assert _said(second) == _said(alone)

    def test_two_runs_at_a_time_do_not_mix(self, stage: AgentStage) -> None:
        async def together() -> tuple[Performance, Performance]:
            agent = stage.agent(_TALK, _TALK)
            one, other = await asyncio.gather(
                perform(agent, turn_of("about zebras")), perform(agent, turn_of("about giraffes"))
            )
            return one, other

        for played, text in zip(asyncio.run(together()), ("about zebras", "about giraffes"), strict=True):
            alone = asyncio.run(perform(stage.agent(_TALK), turn_of(text)))
            assert faults_of_turn(played) == []
            assert _said(played) == _said(alone)

    def test_a_run_that_was_given_up_leaves_the_next_one_alone(self, stage: AgentStage) -> None:
        agent = stage.agent(_TALK, _TALK)

        asyncio.run(perform(agent, turn_of("my number is 4711"), heard=lambda _event: True))
        played = asyncio.run(perform(agent, turn_of("hello")))

        assert _said(played) == _said(asyncio.run(perform(stage.agent(_TALK), turn_of("hello"))))

    def test_a_turn_leaves_no_task_behind(self, stage: AgentStage) -> None:
        async def left() -> int:
            await perform(stage.agent(_TALK), turn_of("hello"))
            return len(asyncio.all_tasks()) - 1

        assert asyncio.run(left()) == 0

    # --- with a model

    def test_the_answer_is_what_the_model_says_and_what_was_shown(self, model_stage: AgentStage) -> None:
        played = asyncio.run(perform(model_stage.agent(Says(("It ", "rains", "."))), turn_of("hello")))

        assert played.answer == "It rains."
        assert played.shown in ("", played.answer)

    def test_the_model_is_sent_the_window(self, model_stage: AgentStage) -> None:
        agent = model_stage.agent(Says(("One.",)), Says(("Two.",)))

        first = asyncio.run(perform(agent, turn_of("say one")))
        asyncio.run(perform(agent, turn_of("say two", before=first.rows())))

        texts = "\n".join(model_stage.sent()[-1])
        places = [texts.find(words) for words in ("say one", "One.", "say two")]
        assert -1 not in places
        assert places == sorted(places)

    def test_the_same_turn_makes_the_same_prompt(self, model_stage: AgentStage) -> None:
        agent = model_stage.agent(_TALK, _TALK)
        tools = [FakeTool("b"), FakeTool("a", effect="write"), FakeTool("c")]

        asyncio.run(perform(agent, turn_of("hello", tools=tools)))
        asyncio.run(perform(agent, turn_of("hello", tools=reversed(tools))))

        first, second = model_stage.sent()
        assert list(first) == list(second)

    def test_usage_is_what_the_model_told(self, model_stage: AgentStage) -> None:
        played = asyncio.run(perform(model_stage.agent(Says(("Hi.",), usage=(1234, 56))), turn_of("hello")))

        assert [(usage.input_tokens, usage.output_tokens) for usage in played.usages] == [(1234, 56)]

    def test_usage_that_was_not_told_is_unknown_and_not_nothing(self, model_stage: AgentStage) -> None:
        played = asyncio.run(perform(model_stage.agent(Says(("Hi.",))), turn_of("hello")))

        told = {(usage.input_tokens, usage.output_tokens, usage.estimated_cost_usd) for usage in played.usages}
        assert told <= {(None, None, None)}

    @pytest.mark.parametrize("pieces", [(), ("It ra",)])
    def test_a_model_that_fails_is_one_error_behind_what_was_shown(
        self, model_stage: AgentStage, pieces: tuple[str, ...]
    ) -> None:
        played = asyncio.run(perform(model_stage.agent(Breaks(pieces)), turn_of("hello")))

        assert faults_of_turn(played) == []
        assert str(played.error or "").strip()
        assert played.shown == "" or played.steps[-1].content.startswith(played.shown)

    def test_a_failure_behind_a_tool_keeps_what_was_done(self, model_stage: AgentStage) -> None:
        if not self.calls_tools:
            pytest.skip("this agent calls no tools")
        look = FakeTool("look", "wet")

        played = asyncio.run(
            perform(model_stage.agent(Asks((("look", "{}", "c1"),)), Breaks()), turn_of("go", tools=(look,)))
        )

        assert played.error is not None
        assert [result.content for result in played.results] == ["wet"]
        assert len(look.calls) == 1

    def test_a_failed_turn_leaves_the_next_one_alone(self, model_stage: AgentStage) -> None:
        agent = model_stage.agent(Breaks(("It ra",)), Says(("Dry.",)))

        failed = asyncio.run(perform(agent, turn_of("hello")))
        played = asyncio.run(perform(agent, turn_of("again")))

        assert failed.error is not None
        assert (played.error, played.answer, faults_of_turn(played)) == (None, "Dry.", [])

    def test_a_model_that_stands_is_left_at_once_when_the_turn_is_cancelled(self, model_stage: AgentStage) -> None:
        async def cancelled() -> None:
            shown = asyncio.Event()
            agent = model_stage.agent(Stands(("It ",)))
            await cancel_when(agent, turn_of("hello"), shown, heard=lambda event: _set(shown, event))

        asyncio.run(cancelled())


def _set(shown: asyncio.Event, event: object) -> bool:
    if isinstance(event, TextDelta):
        shown.set()
    return False


def _said(played: Performance) -> tuple[str, str]:
    """Return how a turn went, without what differs from run to run."""
    return played.answer, type(played.error).__name__
