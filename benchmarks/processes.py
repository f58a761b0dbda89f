"""Four processes that append as fast as they can for a fixed time, each to one session of its own, or to eight."""

from __future__ import annotations

import multiprocessing
import sys
import tempfile
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

import apsw

from benchmarks.measuring import OURS, PEER, RAW, Bounds, Timing, alternate, fact, row, timing
from benchmarks.raw import Raw
from benchmarks.stage import append, begin_turn, enter, open_store, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection
    from multiprocessing.synchronize import Barrier

    from benchmarks.measuring import Row, Size
    from benchmarks.peer import Peer
    from hermes_core.storage.sqlite.store import SqliteStore
    from hermes_hookspecs.turns import Fence

__all__ = ["run"]

_PROCESSES = 4
_SESSIONS = 8
_SWITCH_INTERVAL_S = 0.0005
"""What the script ``hermes`` sets, too."""


class _Order(NamedTuple):
    """What a worker is to do: append in ``folder`` for so many seconds; ``None`` in its place ends it.

    ``sessions``: of its own, each with a thread.
    """

    is_ours: bool
    folder: str
    seconds: float
    sessions: int


def _work(number: int, orders: Connection, start: Barrier) -> None:
    """Take orders until ``None`` comes, and answer each with the times of its calls in nanoseconds."""
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    while (order := orders.recv()) is not None:
        calls, close = _callers(order, number)
        start.wait(60)
        taken = _until(time.perf_counter_ns() + int(order.seconds * 1e9), calls)
        close()
        orders.send(taken)


def _callers(order: _Order, number: int) -> tuple[list[Callable[[int], object]], Callable[[], None]]:
    """Return what each session of a worker calls, and what closes them."""
    if order.is_ours:
        store = open_store(order.folder)
        fences = []
        for session in range(order.sessions):
            enter(store, f"p{number}-{session}")
            fences.append(begin_turn(store, f"p{number}-{session}"))
        return [partial(_append, store, fence) for fence in fences], store.close
    raws = [Raw(order.folder) for _ in range(order.sessions)]

    def close() -> None:
        for raw in raws:
            raw.close()

    return [partial(_append_raw, raw, number) for raw in raws], close


def _append(store: SqliteStore, fence: Fence, count: int) -> None:
    store.apply(append(fence, count))


def _append_raw(raw: Raw, number: int, count: int) -> None:
    raw.append(number, text(count))


def _until(end_ns: int, calls: list[Callable[[int], object]]) -> list[int]:
    """Call each on a thread of its own until the time is over; return what each call took."""
    taken: list[list[int]] = [[] for _ in calls]

    def work(call: Callable[[int], object], mine: list[int]) -> None:
        clock = time.perf_counter_ns
        before = clock()
        while before < end_ns:
            call(len(mine))
            now = clock()
            mine.append(now - before)
            before = now

    threads = [Thread(target=work, args=pair) for pair in zip(calls, taken, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [each for mine in taken for each in mine]


class _Crew:
    """Four workers that live through all rounds."""

    def __init__(self, seconds: float) -> None:
        context = multiprocessing.get_context("spawn")
        # Kept, because a child unpickles it only when it has started.
        self._start = start = context.Barrier(_PROCESSES)
        self._seconds = seconds
        self._pipes = []
        self._processes = []
        self.lost = 0
        for number in range(1, _PROCESSES + 1):
            here, there = context.Pipe()
            process = context.Process(target=_work, args=(number, there, start), daemon=True)
            process.start()
            self._pipes.append(here)
            self._processes.append(process)

    def race(self, *, is_ours: bool, sessions: int = 1) -> Timing:
        """One round in a folder of its own; ours also counts what was acknowledged and is not there."""
        with tempfile.TemporaryDirectory() as folder:
            # The file is made by one, so that the round is about writing.
            (open_store(folder) if is_ours else Raw(folder)).close()
            for pipe in self._pipes:
                pipe.send(_Order(is_ours, folder, self._seconds, sessions))
            taken = [pipe.recv() for pipe in self._pipes]
            if is_ours:
                self.lost += sum(map(len, taken)) - _answers_in(folder)
        return timing([each for one in taken for each in one], int(self._seconds * 1e9))

    def dismiss(self) -> None:
        """Let the workers end."""
        for pipe in self._pipes:
            with suppress(OSError):  # one that has died cannot be told
                pipe.send(None)
        for process in self._processes:
            process.join(20)


def _answers_in(folder: str) -> int:
    connection = apsw.Connection(str(Path(folder) / "state.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        rows = connection.execute("SELECT count(*) FROM messages WHERE role = 'assistant'").fetchall()
    finally:
        connection.close()
    return int(str(rows[0][0]))


def run(size: Size, peer: Peer | None) -> Iterator[Row]:
    """Yield rate, times, the longest wait of all rounds, and how many acknowledged rows are missing."""
    crew = _Crew(size.seconds)
    try:
        contestants = {OURS: lambda: crew.race(is_ours=True), RAW: lambda: crew.race(is_ours=False)}
        if peer is not None:
            contestants[PEER] = lambda: peer.timing("processes", count=_PROCESSES, seconds=size.seconds)
        seen = alternate(size.slow_rounds, contestants)
        many = alternate(
            size.slow_rounds,
            {
                OURS: lambda: crew.race(is_ours=True, sessions=_SESSIONS),
                RAW: lambda: crew.race(is_ours=False, sessions=_SESSIONS),
            },
        )
    finally:
        crew.dismiss()
    yield row("4 processes: rate", seen, "per_s", Bounds(), Bounds(1.6, 3.3), unit="1/s")
    yield row("4 processes: p50", seen, "p50")
    # "At most 3x its p99" and "at most 0.7x" of performance.md, as times better.
    yield row("4 processes: p99", seen, "p99", Bounds(), Bounds(0.33, 1.43))
    yield row("4 processes: longest wait of a round", seen, "longest", Bounds(150, 10), unit="ms", judged="ours")
    yield row(f"4 processes x {_SESSIONS} sessions: rate", many, "per_s", unit="1/s")
    yield row(f"4 processes x {_SESSIONS} sessions: p99", many, "p99")
    yield row(f"4 processes x {_SESSIONS} sessions: longest wait of a round", many, "longest", unit="ms")
    longest = {who: max(each.longest for each in timings) / 1000 for who, timings in seen.items()}
    yield fact(
        "4 processes: longest wait of all rounds",
        longest[OURS],
        longest[RAW],
        unit="ms",
        bounds=Bounds(150, 10),
        judged="ours",
        rounds=size.slow_rounds,
        peer=longest.get(PEER),
    )
    yield fact(
        "4 processes: lost writes", crew.lost, None, unit="rows", bounds=Bounds(0, 0), judged="ours",
        rounds=size.slow_rounds,
    )  # fmt: skip
