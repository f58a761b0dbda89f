"""What is stored when: accept, begin, each step before the agent goes on, one finish."""

from __future__ import annotations

import asyncio

import attrs
import pytest

from hermes_hookspecs.errors import IllegalMessage, InboxOverflow, SessionNotFound
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.messages import INTERRUPTED_RESULT, NOT_BEGUN_RESULT, ToolCall
from hermes_hookspecs.ports.agent import AssistantStep, Progress, TextDelta, ToolResult, UsageReport
from hermes_hookspecs.principal import operator
from hermes_hookspecs.turns import Usage


def calling(*names):
    return AssistantStep(tool_calls=tuple(ToolCall(id=name, name=f"tool-{name}") for name in names))


def test_a_plain_turn_is_three_transactions(bench):
    work = bench()

    result = asyncio.run(work.ask("hello"))

    assert result.text == "heard hello"
    assert work.store.written == ["Accept", "Begin", "Finish"]
    assert work.rows(result.entry) == [("user", "hello"), ("assistant", "heard hello")]
    assert result.turn.outcome == "done"
    assert work.lease(result.entry).holder is None
    assert work.item(1).status == "done"


def test_a_step_with_calls_and_each_result_is_stored_before_the_agent_goes_on(bench):
    work = bench()
    entry = work.enter()
    seen = []

    async def agent(turn):
        seen.append(work.rows(entry)[-1])
        yield calling("a", "b")
        seen.append(work.rows(entry)[-1])
        yield ToolResult(call_id="a", name="tool-a", content="one")
        seen.append(work.rows(entry)[-1])
        yield ToolResult(call_id="b", name="tool-b", content="two")
        seen.append(work.rows(entry)[-1])
        yield AssistantStep(content="both")
        seen.append(work.rows(entry)[-1])

    result = asyncio.run(work.ask("go", agent))

    assert seen == [("user", "go"), ("assistant", ""), ("tool", "one"), ("tool", "two"), ("tool", "two")]
    assert work.store.written == ["Accept", "Begin", "Append", "Append", "Append", "Finish"]
    assert work.rows(entry)[-1] == ("assistant", "both")
    assert result.text == "both"


def test_an_answer_is_stored_when_more_of_the_answer_is_written(bench):
    work = bench()
    entry = work.enter()
    seen = []

    async def agent(turn):
        yield AssistantStep(content="first")
        yield TextDelta(text="sec")
        seen.append(work.rows(entry)[-1])
        yield AssistantStep(content="second")

    result = asyncio.run(work.ask("go", agent))

    assert seen == [("assistant", "first")]
    assert result.text == "second"


def test_words_beside_a_call_are_not_the_answer(bench):
    async def agent(turn):
        yield attrs.evolve(calling("a"), content="let me look")
        yield ToolResult(call_id="a", name="tool-a", content="nothing")

    result = asyncio.run(bench().ask("go", agent))

    assert result.text == ""


def test_a_call_that_is_never_answered_gets_a_synthetic_result_at_the_end(bench):
    work = bench()

    async def agent(turn):
        yield calling("a")
        yield AssistantStep(content="never mind")

    result = asyncio.run(work.ask("go", agent))

    assert work.rows(result.entry)[-2:] == [("tool", INTERRUPTED_RESULT), ("assistant", "never mind")]


def test_a_call_that_waited_for_one_before_it_is_told_as_not_begun(bench):
    work = bench()

    async def agent(turn):
        step = calling("a", "b", "c")
        in_order = tuple(attrs.evolve(call, in_order=True) for call in step.tool_calls)
        yield attrs.evolve(step, tool_calls=in_order)
        yield ToolResult(call_id="a", name="tool-a", content="done")
        yield AssistantStep(content="never mind")

    result = asyncio.run(work.ask("go", agent))

    told = [content for role, content in work.rows(result.entry) if role == "tool"]
    assert told == ["done", INTERRUPTED_RESULT, NOT_BEGUN_RESULT]


@pytest.mark.parametrize(
    "steps",
    [
        [ToolResult(call_id="a", name="tool-a", content="unasked")],
        [calling("a"), ToolResult(call_id="a", name="t", content="1"), ToolResult(call_id="a", name="t", content="2")],
        [calling("a", "a")],
    ],
    ids=["result without a call", "second result", "one id twice"],
)
def test_an_illegal_step_fails_the_turn_and_leaves_a_legal_transcript(bench, steps):
    work = bench()
    entry = work.enter()

    async def agent(turn):
        for step in steps:
            yield step

    with pytest.raises(IllegalMessage) as caught:
        asyncio.run(work.ask("go", agent))

    (turn,) = work.turns(entry)
    assert turn.outcome == "failed"
    assert work.rows(entry)[-1][1] == f"[The answer failed: {caught.value}]"
    assert work.lease(entry).holder is None
    assert asyncio.run(work.ask("again")).text == "heard again"


