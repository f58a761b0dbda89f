"""Waiting for one's turn: first come, first served, behind one lease, and never beside somebody else's turn."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import attrs
import pytest

from hermes_core.leases import LeaseWatch
from hermes_core.turns.forsaken import MOST_FORSAKEN
from hermes_core.turns.queue import _LOOKED_AT
from hermes_hookspecs.errors import LeaseBusy, SessionNotFound, StoreFull
from hermes_hookspecs.inbox import WITHDRAWN
from hermes_hookspecs.messages import INTERRUPTED_RESULT, MessageDraft, closing_text
from hermes_hookspecs.operations import (
    Begin,
    Begun,
    BindRoute,
    Busy,
    Changed,
    Finish,
    NothingWaiting,
    NotYourTurn,
    Withdraw,
)
from hermes_hookspecs.testing.clock import FakeClock
from hermes_hookspecs.turns import Fence


class Slow:
    """An agent that says when it runs and answers when it may."""

    def __init__(self):
        self.running = threading.Event()
        self.may_end = threading.Event()

    def __call__(self, turn):
        self.running.set()
        assert self.may_end.wait(20)
        return f"slowly: {turn.text}"


@pytest.fixture
def slow():
    agent = Slow()
    yield agent
    agent.may_end.set()


def accepted(work, number):
    return lambda: work.item(number) is not None


# ------------------------------------------------------------------ order


def test_asks_on_one_lineage_are_answered_in_order_and_alternate(bench, slow, wait_for, wait_until):
    work = bench()
    entry = work.enter()

    async def main():
        tasks = [work.asking("1", slow)]
        await wait_for(slow.running)
        for number in range(2, 6):
            tasks.append(work.asking(str(number)))
            await wait_until(accepted(work, number))
        slow.may_end.set()
        return await asyncio.gather(*tasks)

    results = asyncio.run(main())

    assert [result.text for result in results] == ["slowly: 1", *(f"heard {number}" for number in range(2, 6))]
    assert [content for _, content in work.rows(entry)][::2] == ["1", "2", "3", "4", "5"]
    assert [role for role, _ in work.rows(entry)] == ["user", "assistant"] * 5
    assert [turn.token for turn in work.turns(entry)] == [1, 2, 3, 4, 5]


def test_three_entrances_of_one_lineage_take_turns_in_order_of_arrival(bench, slow, wait_for, wait_until):
    work = bench()
    entry = work.enter()
    sources = [
        work.source(),
        work.source("oc_9", platform="weixin"),
        work.source("pts-1", platform="cli", user_id=None),
    ]
    for source in sources[1:]:
        key = work.app.session_key(source)
        policy = work.app.store.route(entry.session_key).policy
        work.app.store.apply(
            BindRoute(
                key=key, key_version=1, source=source, policy=policy, lineage_id=entry.lineage_id, now=work.clock.now()
            )
        )

    async def main():
        tasks = [work.asking("0", slow)]
        await wait_for(slow.running)
        for number, source in enumerate([sources[2], sources[1], sources[0], sources[2]], 1):
            tasks.append(work.asking(str(number), source=source))
            await wait_until(accepted(work, number + 1))
        slow.may_end.set()
        await asyncio.gather(*tasks)

    asyncio.run(main())

    assert [content for role, content in work.rows(entry) if role == "user"] == ["0", "1", "2", "3", "4"]
    assert [str(turn.entrance) for turn in work.turns(entry)] == [
        "feishu",
        "cli/default/pts-1",
        "weixin",
        "feishu",
        "cli/default/pts-1",
    ]


def test_threads_with_loops_of_their_own_wait_for_each_other(bench):
    work = bench()
    entry = work.enter()
    start = threading.Barrier(4)
    answers, lock = [], threading.Lock()

    def speak(number):
        start.wait(20)
        for turn in range(5):
            answer = asyncio.run(work.ask(f"{number}.{turn}")).text
            with lock:
                answers.append(answer)

    threads = [threading.Thread(target=speak, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    rows = work.rows(entry)
    assert [role for role, _ in rows] == ["user", "assistant"] * 20
    assert all(answer == f"heard {said}" for (_, said), (_, answer) in zip(rows[::2], rows[1::2], strict=True))
    assert len(answers) == 20
    said = [content for _, content in rows[::2]]
    assert all([one for one in said if one[0] == str(n)] == [f"{n}.{t}" for t in range(5)] for n in range(4))


@pytest.mark.parametrize("kind", ["Busy", "free by now", "NotYourTurn", "NothingWaiting", "Changed"])
def test_whoever_was_quicker_between_look_and_begin_makes_one_look_again(bench, wait_until, kind):
    clock = FakeClock()
    work = bench(clock=clock, notice_s=0.0)
    entry = work.enter()
    lease = work.lease(entry)
    held = attrs.evolve(lease, holder=work.holder())
    answer, phrase = {
        "Busy": (Busy(lease=held), "feishu (process"),
        "free by now": (Busy(lease=lease), "a change of the queue"),
        "NotYourTurn": (NotYourTurn(item=work.item(work.leave_a_row(entry, pid=1))), "an earlier message of feishu"),
        "NothingWaiting": (NothingWaiting(), "another message"),
        "Changed": (Changed(), "a change of the queue"),
    }[kind]
    work.app.store.apply(Withdraw(ids=(1,), now=1))
    work.store.answering["Begin"] = [answer]
    told = []

    result = asyncio.run(work.ask("hello", on_wait=told.append))

    assert result.text == "heard hello"
    assert told[0].startswith(phrase)


# ------------------------------------------------------------------ giving up


def test_who_waits_too_long_takes_the_message_back(bench, slow, wait_for, wait_until):
    clock = FakeClock()
    work = bench(clock=clock, wait_s=60.0, ttl_s=600.0)
    entry = work.enter()

    async def main():
        first = work.asking("1", slow)
        await wait_for(slow.running)
        second = work.asking("2")
        await wait_until(lambda: work.waiters(entry) == 1)
        clock.advance(61)
        work.waker.wake(entry.lineage_id)
        with pytest.raises(LeaseBusy, match=r"feishu \(process \d+ on .* still at work .* after 61 s") as caught:
            await second
        slow.may_end.set()
        await first
        return caught.value

    error = asyncio.run(main())

    assert error.exit_code == 75
    assert error.holder.startswith("feishu (process")
    assert work.item(2).status == "withdrawn"
    assert ("user", "2") not in work.rows(entry)
    assert len(work.turns(entry)) == 1


def test_a_message_that_could_not_be_taken_back_does_not_keep_its_place_for_ever(bench, elsewhere):
    work = bench(wait_s=0.05)
    entry = work.enter()
    begun = begin_as(work, entry, **elsewhere)
    work.store.failing["Withdraw"] = [StoreFull("no space left")]

    with pytest.raises(LeaseBusy, match="taken back"):
        asyncio.run(work.ask("given up"))
    assert work.item(2).status == "pending"
    work.app.store.apply(Finish(fence=Fence(entry.lineage_id, begun.turn.id, begun.lease.token), outcome="done", now=2))
    result = asyncio.run(work.ask("next"))

    assert result.text == "heard next"
    assert work.item(2).status == "withdrawn"


def test_a_waiter_behind_a_message_that_could_not_be_taken_back_goes_on(bench, slow, wait_for, wait_until):
    work = bench()
    entry = work.enter()
    work.store.failing["Withdraw"] = [StoreFull("no space left")]

    async def main():
        first = work.asking("1", slow)
        await wait_for(slow.running)
        second = work.asking("2")
        await wait_until(accepted(work, 2))
        third = work.asking("3")
        await wait_until(accepted(work, 3))
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        slow.may_end.set()
        await asyncio.wait_for(asyncio.gather(first, third), 20)

    asyncio.run(main())

    assert work.item(2).status == "withdrawn"
    assert [content for role, content in work.rows(entry) if role == "user"] == ["1", "3"]


def test_a_cancelled_waiter_takes_the_message_back_and_the_next_one_goes_on(bench, slow, wait_for, wait_until):
    work = bench()
    entry = work.enter()

    async def main():
        first = work.asking("1", slow)
        await wait_for(slow.running)
        second, third = work.asking("2"), None
        await wait_until(accepted(work, 2))
        third = work.asking("3")
        await wait_until(accepted(work, 3))
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        slow.may_end.set()
        await asyncio.gather(first, third)

    asyncio.run(main())

    assert work.item(2).status == "withdrawn"
    assert [content for role, content in work.rows(entry) if role == "user"] == ["1", "3"]


def test_a_waiter_is_told_once_who_is_in_the_way(bench, slow, wait_for, wait_until):
    clock = FakeClock()
    work = bench(clock=clock, notice_s=30.0, ttl_s=600.0)
    entry = work.enter()
    told = []

    async def main():
        first = work.asking("1", slow)
        await wait_for(slow.running)
        second = work.asking("2", on_wait=told.append)
        await wait_until(lambda: work.waiters(entry) == 1)
        assert told == []
        for _ in range(3):
            clock.advance(31)
            work.waker.wake(entry.lineage_id)
            await wait_until(lambda: told)
        slow.may_end.set()
        return await asyncio.gather(first, second)

    _, second = asyncio.run(main())

    work.app.hooks.flush()
    assert len(told) == 1
    assert told[0].startswith("feishu (process")
    (contention,) = work.ear.told("after_lease_contention")
    assert contention["lease"].lineage_id == entry.lineage_id
    assert contention["waited_s"] >= 30
    assert second.waited_s >= 31


def test_a_listener_that_fails_while_waiting_takes_the_message_back(bench, slow, wait_for):
    work = bench(notice_s=0.0)
    work.enter()

    def broken(phrase):
        raise OSError("closed")

    async def main():
        first = work.asking("1", slow)
        await wait_for(slow.running)
        with pytest.raises(OSError, match="closed"):
            await work.ask("2", on_wait=broken)
        slow.may_end.set()
        await first

    asyncio.run(main())

    assert work.item(2).status == "withdrawn"


# ------------------------------------------------------------------ the dead


@pytest.mark.parametrize("count", [1, MOST_FORSAKEN, _LOOKED_AT, 4 * _LOOKED_AT + 1])
def test_rows_whose_process_died_while_it_waited_are_passed_over_and_taken_back_when_they_are_many(
    bench, dead_process, count
):
    work = bench(max_waiting=10_000)
    entry = work.enter()
    left = [work.leave_a_row(entry, f"lost {number}", **dead_process) for number in range(count)]

    result = asyncio.run(work.ask("alive"))

    assert result.text == "heard alive"
    assert {work.item(number).status for number in left} == {"pending" if count <= MOST_FORSAKEN else WITHDRAWN}
    assert work.rows(entry) == [("user", "alive"), ("assistant", "heard alive")]


def test_a_row_that_nobody_in_reach_serves_is_not_passed_over(bench, elsewhere, wait_until):
    clock = FakeClock()
    work = bench(clock=clock, wait_s=10.0)
    entry = work.enter()
    work.leave_a_row(entry, "from another machine", **elsewhere)

    async def main():
        task = work.asking("mine")
        await wait_until(lambda: work.waiters(entry) == 1)
        clock.advance(11)
        work.waker.wake(entry.lineage_id)
        with pytest.raises(LeaseBusy, match="an earlier message of feishu"):
            await task

    asyncio.run(main())


def test_a_holder_that_is_known_to_be_dead_is_replaced_at_once(bench, dead_process):
    work = bench(clock=FakeClock())
    entry = work.enter()
    dead = begin_as(work, entry, **dead_process)

    result = asyncio.run(work.ask("next"))

    assert result.waited_s == 0
    assert result.turn.token == dead.turn.token + 1
    assert [(turn.outcome, turn.reason) for turn in work.turns(entry)] == [
        ("interrupted", "its process ended"),
        ("done", ""),
    ]
    assert [one.outcome for one in work.told("after_turn_finish")] == ["interrupted", "done"]
    assert work.rows(entry)[1] == (
        "assistant",
        closing_text("interrupted", "its process ended"),
    )


def begin_as(work, entry, **holder):
    """Begin a turn as another process would; it is left at its first step."""
    number = work.leave_a_row(entry, "unfinished", **holder)
    begun = work.app.store.apply(
        Begin(
            lineage_id=entry.lineage_id,
            turn_id="T_other",
            holder=work.holder(**holder),
            now=work.clock.now(),
            ttl_ms=30_000,
            drafts=(MessageDraft(role="user", content="unfinished", timestamp=1, inbox_id=number),),
        )
    )
    assert isinstance(begun, Begun)
    return begun


def test_a_holder_that_cannot_be_checked_is_taken_over_only_after_one_ttl_on_the_waiters_own_clock(
    bench, elsewhere, wait_until, monkeypatch
):
    clock = FakeClock()
    work = bench(clock=clock, ttl_s=30.0)
    entry = work.enter()
    begin_as(work, entry, **elsewhere)
    judged = []

    class Watched(LeaseWatch):
        def presumed_dead(self, lease):
            judged.append(super().presumed_dead(lease))
            return judged[-1]

    monkeypatch.setattr("hermes_core.turns.queue.LeaseWatch", Watched)

    async def look_after(seconds):
        clock.advance(seconds)
        looks = len(judged)
        work.waker.wake(entry.lineage_id)
        await wait_until(lambda: len(judged) > looks)

    async def main():
        task = work.asking("patient")
        await wait_until(lambda: judged)
        clock.set_now(clock.now() + 3_600_000)  # somebody sets the wall clock: it says nothing
        await look_after(10)
        await look_after(19.5)
        assert set(judged) == {None}
        assert work.turns(entry)[0].outcome == "active"
        await look_after(0.5)
        return await task

    result = asyncio.run(main())

    assert result.waited_s == 30.0
    assert [turn.outcome for turn in work.turns(entry)] == ["interrupted", "done"]


# ------------------------------------------------------------------ the message moves, or is settled


def test_a_waiting_message_that_is_carried_to_another_lineage_is_answered_there(bench, slow, wait_for, wait_until):
    work = bench()
    here = work.enter()
    there = work.app.get_or_create_session(work.source(), force_new=True)
    work.app.resume_session(work.source(), here.lineage_id)

    async def main():
        first = work.asking("1", slow, entry=here)
        await wait_for(slow.running)
        second = work.asking("2", entry=here)
        await wait_until(accepted(work, 2))
        work.app.resume_session(work.source(), there.lineage_id)
        moved = await second
        slow.may_end.set()
        await first
        return moved

    moved = asyncio.run(main())

    assert (moved.entry.lineage_id, moved.entry.session_id) == (there.lineage_id, there.session_id)
    assert work.rows(there) == [("user", "2"), ("assistant", "heard 2")]
    assert work.rows(here) == [("user", "1"), ("assistant", "slowly: 1")]


def test_a_reset_settles_what_waits(bench, slow, wait_for, wait_until):
    work = bench()
    entry = work.enter()

    async def main():
        first = work.asking("1", slow)
        await wait_for(slow.running)
        second = work.asking("2")
        await wait_until(accepted(work, 2))
        work.app.leave_session(work.source(), entry)
        with pytest.raises(SessionNotFound):
            await second
        slow.may_end.set()
        return await asyncio.gather(first, return_exceptions=True)

    (lost,) = asyncio.run(main())

    assert type(lost).__name__ == "LeaseLost"
    assert work.item(2).status == "superseded"
    assert [(one.outcome, one.reason) for one in work.turns(entry)] == [("stopped", "session_reset")]


def test_a_lineage_that_is_deleted_while_one_waits_says_so(bench, slow, wait_for, wait_until):
    work = bench()
    entry = work.enter()

    async def main():
        first = work.asking("1", slow)
        await wait_for(slow.running)
        second = work.asking("2")
        await wait_until(accepted(work, 2))
        work.app.delete_session(entry.lineage_id, force=True)
        with pytest.raises(SessionNotFound):
            await second
        slow.may_end.set()
        await asyncio.gather(first, return_exceptions=True)

    asyncio.run(main())


# ------------------------------------------------------------------ real processes


HOLDER = """
import sys
from hermes_core import open_app
from hermes_hookspecs.messages import ToolCall
from hermes_hookspecs.ports.agent import AssistantStep
from hermes_hookspecs.source import SessionSource

