"""Appending through the store, by one caller and by many in one process, against plain SQLite.

One caller off the main thread calls ``apply``; coroutines ``await`` what ``perform`` returns. Plain SQLite gets one
commit for each message: from the caller's own thread, behind one lock from many threads, and through an executor of one
thread from coroutines.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Lock, Thread
from typing import TYPE_CHECKING

from benchmarks.measuring import OURS, PEER, RAW, Bounds, Timing, alternate, clocked, row, timing
from benchmarks.raw import Raw
from benchmarks.stage import append, begin_turn, enter, open_store, text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from benchmarks.measuring import Row, Size
    from benchmarks.peer import Peer
    from hermes_core.storage.sqlite.store import SqliteStore
    from hermes_hookspecs.turns import Fence

__all__ = ["run"]

_ALONE = 300
_TOGETHER = 640
_SETTLED = Bounds(1.35, 1.10)
# A lone coroutine has two threads to cross; mechanics, section 1, measured 1.69 with throw-away code.
_LONE_COROUTINE = Bounds(None, 1.69)
_MANY = {64: Bounds(10, 18)}
# Threads reach half groups: what mechanics, section 1, measured.
_MANY_THREADS = {8: Bounds(1, 2), 64: Bounds(1, 3.6)}


def run(size: Size, peer: Peer | None) -> Iterator[Row]:
    """Yield the rows of one caller, then those of many."""
    yield from _alone(size, peer)
    yield from _lone_coroutine(size)
    yield from _normal(size)
    for callers in (8, 32, 64):
        yield from _coroutines(size, callers)
        yield from _threads(size, callers)


def off_main(work: Callable[[], Timing]) -> Timing:
    """Run ``work`` on a thread of its own: callers off the main thread may commit inline."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def _held(store: SqliteStore, callers: int) -> list[Fence]:
    fences = []
    for number in range(callers):
        enter(store, f"c{number}")
        fences.append(begin_turn(store, f"c{number}"))
    return fences


def _alone(size: Size, peer: Peer | None) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        store, raw = open_store(folder), Raw(folder)
        (fence,) = _held(store, 1)
        contestants = {
            OURS: lambda: off_main(lambda: clocked(lambda number: store.apply(append(fence, number)), _ALONE)),
            RAW: lambda: off_main(lambda: clocked(lambda number: raw.append(1, text(number)), _ALONE)),
        }
        if peer is not None:
            peer.ask("open", name="append")
            contestants[PEER] = lambda: peer.timing("append", count=_ALONE)
        seen = alternate(size.rounds, contestants)
        # The original indexes while it appends, and demand and target are of appending with index.
        yield row("append, 1 thread: p50", seen, "p50", _SETTLED)
        yield row("append, 1 thread: p99", seen, "p99")
        yield row("append, 1 thread: rate", seen, "per_s", peer_bounds=Bounds(1.7, 3), unit="1/s")
        raw.close()
        store.close()


def _lone_coroutine(size: Size) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        store, raw = open_store(folder), Raw(folder)
        (fence,) = _held(store, 1)

        async def ours(number: int) -> None:
            await store.perform(append(fence, number))

        seen = alternate(
            size.rounds,
            {
                OURS: lambda: asyncio.run(_clocked_coroutines([ours], _ALONE)),
                RAW: lambda: off_main(lambda: clocked(lambda number: raw.append(1, text(number)), _ALONE)),
            },
        )
        yield row("append, 1 coroutine: p50", seen, "p50", _LONE_COROUTINE)
        yield row("append, 1 coroutine: p99", seen, "p99")
        raw.close()
        store.close()


