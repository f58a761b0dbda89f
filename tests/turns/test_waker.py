"""Waking: at once inside a process, and within a moment when another one has written."""

from __future__ import annotations

import asyncio
import threading

from hermes_core.settling import settled
from hermes_core.turns.waker import LocalWaker


def test_who_waits_is_woken_from_any_thread_and_only_for_its_topic():
    waker = LocalWaker(lambda: 0)

    async def main():
        waiter, other = waker.enter("a"), waker.enter("b")
        threading.Thread(target=waker.wake, args=("a",)).start()
        assert await waiter.wait(20)
        assert not await other.wait(0)
        waker.leave(waiter)
        waker.leave(other)

    asyncio.run(main())

    assert waker._waiters == {}


def test_a_wake_between_entering_and_waiting_is_not_lost():
    waker = LocalWaker(lambda: 0)

    async def main():
        waiter = waker.enter("a")
        waker.wake("a")
        assert await waiter.wait(20)
        assert not await waiter.wait(0.001)

    asyncio.run(main())


def test_a_commit_of_somebody_else_wakes_too():
    marks = iter([1, 1, 1, 2, 2])
    waker = LocalWaker(lambda: next(marks))

    assert asyncio.run(waker.wait("a", 20))


def test_nothing_happened_is_said_after_the_time():
    waker = LocalWaker(lambda: 0)

    assert not asyncio.run(waker.wait("a", 0.02))


def test_a_waiter_whose_loop_is_closed_disturbs_nobody():
    waker = LocalWaker(lambda: 0)

    async def forget():
        waker.enter("a")

    asyncio.run(forget())
    waker.wake("a")


def test_leaving_twice_is_harmless():
    waker = LocalWaker(lambda: 0)

    async def main():
        waiter = waker.enter("a")
        waker.leave(waiter)
        waker.leave(waiter)

    asyncio.run(main())


def test_settled_raises_what_the_work_raised():
    async def fails():
        raise ValueError("no")

    async def main():
        try:
            await settled(fails())
        except ValueError as error:
            return str(error)

    assert asyncio.run(main()) == "no"