async def agent(turn):
    yield AssistantStep(tool_calls=(ToolCall(id="a", name="launch"),))
    print(turn.turn.id, flush=True)
    sys.stdin.readline()

app = open_app(sys.argv[1], plugins=False, environ={})
app.ask("go", SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1"), agent=agent)
"""


@pytest.mark.parametrize("backend", ["sqlite"])
def test_a_process_that_is_killed_in_its_turn_keeps_nobody_waiting(bench, tmp_path):
    command = [sys.executable, "-P", "-c", HOLDER, str(tmp_path / "home")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        turn_id = process.stdout.readline().strip()
        process.kill()

    work = bench()
    result = asyncio.run(work.ask("are you there?"))

    assert result.waited_s < 5
    interrupted, done = work.turns(result.entry)
    assert (interrupted.id, interrupted.outcome, done.outcome) == (turn_id, "interrupted", "done")
    assert work.rows(result.entry) == [
        ("user", "go"),
        ("assistant", ""),
        ("tool", INTERRUPTED_RESULT),
        ("assistant", closing_text("interrupted", "its process ended")),
        ("user", "are you there?"),
        ("assistant", "heard are you there?"),
    ]
    assert [one.outcome for one in work.told("after_turn_finish")] == ["interrupted", "done"]
    assert work.item(1).status == "done"


def test_rows_of_dead_processes_do_not_fill_the_queue(bench, dead_process):
    work = bench(max_waiting=3)
    entry = work.enter()
    left = [work.leave_a_row(entry, f"lost {number}", **dead_process) for number in range(3)]

    result = asyncio.run(work.ask("still there?"))

    assert result.text == "heard still there?"
    assert {work.item(number).status for number in left} == {"withdrawn"}