def _normal(size: Size) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        store, raw = open_store(folder, "normal"), Raw(folder, "normal")
        (fence,) = _held(store, 1)
        count = 4 * _ALONE
        seen = alternate(
            size.rounds,
            {
                OURS: lambda: off_main(lambda: clocked(lambda number: store.apply(append(fence, number)), count)),
                RAW: lambda: off_main(lambda: clocked(lambda number: raw.append(1, text(number)), count)),
            },
        )
        yield row("append, 1 thread, durability normal: p50", seen, "p50", Bounds(1.8, 1.25))
        raw.close()
        store.close()


async def _clocked_coroutines(calls: list[Callable[[int], Awaitable[None]]], count: int) -> Timing:
    """Let each coroutine call ``count`` times, one call after the other, all of them at once."""
    clock = time.perf_counter_ns
    taken: list[int] = []

    async def one(call: Callable[[int], Awaitable[None]]) -> None:
        for number in range(count):
            before = clock()
            await call(number)
            taken.append(clock() - before)

    began = clock()
    await asyncio.gather(*(one(call) for call in calls))
    return timing(taken, clock() - began)


def _coroutines(size: Size, callers: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(1) as single:
        store, raw = open_store(folder), Raw(folder)

        def ours(fence: Fence) -> Callable[[int], Awaitable[None]]:
            async def call(number: int) -> None:
                await store.perform(append(fence, number))

            return call

        def theirs(lineage_no: int) -> Callable[[int], Awaitable[None]]:
            async def call(number: int) -> None:
                await asyncio.get_running_loop().run_in_executor(single, raw.append, lineage_no, text(number))

            return call

        grouped = [ours(fence) for fence in _held(store, callers)]
        single_file = [theirs(number) for number in range(callers)]
        seen = alternate(
            size.rounds,
            {
                OURS: lambda: asyncio.run(_clocked_coroutines(grouped, 4 * _TOGETHER // callers)),
                RAW: lambda: asyncio.run(_clocked_coroutines(single_file, _TOGETHER // callers)),
            },
        )
        yield row(f"append, {callers} coroutines: rate", seen, "per_s", _MANY.get(callers, Bounds()), unit="1/s")
        yield row(f"append, {callers} coroutines: p50", seen, "p50")
        yield row(f"append, {callers} coroutines: p99", seen, "p99")
        raw.close()
        store.close()


def _threads(size: Size, callers: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        store, raw, lock = open_store(folder), Raw(folder), Lock()

        def ours(fence: Fence) -> Callable[[int], object]:
            return lambda number: store.apply(append(fence, number))

        def theirs(lineage_no: int) -> Callable[[int], object]:
            def call(number: int) -> None:
                with lock:
                    raw.append(lineage_no, text(number))

            return call

        grouped = [ours(fence) for fence in _held(store, callers)]
        single_file = [theirs(number) for number in range(callers)]
        count = 2 * _TOGETHER // callers
        seen = alternate(
            size.rounds,
            {OURS: lambda: _clocked_threads(grouped, count), RAW: lambda: _clocked_threads(single_file, count)},
        )
        bounds = _MANY_THREADS.get(callers, Bounds())
        yield row(f"append, {callers} threads: rate", seen, "per_s", bounds, unit="1/s")
        yield row(f"append, {callers} threads: p50", seen, "p50")
        yield row(f"append, {callers} threads: p99", seen, "p99")
        raw.close()
        store.close()


def _clocked_threads(calls: list[Callable[[int], object]], count: int) -> Timing:
    """Let each thread call ``count`` times, one call after the other, all of them at once."""
    clock = time.perf_counter_ns
    start = Barrier(len(calls) + 1)
    taken: list[list[int]] = [[] for _ in calls]

    def one(call: Callable[[int], object], into: list[int]) -> None:
        start.wait()
        for number in range(count):
            before = clock()
            call(number)
            into.append(clock() - before)

    threads = [Thread(target=one, args=(call, into)) for call, into in zip(calls, taken, strict=True)]
    for thread in threads:
        thread.start()
    start.wait()
    began = clock()
    for thread in threads:
        thread.join()
    return timing([each for into in taken for each in into], clock() - began)
