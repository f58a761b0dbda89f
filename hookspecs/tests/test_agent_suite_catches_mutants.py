"""The suite of agents catches what it is there for: each planted fault fails the test that is about it."""

from __future__ import annotations

import asyncio
import time

import attrs
import pytest

from hermes_hookspecs.messages import ToolCall
from hermes_hookspecs.ports.agent import AssistantStep, Progress, TextDelta, ToolResult, UsageReport
from hermes_hookspecs.testing import agent_stage as kit
from hermes_hookspecs.testing.agent_stage import Alone, Asks, Breaks, Stands
from hermes_hookspecs.testing.agent_suite import AgentSuite
from hermes_hookspecs.toolbox import AskedCall, Toolbox
from hermes_hookspecs.turns import Usage


class Model:
    """Does what a test says, and writes down what it was asked."""

    def __init__(self, moves):
        self.moves = list(moves)
        self.asked = []

    def ask(self, parts):
        self.asked.append([str(part) for part in parts])
        return self.moves.pop(0)


class Good:
    """An agent as it should be, over a model in memory."""

    name = "good"
    model = "fake-1"
    steers = True

    def __init__(self, model, most_requests):
        self._model = model
        self._most_requests = most_requests or 50

    async def run(self, turn):
        box = self.box(turn)
        parts = [self.tools(box), *map(self.part, turn.messages)]
        for number in range(1, self._most_requests + 1):
            move = self._model.ask(parts)
            await asyncio.sleep(0)
            if not isinstance(move, Asks):
                async for event in self.said(move):
                    yield event
                return
            if number == self._most_requests:
                break
            calls = self.calls(box, move)
            yield self.step(move, calls)
            parts.append(("assistant", move.text, tuple((call.id, call.name, call.arguments) for call in calls)))
            async for result in self.results(box, calls):
                yield result
                parts.append(("tool", result.content, (result.call_id,)))
            if steered := box.steered():
                parts.append(("user", steered, ()))
        yield self.limit(move, box)

    def box(self, turn):
        return Toolbox(turn)

    def tools(self, box):
        return [(tool.name, tool.parameters) for tool in box.tools]

    def part(self, row):
        if row.role == "tool":
            return ("tool", row.content, (row.tool_call_id,))
        return (row.role, row.content, tuple((call.id, call.name, call.arguments) for call in row.tool_calls))

    def calls(self, box, move):
        return box.calls(AskedCall(id=call_id, name=name, arguments=text) for name, text, call_id in move.calls)

    def step(self, move, calls):
        return AssistantStep(content=move.text, tool_calls=calls)

    def results(self, box, calls):
        return box.run(calls)

    def limit(self, move, box):
        return AssistantStep(content=f"{move.text}[I stopped here.]", finish_reason="limit")

    async def said(self, move):
        for piece in move.pieces:
            yield TextDelta(text=piece)
        if isinstance(move, Stands):
            await self.stand()
        text = "".join(move.pieces)
        if isinstance(move, Breaks):
            if text:
                yield AssistantStep(content=text, finish_reason="cut")
            raise ConnectionError("the model is gone")
        yield UsageReport(usage=self.usage(move))
        yield AssistantStep(content=text, finish_reason="stop")

    async def stand(self):
        await asyncio.Event().wait()

    def usage(self, move):
        given = move.usage or (None, None)
        return Usage(model=self.model, input_tokens=given[0], output_tokens=given[1])


class Stage:
    def __init__(self, kind):
        self._kind = kind

    def agent(self, *moves, most_requests=None):
        self._model = Model(moves)
        return self._kind(self._model, most_requests)

    def sent(self):
        return self._model.asked


class TestGood(AgentSuite):
    @pytest.fixture
    def stage(self):
        return Stage(Good)


class TestAlone(AgentSuite):
    """One that answers without a model is an agent, too."""

    asks_model = calls_tools = False

    @pytest.fixture
    def stage(self):
        class Mirror:
            name = "mirror"
            model = None

            async def run(self, turn):
                yield AssistantStep(content=f"You say: {turn.text}")

        return Alone(Mirror)


# ------------------------------------------------------------------ faults


class Nameless(Good):
    name = " "


class Silent(Good):
    async def said(self, move):
        yield Progress(label="thinking")


