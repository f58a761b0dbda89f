"""However a turn ends, it is closed once and told once: failure, cancellation, loss of the lease, silence."""

from __future__ import annotations

import asyncio
import threading

import pytest

from hermes_core.settling import settled
from hermes_hookspecs.errors import (
    AgentFailed,
    HermesError,
    LeaseLost,
    StorageError,
    StoreBusy,
    StoreFull,
    StoreStopped,
)
from hermes_hookspecs.messages import INTERRUPTED_RESULT, ToolCall
from hermes_hookspecs.operations import Revoke
from hermes_hookspecs.ports.agent import AssistantStep, Progress, ToolResult, UsageReport
from hermes_hookspecs.principal import operator
from hermes_hookspecs.turns import Usage

CALL = AssistantStep(tool_calls=(ToolCall(id="a", name="tool-a"),))


def closed_once(work, entry, outcome):
    """Return the ended turn, after making sure that it was started once and finished once."""
    (turn,) = work.turns(entry)
    assert [one.id for one in work.told("after_turn_start")] == [turn.id]
    (told,) = work.told("after_turn_finish")
    assert (told.id, told.outcome, turn.outcome) == (turn.id, outcome, outcome)
    assert work.lease(entry).holder is None
    assert {work.item(number).status for number in turn.inbox_ids} == {"done"}
    return turn


# ------------------------------------------------------------------ failure


def words(fault):
    return f"{type(fault).__name__}: {fault}".removesuffix(": ")


def test_a_failing_agent_closes_the_turn_with_what_it_had_stored(bench):
    work = bench()
    entry = work.enter()

    async def agent(turn):
        yield CALL
        raise ValueError("no\nluck")

    with pytest.raises(AgentFailed, match=r"^agent failed: an error in its code \(ValueError: no luck\)$") as caught:
        asyncio.run(work.ask("go", agent))

    assert isinstance(caught.value.__cause__, ValueError)
    assert closed_once(work, entry, "failed").reason == "an error in its code (ValueError: no luck)"
    assert work.rows(entry) == [
        ("user", "go"),
        ("assistant", ""),
        ("tool", INTERRUPTED_RESULT),
        ("assistant", "[The answer failed: an error in its code (ValueError: no luck)]"),
    ]


@pytest.mark.parametrize(
    "fault",
    [
        TimeoutError("the model is slow"),
        LeaseLost("L of somebody else", 3),
        StoreBusy("somewhere else"),
        asyncio.CancelledError(),
    ],
    ids=lambda fault: type(fault).__name__,
)
def test_what_an_agent_raises_is_its_own_fault_whatever_it_is_called(bench, fault):
    work = bench()
    entry = work.enter()

    async def agent(turn):
        yield Progress(label="on it")
        raise fault

    with pytest.raises(AgentFailed) as caught:
        asyncio.run(work.ask("go", agent))

    assert caught.value.__cause__ is fault
    turn = closed_once(work, entry, "failed")
    assert turn.reason == (str(fault) if isinstance(fault, HermesError) else f"an error in its code ({words(fault)})")
    assert "no sign of life" not in turn.reason


def test_an_agent_that_cannot_even_begin_fails_its_turn(bench):
    class Broken:
        name = "broken"
        model = None

        def run(self, turn):
            raise KeyError("api_key")

    work = bench()
    request = work.request()
    object.__setattr__(request, "agent", Broken())

    with pytest.raises(AgentFailed, match="broken failed"):
        asyncio.run(work.engine.run(request))

    assert closed_once(work, request.entry, "failed").reason == "an error in its code (KeyError: 'api_key')"


def test_a_plain_iterator_of_events_will_do(bench):
    class Plain:
        name = "plain"
        model = "m1"

        def __init__(self):
            self._left = [AssistantStep(content="yes")]

        def run(self, turn):
            return self

        async def __anext__(self):
            if not self._left:
                raise StopAsyncIteration
            return self._left.pop()

    work = bench()
    request = work.request()
    object.__setattr__(request, "agent", Plain())

    assert asyncio.run(work.engine.run(request)).text == "yes"


