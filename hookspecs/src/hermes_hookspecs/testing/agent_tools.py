"""Tools, steering and limits: the part of the suite of agents that is about agents whose model calls tools."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hermes_hookspecs.files import FileResult, OutgoingFile
from hermes_hookspecs.ports.agent import AssistantStep, ToolResult
from hermes_hookspecs.testing import agent_stage
from hermes_hookspecs.testing.agent_order import faults_of_turn
from hermes_hookspecs.testing.agent_stage import Asks, Says, StandingTool, perform, turn_of
from hermes_hookspecs.testing.agents import FakeOutgoing, FakeTool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_hookspecs.messages import ToolCall
    from hermes_hookspecs.ports.agent import Agent, AgentEvent, Tool, TurnContext
    from hermes_hookspecs.testing.agent_stage import AgentStage, Move

__all__ = ["AgentToolLaws"]

quick = settings(
    max_examples=25,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)

_DONE = Says(("Done.",))
_asked = st.tuples(
    st.sampled_from(["look", "send", "dream"]), st.sampled_from(["{}", '{"n": 1}', "no JSON", ""]), st.just("")
)
_ids = st.sampled_from(["", "c1", "c2"])
moves = st.lists(
    st.lists(st.tuples(_asked, _ids), min_size=1, max_size=4).map(
        lambda calls: Asks(tuple((name, arguments, call_id) for (name, arguments, _), call_id in calls))
    ),
    max_size=4,
)
"""What a model asks for in one turn: several calls at a time, unknown tools, broken arguments, ids used again."""


class AgentToolLaws:
    """What an agent does whose model calls tools."""

    calls_tools: ClassVar[bool] = True
    limits_requests: ClassVar[bool] = True

    @pytest.fixture
    def tools_stage(self, stage: AgentStage) -> AgentStage:
        """Return the stage of an agent that calls tools."""
        if not self.calls_tools:
            pytest.skip("this agent calls no tools")
        return stage

    @quick
    @given(asked=moves)
    def test_whatever_is_asked_for_every_call_gets_one_result_before_the_next_step(
        self, tools_stage: AgentStage, asked: list[Asks]
    ) -> None:
        look, send = FakeTool("look"), FakeTool("send", effect="write")

        played = asyncio.run(perform(tools_stage.agent(*asked, _DONE), turn_of("go", tools=(look, send))))

        assert faults_of_turn(played) == []
        assert (played.error, played.answer) == (None, "Done.")
        assert len(played.results) == sum(len(move.calls) for move in asked)

    def test_results_are_what_tools_return_and_are_sent(self, tools_stage: AgentStage) -> None:
        look, send = FakeTool("look", "wet"), FakeTool("send", "sent", effect="write")
        agent = tools_stage.agent(Asks((("send", '{"to": "me"}', "c1"), ("look", "{}", "c2"))), _DONE)

        played = asyncio.run(perform(agent, turn_of("go", tools=(look, send))))

        assert {result.name: result.content for result in played.results} == {"look": "wet", "send": "sent"}
        assert (look.calls, send.calls) == ([{}], [{"to": "me"}])
        _assert_sent(tools_stage, "wet", "sent")

    def test_files_of_a_tool_are_named_by_its_result(self, tools_stage: AgentStage) -> None:
        draw = FakeTool("draw", FileResult(files=(OutgoingFile(name="chart.png", data=b"PNG"),), text="drawn"))
        agent, outgoing = tools_stage.agent(Asks((("draw", "{}", "c1"),)), _DONE), FakeOutgoing()

        played = asyncio.run(perform(agent, turn_of("go", tools=(draw,), outgoing=outgoing)))

        assert [(file.name, file.data) for file in outgoing.added] == [("chart.png", b"PNG")]
        assert [[file.name for file in result.files] for result in played.results] == [["chart.png"]]
        assert "drawn" in played.results[0].content
        assert played.answer == "Done."

    @pytest.mark.parametrize(
        "asked", [("dream", "{}", "c1"), ("look", "no JSON", "c1"), ("look", "[]", "c1"), ("broken", "{}", "c1")]
    )
    def test_a_call_that_goes_wrong_is_answered_and_the_turn_goes_on(
        self, tools_stage: AgentStage, asked: tuple[str, str, str]
    ) -> None:
        look = FakeTool("look")
        broken = FakeTool("broken", _fail)

        played = asyncio.run(perform(tools_stage.agent(Asks((asked,)), _DONE), turn_of("go", tools=(look, broken))))

        assert faults_of_turn(played) == []
        assert (played.error, played.answer, look.calls) == (None, "Done.", [])
        assert [bool(result.content.strip()) for result in played.results] == [True]

    def test_no_tool_runs_before_its_call_is_stored(self, tools_stage: AgentStage) -> None:
        look = FakeTool("look")
        agent = tools_stage.agent(Asks((("look", "{}", "c1"),)), _DONE)
        early: list[int] = []

        asyncio.run(perform(agent, turn_of("go", tools=(look,)), heard=lambda event: _note(early, event, look)))

        assert early == [0]
        assert len(look.calls) == 1

    def test_nothing_runs_once_the_lease_is_lost_at_the_call(self, tools_stage: AgentStage) -> None:
        look = FakeTool("look")
        agent = tools_stage.agent(Asks((("look", "{}", "c1"),)), _DONE)

        asyncio.run(perform(agent, turn_of("go", tools=(look,)), heard=_is_call))

        assert look.calls == []
        assert len(tools_stage.sent()) <= 1

    def test_nothing_more_runs_once_the_lease_is_lost_at_a_result(self, tools_stage: AgentStage) -> None:
        first, second = FakeTool("first", effect="write"), FakeTool("second", effect="write")
        agent = tools_stage.agent(Asks((("first", "{}", "c1"), ("second", "{}", "c2"))), _DONE)

        asyncio.run(perform(agent, turn_of("go", tools=(first, second)), heard=_is_result))

        assert (len(first.calls), second.calls) == (1, [])
        assert len(tools_stage.sent()) <= 1

    def test_calls_that_change_something_run_one_after_another_in_order(self, tools_stage: AgentStage) -> None:
        log: list[str] = []
        names = ("one", "two", "three")
        tools = [_slow(name, log) for name in names]
        agent = tools_stage.agent(Asks(tuple((name, "{}", name) for name in names)), _DONE)

        asyncio.run(perform(agent, turn_of("go", tools=tools)))

        assert log == [word for name in names for word in (f"{name} begins", f"{name} ends")]

    def test_a_tool_that_stands_is_cancelled_with_the_turn(self, tools_stage: AgentStage) -> None:
        async def cancelled() -> tuple[bool, int]:
            tool = StandingTool("wait")
            agent = tools_stage.agent(Asks((("wait", "{}", "c1"),)), _DONE)
            await cancel_when(agent, turn_of("go", tools=(tool,)), tool.reached)
            return tool.was_cancelled, len(tools_stage.sent())

        was_cancelled, requests = asyncio.run(cancelled())

        assert was_cancelled
        assert requests <= 1

    def test_a_tool_that_takes_too_long_is_given_up_and_answered(self, tools_stage: AgentStage) -> None:
        async def given_up() -> tuple[list[str], bool]:
            tool = StandingTool("wait", timeout_s=0.05)
            agent = tools_stage.agent(Asks((("wait", "{}", "c1"),)), _DONE)
            played = await perform(agent, turn_of("go", tools=(tool,)))
            assert played.answer == "Done."
            return faults_of_turn(played), tool.was_cancelled

        assert asyncio.run(given_up()) == ([], True)

    def test_a_running_tool_is_progress_within_its_limit(self, tools_stage: AgentStage) -> None:
        async def allowed() -> list[float]:
            patience, tool = _Patience(), StandingTool("wait", timeout_s=3600.0)
            tool.gate.set()
            agent = tools_stage.agent(Asks((("wait", "{}", "c1"),)), _DONE)
            await perform(agent, turn_of("go", tools=(tool,), patience=patience))
            return patience.allowed

        assert max(asyncio.run(allowed()), default=0) >= 600  # as long as it may take, or as the turn has left

    def test_a_dangerous_tool_is_not_called_where_nobody_can_be_asked(self, tools_stage: AgentStage) -> None:
        tool = _dangerous("launch")
        agent = tools_stage.agent(Asks((("launch", "{}", "c1"),)), _DONE)

        played = asyncio.run(perform(agent, turn_of("go", tools=(tool,))))

        assert tool.calls == []
        assert (faults_of_turn(played), len(played.results), played.answer) == ([], 1, "Done.")

    @pytest.mark.parametrize("refusal", [None, "not today"])
    def test_a_person_decides_of_a_dangerous_tool(self, tools_stage: AgentStage, refusal: str | None) -> None:
        tool, people = _dangerous("launch"), _People(refusal)
        agent = tools_stage.agent(Asks((("launch", '{"n": 1}', "c1"),)), _DONE)

        played = asyncio.run(perform(agent, turn_of("go", tools=(tool,), approvals=people)))

        assert people.asked == ["launch"]
        assert len(tool.calls) == (1 if refusal is None else 0)
        assert refusal is None or refusal in played.results[0].content

    # --- steering

    def test_what_is_said_meanwhile_is_taken_behind_the_results_and_sent(self, tools_stage: AgentStage) -> None:
        agent = tools_stage.agent(Asks((("look", "{}", "c1"), ("look", "{}", "c2"))), _DONE)
        if not getattr(agent, "steers", False):
            pytest.skip("this agent does not steer")
        wheel = _Wheel("rather go to Rome")

        def heard(event: object) -> bool:
            wheel.open += len(event.tool_calls) if isinstance(event, AssistantStep) else 0
            wheel.open -= isinstance(event, ToolResult)
            return False

        played = asyncio.run(perform(agent, turn_of("go", tools=(FakeTool("look"),), steering=wheel), heard=heard))

        assert wheel.taken_at == [0]
        assert played.answer == "Done."
        _assert_sent(tools_stage, "rather go to Rome")

    # --- limits

    def test_a_model_that_asks_for_ever_is_stopped_with_an_answer(self, tools_stage: AgentStage) -> None:
        if not self.limits_requests:
            pytest.skip("this agent has no limit of requests")
        endless: list[Move] = [Asks((("look", "{}", f"c{number}"),)) for number in range(40)]
        look = FakeTool("look")

        played = asyncio.run(perform(tools_stage.agent(*endless, most_requests=3), turn_of("go", tools=(look,))))

        assert faults_of_turn(played) == []
        assert (played.error, bool(played.answer.strip())) == (None, True)
        assert len(look.calls) <= 3
        assert len(tools_stage.sent()) <= 3

    # --- the prefix

    def test_a_prompt_begins_with_the_one_before_it(self, tools_stage: AgentStage) -> None:
        look, send = FakeTool("look"), FakeTool("send", effect="write")
        asks = Asks((("look", "{}", "c1"), ("look", "no JSON", "c2"), ("send", '{"b":1, "a":2}', "c3")), "Let me see.")
        agent = tools_stage.agent(asks, Asks((("dream", "", "c1"),)), Says(("Well", ".")), Says(("Again.",)))

        async def two_turns() -> None:
            first = await perform(agent, turn_of("go", tools=(look, send)))
            await perform(agent, turn_of("again", before=first.rows(), tools=(send, look)))

        asyncio.run(two_turns())

        sent = tools_stage.sent()
        assert len(sent) == 4
        for one, other in pairwise(sent):
            assert list(other[: len(one)]) == list(one)


async def cancel_when(
    agent: Agent,
    turn: TurnContext,
    reached: asyncio.Event,
    *,
    heard: Callable[[AgentEvent], bool] | None = None,
) -> None:
    """Cancel a turn once it stands somewhere. :raises TimeoutError: it does not get there."""
    before = asyncio.all_tasks()
    task = asyncio.create_task(perform(agent, turn, heard=heard))
    async with asyncio.timeout(agent_stage.PATIENCE_S):
        await reached.wait()
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=agent_stage.PATIENCE_S / 2)  # before the turn's own time is over
    assert done, "a turn that is cancelled does not end"
    assert task.cancelled(), "the agent swallowed its cancellation"
    assert asyncio.all_tasks() <= before, "the agent left a task behind"


def _assert_sent(stage: AgentStage, *words: str) -> None:
    newest = "\n".join(stage.sent()[-1])
    for word in words:
        assert word in newest


def _note(early: list[int], event: object, tool: FakeTool) -> bool:
    if _is_call(event):
        early.append(len(tool.calls))
    return False


def _is_call(event: object) -> bool:
    return isinstance(event, AssistantStep) and bool(event.tool_calls)


def _is_result(event: object) -> bool:
    return isinstance(event, ToolResult)


def _fail(_arguments: object) -> str:
    raise RuntimeError("the wire is cut")


def _dangerous(name: str) -> FakeTool:
    tool = FakeTool(name, effect="write")
    tool.dangerous = True  # type: ignore[attr-defined]  # not every tool says so
    return tool


def _slow(name: str, log: list[str]) -> Tool:
    class Slow(StandingTool):
        async def call(self, arguments: object, turn: TurnContext) -> str:
            log.append(f"{name} begins")
            for _ in range(5):
                await asyncio.sleep(0)
            log.append(f"{name} ends")
            return "done"

    return Slow(name)


class _Patience:
    def __init__(self) -> None:
        self.allowed: list[float] = []

    def allow(self, seconds: float) -> None:
        self.allowed.append(seconds)


class _People:
    def __init__(self, refusal: str | None) -> None:
        self.asked: list[str] = []
        self._refusal = refusal

    async def ask(self, call: ToolCall, tool: Tool, turn: TurnContext) -> str | None:
        self.asked.append(call.name)
        return self._refusal


class _Wheel:
    """Holds one text, and notes how many calls were open when it was taken."""

    def __init__(self, text: str) -> None:
        self.open = 0
        self.taken_at: list[int] = []
        self._texts = [text]

    def take(self) -> Sequence[str]:
        texts, self._texts = self._texts, []
        if texts:
            self.taken_at.append(self.open)
        return texts