class Untyped(Good):
    async def said(self, move):
        yield "".join(move.pieces)


class OtherWords(Good):
    async def said(self, move):
        yield TextDelta(text="Hm")
        yield AssistantStep(content="".join(move.pieces))


class Fragile(Good):
    def part(self, row):
        return (row.role, row.content.encode("utf-8"), ())


class OnTheLoop(Good):
    async def run(self, turn):
        turn.history.recent()
        async for event in super().run(turn):
            yield event


class Remembering(Good):
    """Keeps what it said where the next run finds it."""

    def __init__(self, model, most_requests):
        super().__init__(model, most_requests)
        self.text = ""

    async def said(self, move):
        for piece in move.pieces:
            self.text += piece
            await asyncio.sleep(0)
        yield AssistantStep(content=self.text)


class OneAtATime(Good):
    """Keeps what it works on where another run finds it."""

    async def said(self, move):
        self.text = ""
        for piece in move.pieces:
            self.text += piece
            await asyncio.sleep(0)
        yield AssistantStep(content=self.text)


class Littering(Good):
    async def said(self, move):
        self.task = asyncio.create_task(asyncio.sleep(3600))
        async for event in super().said(move):
            yield event


class Forgetful(Good):
    def part(self, row):
        return (row.role, "" if row.role == "assistant" else row.content, ())


class AsFound(Good):
    def tools(self, box):
        return list(box._tools)


class Inventive(Good):
    def usage(self, move):
        given = move.usage or (0, 0)
        return Usage(input_tokens=given[0], output_tokens=given[1], estimated_cost_usd=0.0)


class Blind(Good):
    def usage(self, move):
        return Usage(input_tokens=1, output_tokens=1)


class Swallowing(Good):
    async def said(self, move):
        for piece in move.pieces:
            yield TextDelta(text=piece)
        yield AssistantStep(content="".join(move.pieces) or "Sorry.")


class Losing(Good):
    async def said(self, move):
        for piece in move.pieces:
            yield TextDelta(text=piece)
        if isinstance(move, Breaks):
            raise ConnectionError("the model is gone")


class Clinging(Good):
    async def stand(self):
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if asyncio.current_task().cancelling() > 1:
                    raise


class Eager(Good):
    """Runs its tools before their calls are stored."""

    async def run(self, turn):
        move = self._model.ask([])
        box = self.box(turn)
        calls = self.calls(box, move)
        results = [result async for result in box.run(calls)]
        yield self.step(move, calls)
        for result in results:
            yield result
        yield AssistantStep(content="Done.")


class OnlyTheFirst(Good):
    def results(self, box, calls):
        return box.run(calls[:1])


class AllAtOnce(Good):
    async def results(self, box, calls):
        for result in [result async for result in box.run(calls)]:
            yield result


class Parallel(Good):
    async def results(self, box, calls):
        async def one(call):
            return [result async for result in box.run([call])]

        for results in await asyncio.gather(*map(one, calls)):
            yield results[0]


class Shielding(Good):
    """Lets its tools run on when it is told to end."""

    async def results(self, box, calls):
        async def all_of_them():
            return [result async for result in box.run(calls)]

        for result in await asyncio.shield(asyncio.create_task(all_of_them())):
            yield result


class SameIds(Good):
    def calls(self, box, move):
        return tuple(ToolCall(id=call_id, name=name, arguments=text) for name, text, call_id in move.calls)


class Harmless(Good):
    """Says of each call that it only reads."""

    def calls(self, box, move):
        return tuple(attrs.evolve(call, effect="read") for call in super().calls(box, move))


class Bold(Good):
    """Asks nobody."""

    async def results(self, box, calls):
        for call in calls:
            answer = await box._tools[call.name].call({}, box._turn)
            yield ToolResult(call_id=call.id, name=call.name, content=answer)


class Deaf(Good):
    async def run(self, turn):
        async for event in super().run(turn):
            yield event
            if isinstance(event, AssistantStep) and event.tool_calls and turn.steering is not None:
                turn.steering.take()  # at the call, and to no end


class Endless(Good):
    def __init__(self, model, most_requests):
        super().__init__(model, None)


class Breathless(Good):
    def limit(self, move, box):
        raise RuntimeError("too many requests")