def test_a_listener_of_the_caller_that_fails_is_told_nothing_more_and_the_turn_goes_on(bench):
    work = bench()
    entry = work.enter()
    heard = []

    def broken(event):
        heard.append(event)
        raise OSError("broken pipe")

    async def agent(turn):
        yield AssistantStep(content="one")
        yield AssistantStep(content="two")

    result = asyncio.run(work.ask("go", agent, on_event=broken))

    assert result.text == "two"
    assert len(heard) == 1
    assert closed_once(work, entry, "done").reason == ""


def test_a_failing_store_is_raised_as_it_is(bench):
    work = bench()
    entry = work.enter()
    work.store.failing["Append"] = [StoreFull("no space left")]

    async def agent(turn):
        yield CALL

    with pytest.raises(StorageError, match="no space left"):
        asyncio.run(work.ask("go", agent))

    closed_once(work, entry, "failed")


def test_a_turn_that_could_not_be_closed_is_closed_before_the_next_message_of_its_process(bench):
    """After a full disk the lineage stayed locked for one ttl, by a process that had no use for it any more."""
    work = bench(ttl_s=3600.0)
    entry = work.enter()
    work.store.failing["Finish"] = [StoreFull("no space left") for _ in range(3)]

    with pytest.raises(StoreFull, match="no space left"):
        asyncio.run(work.ask("one"))
    assert work.lease(entry).holder is not None
    (told,) = work.told("after_turn_finish")
    result = asyncio.run(work.ask("two", source=work.source("oc_2")))
    assert work.lease(entry).holder is not None
    again = asyncio.run(asyncio.wait_for(work.ask("three"), 20))

    assert (told.outcome, result.turn.outcome, again.turn.outcome) == ("failed", "done", "done")
    assert [(turn.outcome, turn.reason) for turn in work.turns(entry)] == [
        ("failed", "no space left"),
        ("done", ""),
    ]
    assert work.rows(entry) == [
        ("user", "one"),
        ("assistant", "heard one"),
        ("assistant", "[The answer failed: no space left]"),
        ("user", "three"),
        ("assistant", "heard three"),
    ]


def test_a_stopped_task_ends_as_stopped_although_its_turn_cannot_be_closed(bench):
    work = bench()
    entry = work.enter()
    work.store.failing["Finish"] = [StoreBusy("locked")]

    async def go():
        running = asyncio.Event()

        async def agent(turn):
            running.set()
            yield Progress(label="on it")
            await asyncio.Event().wait()

        task = work.asking("go", agent)
        await running.wait()
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(go())
    asyncio.run(work.ask("again"))

    assert {turn.outcome for turn in work.turns(entry)} == {"stopped", "done"}


def test_a_store_that_has_stopped_is_not_asked_again(bench, caplog):
    work = bench()
    entry = work.enter()
    work.store.failing["Finish"] = [StoreStopped("open it again") for _ in range(2)]

    with pytest.raises(StoreStopped):
        asyncio.run(work.ask("one"))
    asyncio.run(work.ask("two", source=work.source("oc_2")))

    assert work.lease(entry).holder is not None
    assert "could not be written: open it again" in caplog.text


def test_silence_gives_the_agent_up(bench):
    work = bench(inactivity_s=0.01)
    entry = work.enter()

    async def agent(turn):
        await asyncio.Event().wait()
        yield CALL

    with pytest.raises(AgentFailed, match=r"no sign of life for 0\.01 s"):
        asyncio.run(work.ask("go", agent))

    closed_once(work, entry, "failed")


def test_an_agent_that_fails_while_it_is_closed_changes_nothing(bench, caplog):
    work = bench()
    entry = work.enter()

    async def agent(turn):
        try:
            yield ToolResult(call_id="unasked", name="t", content="")
        finally:
            raise RuntimeError("cleaning up failed")

    with pytest.raises(Exception, match="unasked"):
        asyncio.run(work.ask("go", agent))

    closed_once(work, entry, "failed")
    assert "failed while it was closed" in caplog.text


