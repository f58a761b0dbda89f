"""Usage reported on behalf of somebody: the innermost meter counts, in tasks and threads that belong to the work."""

from __future__ import annotations

import asyncio
import threading

from hermes_hookspecs.metering import metered, report_usage
from hermes_hookspecs.tools import in_thread
from hermes_hookspecs.turns import Usage

ONE, TWO = Usage(input_tokens=1), Usage(input_tokens=2)


def test_where_nobody_counts_nothing_happens():
    report_usage(ONE)


def test_the_innermost_meter_alone_is_told():
    outer, inner = [], []

    with metered(outer.append):
        report_usage(ONE)
        with metered(inner.append):
            report_usage(TWO)
        report_usage(ONE)
    report_usage(TWO)

    assert (outer, inner) == ([ONE, ONE], [TWO])


def test_tasks_and_threads_of_the_work_are_counted_and_others_are_not():
    told = []

    async def work():
        await asyncio.create_task(asyncio.to_thread(report_usage, ONE))
        await in_thread(lambda: report_usage(TWO))

    async def both():
        with metered(told.append):
            task = asyncio.create_task(work())
        report_usage(TWO)
        await task

    asyncio.run(both())
    stranger = threading.Thread(target=report_usage, args=(ONE,))
    stranger.start()
    stranger.join()

    assert told == [ONE, TWO]


def test_two_at_a_time_are_counted_apart():
    async def work(usage, told):
        with metered(told.append):
            await asyncio.sleep(0)
            report_usage(usage)

    async def both():
        first, second = [], []
        await asyncio.gather(work(ONE, first), work(TWO, second))
        return first, second

    assert asyncio.run(both()) == ([ONE], [TWO])