class Keeping(Good):
    """Keeps the files of its tools for itself."""

    async def results(self, box, calls):
        async for result in box.run(calls):
            yield attrs.evolve(result, files=())


class Clock(Good):
    def part(self, row):
        return (row.role, f"{time.perf_counter_ns()} {row.content}", ())


@pytest.mark.parametrize(
    ("mutant", "law"),
    [
        (Nameless, "test_it_has_a_name"),
        (Silent, "test_a_turn_ends_with_an_answer"),
        (Untyped, "test_a_turn_ends_with_an_answer"),
        (OtherWords, "test_a_turn_ends_with_an_answer"),
        (Fragile, "test_it_answers_to_whatever_is_said"),
        (OnTheLoop, "test_the_past_is_read_off_the_event_loop"),
        (Remembering, "test_a_second_run_is_as_if_it_were_the_first"),
        (Remembering, "test_a_run_that_was_given_up_leaves_the_next_one_alone"),
        (OneAtATime, "test_two_runs_at_a_time_do_not_mix"),
        (Littering, "test_a_turn_leaves_no_task_behind"),
        (OtherWords, "test_the_answer_is_what_the_model_says_and_what_was_shown"),
        (Forgetful, "test_the_model_is_sent_the_window"),
        (AsFound, "test_the_same_turn_makes_the_same_prompt"),
        (Blind, "test_usage_is_what_the_model_told"),
        (Inventive, "test_usage_that_was_not_told_is_unknown_and_not_nothing"),
        (Swallowing, "test_a_model_that_fails_is_one_error_behind_what_was_shown"),
        (Losing, "test_a_model_that_fails_is_one_error_behind_what_was_shown"),
        (Swallowing, "test_a_failure_behind_a_tool_keeps_what_was_done"),
        (Remembering, "test_a_failed_turn_leaves_the_next_one_alone"),
        (Clinging, "test_a_model_that_stands_is_left_at_once_when_the_turn_is_cancelled"),
        (SameIds, "test_whatever_is_asked_for_every_call_gets_one_result_before_the_next_step"),
        (OnlyTheFirst, "test_results_are_what_tools_return_and_are_sent"),
        (Bold, "test_a_call_that_goes_wrong_is_answered_and_the_turn_goes_on"),
        (Keeping, "test_files_of_a_tool_are_named_by_its_result"),
        (Eager, "test_no_tool_runs_before_its_call_is_stored"),
        (Eager, "test_nothing_runs_once_the_lease_is_lost_at_the_call"),
        (AllAtOnce, "test_nothing_more_runs_once_the_lease_is_lost_at_a_result"),
        (Parallel, "test_calls_that_change_something_run_one_after_another_in_order"),
        (Shielding, "test_a_tool_that_stands_is_cancelled_with_the_turn"),
        (Bold, "test_a_tool_that_takes_too_long_is_given_up_and_answered"),
        (Bold, "test_a_running_tool_is_progress_within_its_limit"),
        (Bold, "test_a_dangerous_tool_is_not_called_where_nobody_can_be_asked"),
        (Bold, "test_a_person_decides_of_a_dangerous_tool"),
        (Deaf, "test_what_is_said_meanwhile_is_taken_behind_the_results_and_sent"),
        (Endless, "test_a_model_that_asks_for_ever_is_stopped_with_an_answer"),
        (Breathless, "test_a_model_that_asks_for_ever_is_stopped_with_an_answer"),
        (Clock, "test_a_prompt_begins_with_the_one_before_it"),
        (Harmless, "test_whatever_is_asked_for_every_call_gets_one_result_before_the_next_step"),
    ],
)
def test_a_faulty_agent_is_caught(run_suite, monkeypatch, mutant, law):
    monkeypatch.setattr(kit, "PATIENCE_S", 0.5)

    fates = run_suite(SOURCE, only=law, planted_stage=Stage, mutant=mutant)

    assert fates.failed


SOURCE = """
import pytest
from planted import mutant, planted_stage

from hermes_hookspecs.testing.agent_suite import AgentSuite


class TestMutant(AgentSuite):
    @pytest.fixture
    def stage(self):
        return planted_stage(mutant)
"""


def test_the_agent_suite_is_in_the_kit():
    from hermes_hookspecs import testing

    assert testing.AgentSuite is AgentSuite