# ------------------------------------------------------------------ cancellation


def test_a_cancelled_task_stops_its_turn_and_frees_the_lease(bench):
    work = bench()
    entry = work.enter()
    closed, running = [], asyncio.Event()

    async def agent(turn):
        try:
            yield CALL
            running.set()
            await asyncio.Event().wait()
        finally:
            closed.append(True)

    async def main():
        task = work.asking("go", agent)
        await running.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())

    assert closed == [True]
    assert closed_once(work, entry, "stopped").reason == "cancelled"
    assert work.rows(entry)[-2:] == [("tool", INTERRUPTED_RESULT), ("assistant", "[The answer was stopped: cancelled]")]


@pytest.mark.parametrize("kind", ["Accept", "Begin", "Append", "Finish"])
@pytest.mark.parametrize("times", [1, 2])
def test_a_task_cancelled_inside_a_transaction_leaves_nothing_half_done(bench, gate, wait_for, kind, times):
    work = bench()
    entry = work.enter()
    tools = []

    async def agent(turn):
        yield CALL
        tools.append("ran")
        yield ToolResult(call_id="a", name="tool-a", content="1")
        yield AssistantStep(content="done")

    async def main():
        work.store.held[kind] = gate
        task = work.asking("go", agent)
        await wait_for(gate.reached)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0)
        gate.opened.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())

    turns = work.turns(entry)
    assert work.lease(entry).holder is None
    assert [turn.outcome for turn in turns] == {"Accept": [], "Finish": ["done"]}.get(kind, ["stopped"])
    assert work.item(1).status == ("withdrawn" if kind == "Accept" else "done")
    assert tools == (["ran"] if kind == "Finish" else [])
    assert [one.outcome for one in work.told("after_turn_finish")] == [turn.outcome for turn in turns]
    assert len(work.told("after_turn_start")) == len(turns)
    work.store.held.clear()
    assert asyncio.run(work.ask("again")).text == "heard again"


def test_whoever_was_cancelled_during_a_transaction_that_failed_is_told_that_he_was_cancelled():
    """Ctrl-C ended with the error of a store that was locked, and its exit status."""

    async def main():
        transaction = asyncio.get_running_loop().create_future()
        waiting = asyncio.create_task(settled(transaction))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.sleep(0)
        assert not waiting.done()
        transaction.set_exception(StoreBusy("locked"))
        with pytest.raises(asyncio.CancelledError):
            await waiting

    asyncio.run(main())


def test_a_cancellation_that_came_during_a_transaction_still_counts_as_one(bench, gate, wait_for, wait_until):
    """asyncio.timeout counts the cancellations of its task: one too many and it no longer knows its own."""
    work = bench()
    work.enter()

    async def main():
        work.store.held["Begin"] = gate
        limits = []

        async def limited():
            async with asyncio.timeout(None) as limit:
                limits.append(limit)
                await work.ask("go")

        task = asyncio.create_task(limited())
        await wait_for(gate.reached)
        limits[0].reschedule(asyncio.get_running_loop().time())
        await wait_until(task.cancelling)
        gate.opened.set()
        with pytest.raises(TimeoutError):
            await task

    asyncio.run(main())


# ------------------------------------------------------------------ the lease is lost


def test_a_revoke_between_two_steps_closes_the_agent_before_any_tool_runs(bench):
    work = bench()
    entry = work.enter()
    tools = []

    async def agent(turn):
        try:
            yield AssistantStep(content="let me see")
            work.app.store.apply(Revoke(lineage_id=entry.lineage_id, now=1, reason="taken over"))
            yield CALL
            tools.append("ran")
        finally:
            tools.append("closed")

    with pytest.raises(LeaseLost):
        asyncio.run(work.ask("go", agent))

    assert tools == ["closed"]
    turn = closed_once(work, entry, "stopped")
    assert turn.reason == "taken over"
    assert work.rows(entry) == [("user", "go"), ("assistant", "[The answer was stopped: taken over]")]