def test_what_is_no_event_fails_the_turn(bench):
    async def agent(turn):
        yield "text"

    with pytest.raises(Exception, match="an agent yields its events, not str"):
        asyncio.run(bench().ask("go", agent))


def test_every_event_is_told_in_order_after_it_is_stored(bench):
    work = bench()
    entry = work.enter()
    told = []

    async def agent(turn):
        yield Progress(label="looking")
        yield TextDelta(text="do")
        yield calling("a")
        yield ToolResult(call_id="a", name="tool-a", content="x")
        yield AssistantStep(content="done")

    asyncio.run(
        work.ask("go", agent, on_event=lambda event: told.append((type(event).__name__, len(work.rows(entry)))))
    )

    assert told == [("Progress", 1), ("TextDelta", 1), ("AssistantStep", 2), ("ToolResult", 3), ("AssistantStep", 3)]


def test_usage_is_summed_and_what_nobody_reported_stays_unknown(bench):
    async def agent(turn):
        yield UsageReport(usage=Usage(model="m1", input_tokens=3))
        yield UsageReport(usage=Usage(model="m2", input_tokens=4, output_tokens=2))
        yield AssistantStep(content="ok")

    work = bench()
    result = asyncio.run(work.ask("go", agent))

    assert result.usage == Usage(model="m2", input_tokens=7, output_tokens=2)
    assert [one.usage.input_tokens for one in work.app.store.usage(result.turn.id)] == [3, 4]
    session = work.app.store.session(result.entry.session_id, operator())
    assert (session.input_tokens, session.output_tokens, session.cache_read_tokens) == (7, 2, None)


def test_the_result_names_the_session_its_version_and_its_last_activity(bench, clock):
    work = bench(clock=clock)
    entry = work.enter()
    clock.advance(60)

    result = asyncio.run(work.ask("hello", entry=entry))

    lineage = work.app.store.lineage(entry.lineage_id, operator())
    assert result.entry.version == lineage.version
    assert result.entry.updated_at == lineage.last_activity == clock.now()
    assert not result.entry.created
    assert result.usage is None


def test_the_first_turn_freezes_system_text_and_model_and_no_later_turn_asks_again(bench):
    asked = []

    class Parts:
        @hookimpl
        def hermes_system_prompt_parts(self, entry):
            asked.append(entry.session_id)
            return ["Be kind.", f"Part {len(asked)}."]

    work = bench(plugins=[Parts()])
    windows = []

    def agent(turn):
        windows.append([(row.role, row.content) for row in turn.messages])
        return "ok"

    first = asyncio.run(work.ask("one", agent))
    asyncio.run(work.ask("two", agent))

    assert asked == [first.entry.session_id]
    assert windows[0] == [("system", "Be kind.\n\nPart 1."), ("user", "one")]
    assert windows[1] == [*windows[0], ("assistant", "ok"), ("user", "two")]
    assert work.app.store.session(first.entry.session_id, operator()).model == "agent"


def test_a_full_queue_refuses_the_message_visibly(bench, elsewhere):
    work = bench(max_waiting=1)
    entry = work.enter()
    work.leave_a_row(entry, **elsewhere)

    with pytest.raises(InboxOverflow, match="1 messages wait already") as caught:
        asyncio.run(work.ask("one too many", entry=entry))

    work.app.hooks.flush()
    assert caught.value.exit_code == 75
    assert work.ear.told("after_inbox_overflow") == [{"session_key": entry.session_key, "waiting": 1}]
    assert work.item(2) is None


def test_nobody_speaks_in_a_session_that_is_not_theirs(bench):
    work = bench()
    theirs = work.enter(work.source("oc_2", user_id="ou_2"))

    with pytest.raises(SessionNotFound):
        asyncio.run(work.ask("let me in", entry=theirs))

    assert work.store.written == []
    assert work.rows(theirs) == []


def test_a_session_that_is_gone_takes_no_message(bench):
    work = bench()
    entry = work.enter()
    work.app.delete_session(entry.lineage_id)

    with pytest.raises(SessionNotFound):
        asyncio.run(work.ask("anybody?", entry=entry))

    assert work.store.written == []


@pytest.mark.parametrize("missing", ["waiter", "lineage_id"])
def test_a_message_that_waits_names_its_waiter_and_its_lineage(bench, missing):
    work = bench()
    request = work.request()
    request = attrs.evolve(request, draft=attrs.evolve(request.draft, **{missing: None}))

    with pytest.raises(ValueError, match="names its waiter and its lineage"):
        asyncio.run(work.engine.run(request))
