"""Agents that do what no agent should: they raise anything, yield anything, and do not end when they are told to."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from decimal import Decimal
from threading import Thread

import pytest

from hermes_hookspecs.errors import AgentFailed, IllegalMessage, LeaseLost
from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.messages import INTERRUPTED_RESULT, ToolCall
from hermes_hookspecs.operations import Revoke
from hermes_hookspecs.ports.agent import AssistantStep, Progress, TextDelta, ToolResult, UsageReport
from hermes_hookspecs.ports.platform import ServedEntrance
from hermes_hookspecs.source import Entrance, SessionSource
from hermes_hookspecs.testing.agents import FakeTool
from hermes_hookspecs.testing.platform import RecordingSender
from hermes_hookspecs.toolbox import Toolbox
from hermes_hookspecs.turns import Usage

PATIENCE_S = 20
CALL = AssistantStep(tool_calls=(ToolCall(id="a", name="tool-a"),))


class Odd(BaseException):
    """What no ``except Exception`` catches."""


class Stubborn:
    """An agent that goes on waiting whatever is thrown into it; ``let_go`` ends it, ``gone`` says that it has."""

    name, model = "stubborn", None

    def __init__(self, first=()):
        self.first = first
        self.running, self.let_go, self.gone = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def run(self, turn):
        try:
            for event in self.first:
                yield event
            self.running.set()
            await self.hang()
            yield AssistantStep(content="too late")
        finally:
            await self.hang()
            self.gone.set()

    async def hang(self):
        while not self.let_go.is_set():
            with suppress(asyncio.CancelledError):
                await self.let_go.wait()


async def end(agent):
    agent.let_go.set()
    async with asyncio.timeout(PATIENCE_S):
        await agent.gone.wait()


def request(work, agent, text="go"):
    made = work.request(text)
    object.__setattr__(made, "agent", agent)
    return made


def closed(work, entry, outcome):
    """Return the ended turn, after making sure that it ended once and holds nothing."""
    (turn,) = work.turns(entry)
    (told,) = work.told("after_turn_finish")
    assert (told.id, told.outcome, turn.outcome) == (turn.id, outcome, outcome)
    assert work.lease(entry).holder is None
    assert {work.item(number).status for number in turn.inbox_ids} == {"done"}
    return turn


# ------------------------------------------------------------------ agents that do not end


def test_an_agent_that_swallows_its_cancellation_is_given_up_when_its_turn_is_stopped(bench, caplog):
    work = bench(cleanup_s=0.05, renew_s=0.01)
    entry = work.enter()

    async def main():
        agent = Stubborn()
        turn = asyncio.create_task(work.engine.run(request(work, agent)))
        await agent.running.wait()
        work.app.store.apply(Revoke(lineage_id=entry.lineage_id, now=1, reason="taken over"))
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(LeaseLost):
                await turn
            assert not agent.gone.is_set()
            assert (await work.ask("again")).text == "heard again"
        await end(agent)

    asyncio.run(main())

    assert caplog.text.count("agent stubborn does not end") == 1
    assert work.rows(entry)[-2:] == [("user", "again"), ("assistant", "heard again")]


def test_a_cancelled_caller_does_not_wait_for_an_agent_for_ever(bench):
    work = bench(cleanup_s=0.05)
    entry = work.enter()

    async def main():
        agent = Stubborn()
        turn = asyncio.create_task(work.engine.run(request(work, agent)))
        await agent.running.wait()
        turn.cancel()
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(asyncio.CancelledError):
                await turn
        await end(agent)

    asyncio.run(main())

    assert closed(work, entry, "stopped").reason == "cancelled"


def test_an_agent_that_swallows_the_limit_of_its_silence_is_given_up(bench):
    work = bench(inactivity_s=0.02, cleanup_s=0.05)
    entry = work.enter()

    async def main():
        agent = Stubborn()
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(AgentFailed, match=r"no sign of life for 0\.02 s"):
                await work.engine.run(request(work, agent))
        await end(agent)

    asyncio.run(main())

    closed(work, entry, "failed")


def test_an_agent_that_never_ends_its_cleaning_up_does_not_hide_why_the_turn_ended(bench):
    work = bench(cleanup_s=0.05)
    entry = work.enter()

    async def main():
        agent = Stubborn([ToolResult(call_id="unasked", name="t", content="")])
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(IllegalMessage, match="unasked"):
                await work.engine.run(request(work, agent))
        await end(agent)

    asyncio.run(main())

    assert "unasked" in closed(work, entry, "failed").reason


def test_an_answer_counts_although_the_agent_does_not_end_its_cleaning_up(bench):
    class Lazy(Stubborn):
        """An iterator whose ``aclose`` hangs behind the last event."""

        def run(self, turn):
            return self

        async def __anext__(self):
            if self.running.is_set():
                raise StopAsyncIteration
            self.running.set()
            return AssistantStep(content="yes")

        async def aclose(self):
            await self.hang()
            self.gone.set()

    work = bench(cleanup_s=0.05)
    entry = work.enter()

    async def main():
        agent = Lazy()
        async with asyncio.timeout(PATIENCE_S):
            assert (await work.engine.run(request(work, agent))).text == "yes"
        await end(agent)

    asyncio.run(main())

    closed(work, entry, "done")


def test_the_lease_is_kept_while_an_agent_cleans_up(bench, wait_until):
    """Else somebody takes the turn for dead meanwhile, and runs it again."""
    work = bench(renew_s=0.01)
    entry = work.enter()

    async def main():
        agent = Stubborn()
        turn = asyncio.create_task(work.engine.run(request(work, agent)))
        await agent.running.wait()
        turn.cancel()
        await asyncio.sleep(0)
        seen = work.lease(entry).renewals
        await wait_until(lambda: work.lease(entry).renewals > seen + 2)
        await end(agent)
        with pytest.raises(asyncio.CancelledError):
            await turn

    asyncio.run(main())

    closed(work, entry, "stopped")


def test_what_an_agent_yields_after_it_was_cancelled_is_thrown_away_and_no_tool_runs(bench):
    work = bench()
    entry = work.enter()
    ran = []

    async def main():
        running = asyncio.Event()

        async def agent(turn):
            running.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                yield CALL
                ran.append("tool")

        turn = work.asking("go", agent)
        await running.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn

    asyncio.run(main())

    closed(work, entry, "stopped")
    assert ran == []
    assert [role for role, _ in work.rows(entry)] == ["user", "assistant"]


def test_an_agent_that_was_given_up_does_not_keep_its_program_from_ending(bench):
    """asyncio.run cancels what still runs, and waited for it for ever."""
    work = bench(inactivity_s=0.02, cleanup_s=0.02)
    work.enter()
    ended = []

    def program():
        with pytest.raises(AgentFailed):
            asyncio.run(work.engine.run(request(work, Stubborn())))
        ended.append(True)

    thread = Thread(target=program, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)

    assert ended == [True]


@pytest.mark.parametrize("how", ["/stop", "leaving"])
def test_a_stubborn_agent_holds_no_place_of_the_turns_that_run_and_nobody_up_who_leaves(profile, how):
    app = profile(
        {
            "inbox.batch_window_s": 0.0,
            "session_reset.cleanup_timeout_s": 0.05,
            "turns.parallel": 1,
            "turns.drain_s": 0.0,
            "turns.lease_renew_s": 0.5,
        }
    )
    sender = RecordingSender()

    class Once(Stubborn):
        async def run(self, turn):
            if turn.text != "hang":
                yield AssistantStep(content=f"heard {turn.text}")
                return
            async for event in super().run(turn):
                yield event

    def event(text, chat):
        source = SessionSource(platform="feishu", chat_id=chat, user_id="ou_1")
        return MessageEvent(source=source, text=text, identities=(text,), received_at=app.clock.now())

    async def main():
        agent = Once()
        await app.accept([event("hang", "oc_1")])
        served = [ServedEntrance(entrance=Entrance("feishu"), sender=sender)]
        work = asyncio.create_task(app.work(served, agent=agent))
        await agent.running.wait()
        await app.accept([event("hello", "oc_2")])
        if how == "/stop":
            await app.accept([event("/stop", "oc_1")])
            while "heard hello" not in sender.texts():  # noqa: ASYNC110 - the platform has no event
                await asyncio.sleep(0.002)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        await end(agent)

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


# ------------------------------------------------------------------ agents that raise anything


@pytest.mark.parametrize("fault", [SystemExit(3), GeneratorExit(), Odd("x")], ids=lambda fault: type(fault).__name__)
@pytest.mark.parametrize("where", ["run", "step", "coroutine"])
def test_whatever_an_agent_raises_fails_its_turn_and_nothing_else(bench, fault, where):
    work = bench()
    entry = work.enter()

    class Broken:
        name, model = "broken", None

        def run(self, turn):
            raise fault

    async def steps(turn):
        yield Progress(label="on it")
        raise fault

    async def coroutine(turn):
        raise fault

    asked = request(work, Broken()) if where == "run" else None
    agent = {"step": steps, "coroutine": coroutine}.get(where)

    async def main():
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(AgentFailed) as caught:
                await (work.engine.run(asked) if asked else work.ask("go", agent))
            assert caught.value.__cause__ is fault

    asyncio.run(main())

    assert closed(work, entry, "failed").reason.startswith(f"an error in its code ({type(fault).__name__}")


@pytest.mark.parametrize(
    "fault",
    [SystemExit(3), Odd("x"), GeneratorExit(), StopIteration("empty"), KeyboardInterrupt()],
    ids=lambda fault: type(fault).__name__,
)
def test_a_function_on_a_thread_may_raise_what_no_future_carries(bench, fault):
    work = bench(inactivity_s=1.0)
    entry = work.enter()

    def agent(turn):
        raise fault

    with pytest.raises(AgentFailed):
        asyncio.run(work.ask("go", agent))

    assert type(fault).__name__ in closed(work, entry, "failed").reason


def test_the_interrupt_of_a_person_is_no_fault_of_the_agent(bench):
    work = bench()
    entry = work.enter()

    async def agent(turn):
        yield Progress(label="on it")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(work.ask("go", agent))

    assert "failed" not in {turn.outcome for turn in work.turns(entry)}


@pytest.mark.parametrize("fault", [SystemExit(3), GeneratorExit(), Odd("x")], ids=lambda fault: type(fault).__name__)
def test_whatever_an_agent_raises_while_it_is_closed_changes_nothing(bench, fault, caplog):
    class Closing:
        name, model = "closing", None

        def run(self, turn):
            return self

        async def __anext__(self):
            raise StopAsyncIteration

        async def aclose(self):
            raise fault

    work = bench()
    entry = work.enter()

    asyncio.run(work.engine.run(request(work, Closing())))

    closed(work, entry, "done")
    assert "agent closing failed while it was closed" in caplog.text


def test_an_agent_that_cancels_its_own_task_fails_and_its_caller_is_not_cancelled(bench):
    work = bench()
    entry = work.enter()

    async def agent(turn):
        asyncio.current_task().cancel()
        yield CALL

    with pytest.raises(AgentFailed, match="cancelled its own task"):
        asyncio.run(work.ask("go", agent))

    closed(work, entry, "failed")


def test_a_tool_that_ends_the_program_fails_its_call_and_not_the_program(bench):
    work = bench()
    tools = [FakeTool("look", lambda arguments: sys.exit(1)), FakeTool("listen")]

    async def agent(turn):
        calls = tuple(ToolCall(id=tool.name, name=tool.name, effect="read") for tool in tools)
        yield AssistantStep(tool_calls=calls)
        results = [one async for one in Toolbox(turn).run(calls)]
        for result in results:
            yield result
        yield AssistantStep(content=", ".join(sorted(result.content for result in results)))

    result = asyncio.run(work.ask("go", agent, tools={tool.name: tool for tool in tools}))

    assert result.text == "42, Error: look failed: SystemExit: 1"


# ------------------------------------------------------------------ agents that yield anything


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        ("text", "an agent yields its events, not str"),
        (None, "an agent yields its events, not NoneType"),
        (TextDelta(text=None), "TextDelta.text must be a text, not this NoneType"),
        (Progress(label=7), "Progress.label must be a text, not this int"),
        (AssistantStep(content=None), "AssistantStep.content must be a text"),
        (AssistantStep(content=12), "AssistantStep.content must be a text"),
        (AssistantStep(reasoning={"a": 1}), "AssistantStep.reasoning must be a text or None, not this dict"),
        (AssistantStep(finish_reason=3), "AssistantStep.finish_reason must be a text or None"),
        (AssistantStep(token_count="7x"), "AssistantStep.token_count must be a whole number"),
        (AssistantStep(token_count=2**70), "AssistantStep.token_count must be a whole number"),
        (AssistantStep(token_count=True), "AssistantStep.token_count must be a whole number"),
        (AssistantStep(token_count=-1), "AssistantStep.token_count must be a whole number"),
        (AssistantStep(tool_calls=("x",)), "AssistantStep.tool_calls must be a tuple of ToolCall"),
        (AssistantStep(tool_calls="x"), "AssistantStep.tool_calls must be a tuple of ToolCall"),
        (AssistantStep(tool_calls=(ToolCall(id=1, name="t"),)), "ToolCall.id must be a text"),
        (AssistantStep(tool_calls=(ToolCall(id="a", name=None),)), "ToolCall.name must be a text"),
        (AssistantStep(tool_calls=(ToolCall(id="a", name="t", arguments={}),)), "ToolCall.arguments must be a text"),
        (AssistantStep(tool_calls=(ToolCall(id="a", name="t", effect=None),)), "ToolCall.effect must be a text"),
        (ToolResult(call_id=1, name="t", content=""), "ToolResult.call_id must be a text"),
        (ToolResult(call_id="a", name=None, content=""), "ToolResult.name must be a text"),
        (ToolResult(call_id="a", name="t", content=None), "ToolResult.content must be a text"),
        (ToolResult(call_id="a", name="t", content="", token_count=0.5), "ToolResult.token_count must be a whole"),
        (UsageReport(usage=None), "UsageReport.usage must be a Usage, not this NoneType"),
        (UsageReport(usage=Usage(model=5)), "Usage.model must be a text or None"),
        (UsageReport(usage=Usage(input_tokens=2**63)), "Usage.input_tokens must be a whole number"),
        (UsageReport(usage=Usage(output_tokens="many")), "Usage.output_tokens must be a whole number"),
        (UsageReport(usage=Usage(cache_read_tokens=1.5)), "Usage.cache_read_tokens must be a whole number"),
        (UsageReport(usage=Usage(cache_write_tokens=-3)), "Usage.cache_write_tokens must be a whole number"),
        (UsageReport(usage=Usage(estimated_cost_usd=Decimal("0.1"))), "Usage.estimated_cost_usd must be a finite"),
        (UsageReport(usage=Usage(estimated_cost_usd=float("nan"))), "Usage.estimated_cost_usd must be a finite"),
        (UsageReport(usage=Usage(estimated_cost_usd=10**400)), "Usage.estimated_cost_usd must be a finite"),
    ],
    ids=str,
)
def test_a_value_that_cannot_be_stored_is_refused_by_the_name_of_its_field(bench, event, reason):
    work = bench()
    entry = work.enter()
    went_on = []

    async def agent(turn):
        yield UsageReport(usage=Usage(input_tokens=3))
        yield AssistantStep(content="so far")
        yield event
        went_on.append(True)

    with pytest.raises(AgentFailed) as caught:
        asyncio.run(work.ask("go", agent))

    assert reason in str(caught.value)
    turn = closed(work, entry, "failed")
    assert reason in turn.reason
    assert [one.usage.input_tokens for one in work.app.store.usage(turn.id)] == [3]
    assert work.rows(entry)[1:] == [("assistant", "so far"), ("assistant", f"[The answer failed: {turn.reason}]")]
    assert went_on == []


def test_values_that_can_be_stored_are_taken_as_they_are(bench):
    work = bench()

    async def agent(turn):
        yield AssistantStep(tool_calls=[ToolCall(id="a", name="t")], token_count=0, reasoning="", finish_reason="x")
        yield ToolResult(call_id="a", name="t", content="", token_count=2**53)
        yield UsageReport(usage=Usage(input_tokens=0, output_tokens=2**53, estimated_cost_usd=1))
        yield AssistantStep(content="h\0i\ud800")

    result = asyncio.run(work.ask("go", agent))

    assert result.turn.outcome == "done"
    assert (result.usage.output_tokens, result.usage.estimated_cost_usd) == (2**53, 1)


def test_an_end_that_cannot_be_written_with_what_the_turn_brought_along_is_written_without_it(bench, caplog):
    """Else the lease stands for one ttl, and the agent runs again and again for one message."""
    work = bench()
    entry = work.enter()
    work.store.failing["Finish"] = [OverflowError("int too big to convert") for _ in range(2)]

    async def agent(turn):
        yield CALL
        yield UsageReport(usage=Usage(input_tokens=3))
        yield AssistantStep(content="done")

    with pytest.raises(AgentFailed, match="int too big"):
        asyncio.run(work.ask("go", agent))

    turn = closed(work, entry, "failed")
    assert work.rows(entry)[1:] == [
        ("assistant", ""),
        ("tool", INTERRUPTED_RESULT),
        ("assistant", "[The answer failed: an error in its code (OverflowError: int too big to convert)]"),
    ]
    assert work.app.store.usage(turn.id) == ()
    assert "ends without its last rows and usage" in caplog.text