def test_a_revoke_before_the_end_refuses_the_answer(bench):
    work = bench()
    entry = work.enter()

    def agent(turn):
        work.app.store.apply(Revoke(lineage_id=entry.lineage_id, now=1, reason="taken over"))
        return "too late"

    with pytest.raises(LeaseLost):
        asyncio.run(work.ask("go", agent))

    closed_once(work, entry, "stopped")
    assert ("assistant", "too late") not in work.rows(entry)


def test_the_renewal_notices_the_loss_while_the_agent_is_silent(bench):
    work = bench(renew_s=0.01)
    entry = work.enter()
    closed = []

    async def agent(turn):
        try:
            work.app.store.apply(Revoke(lineage_id=entry.lineage_id, now=1, reason="taken over"))
            await asyncio.Event().wait()
            yield CALL
        finally:
            closed.append(True)

    with pytest.raises(LeaseLost):
        asyncio.run(work.ask("go", agent))

    assert closed == [True]
    closed_once(work, entry, "stopped")


def test_an_agent_that_fails_after_the_loss_is_told_as_stopped_or_failed_but_once(bench):
    work = bench()
    entry = work.enter()

    def agent(turn):
        work.app.store.apply(Revoke(lineage_id=entry.lineage_id, now=1, reason="taken over"))
        raise ValueError("and broken, too")

    with pytest.raises(AgentFailed):
        asyncio.run(work.ask("go", agent))

    (told,) = work.told("after_turn_finish")
    assert told.reason == "the lease was lost"
    assert work.turns(entry)[0].outcome == "stopped"


@pytest.mark.parametrize(
    "fault", [StoreBusy("somebody imports"), StoreFull("no space left"), StorageError("disk I/O error")]
)
def test_a_turn_that_runs_is_renewed_and_a_store_that_fails_is_no_reason_to_give_it_up(bench, fault, caplog):
    work = bench(renew_s=0.01)
    entry = work.enter()
    work.store.failing["Renew"] = [fault, fault]
    renewed = threading.Event()

    async def agent(turn):
        while work.lease(entry).renewals < 2:  # noqa: ASYNC110 - a renewal has no event
            await asyncio.sleep(0)
        renewed.set()
        yield AssistantStep(content="still here")

    result = asyncio.run(work.ask("go", agent))

    assert renewed.is_set()
    assert result.text == "still here"
    assert work.store.written.count("Renew") >= 4
    assert caplog.text.count("was not renewed") == 1


def test_a_look_at_the_lease_that_fails_is_no_reason_to_give_a_turn_up(bench, wait_until):
    work = bench(renew_s=0.01)
    entry = work.enter()

    async def agent(turn):
        look, refused = work.store.submit_read, []

        def refusing(read):
            refused.append(read)
            raise StoreBusy("locked")

        work.store.submit_read = refusing
        await wait_until(lambda: refused)
        work.store.submit_read = look
        await wait_until(lambda: work.lease(entry).renewals > 1)
        yield AssistantStep(content="still here")

    assert asyncio.run(work.ask("go", agent)).text == "still here"


def test_a_store_that_stopped_ends_the_turn_at_the_next_renewal(bench):
    work = bench(renew_s=0.01)
    work.enter()
    work.store.failing["Renew"] = [StoreStopped("open it again")]

    async def agent(turn):
        await asyncio.Event().wait()
        yield CALL

    with pytest.raises(StoreStopped):
        asyncio.run(work.ask("go", agent))


def test_what_a_turn_used_is_kept_although_its_lease_was_taken(bench):
    work = bench()
    entry = work.enter()

    async def agent(turn):
        yield UsageReport(usage=Usage(model="m", input_tokens=100_000))
        work.store.apply(Revoke(lineage_id=entry.lineage_id, now=work.clock.now(), reason="stop"))
        yield CALL

    with pytest.raises(LeaseLost):
        asyncio.run(work.ask("go", agent))

    (turn,) = work.store.turns(entry.lineage_id, operator())
    assert [(one.usage.input_tokens, one.late) for one in work.store.usage(turn.id)] == [(100_000, True)]
    assert work.store.session(entry.session_id, operator()).input_tokens == 100_000
