"""A lease that changes hands: after ``kill -9`` of its holder, and among those who all want the same one.

The reference of the first is what no program can be quicker than: such a process dies, somebody who does nothing but
wait for that writes and syncs one row.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import select
import signal
import sys
import tempfile
import time
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from benchmarks.measuring import Bounds, fact
from benchmarks.raw import Raw
from hermes_core import open_app
from hermes_core.leases import holder_here
from hermes_hookspecs.ids import new_turn_id
from hermes_hookspecs.operations import Begin, Begun
from hermes_hookspecs.source import Entrance, SessionSource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerContext

    from benchmarks.measuring import Row, Size
    from benchmarks.peer import Peer
    from hermes_core import HermesApp
    from hermes_hookspecs.operations import Operation
    from hermes_hookspecs.ports.agent import AgentEvent, TurnContext

__all__ = ["run"]

T = TypeVar("T")

_SOURCE = SessionSource(platform="api_server", chat_id="one", user_id="somebody")
_PROCESSES, _EACH = 4, 8
_SWITCH_INTERVAL_S = 0.0005
"""What the script ``hermes`` sets, too."""


class _Silent:
    """An agent without an answer."""

    name = "silent"
    model: str | None = None

    async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
        """Yield nothing."""
        nothing: tuple[AgentEvent, ...] = ()
        for event in nothing:
            yield event


def run(size: Size, _peer: Peer | None) -> Iterator[Row]:
    """Yield the hand-over and the fairness; the original has no lease that outlives a process."""
    yield from _hand_over(20 if size.is_quick else 100)
    yield from _fairness(3 if size.is_quick else 10)


# --- hand-over


def _hold(home: str, pipe: Connection) -> None:
    """Begin a turn and wait to be killed."""
    with open_app(home, plugins=False, environ={}) as app:
        entry = app.get_or_create_session(_SOURCE)
        now = app.clock.now()
        begun = app.store.apply(
            Begin(
                lineage_id=entry.lineage_id,
                turn_id=new_turn_id(now),
                holder=holder_here(Entrance("api_server"), entry.session_key),
                now=now,
                ttl_ms=30_000,
                maintenance=True,
            )
        )
        pipe.send(isinstance(begun, Begun))
        signal.pause()


class _Watched:
    """The store, with the time at which the first begin was committed."""

    def __init__(self, app: HermesApp) -> None:
        self._store = app.store
        self.begun_at = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def perform(self, operation: Operation[T]) -> T:
        """Run one operation."""
        result = await _performed(self._store.perform(operation))
        if isinstance(result, Begun):
            self.begun_at = time.perf_counter_ns()
        return result


async def _performed(work: Awaitable[T]) -> T:
    return await work


def _hand_over(times: int) -> Iterator[Row]:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["hermes_core.app", "hermes_core.storage.sqlite.store", __name__])
    taken, bare = [], []
    with tempfile.TemporaryDirectory() as folder:
        home = str(Path(folder) / "home")
        raw = Raw(folder, durability="normal")
        with open_app(home, plugins=False, environ={}) as app:
            app.ask("hello", _SOURCE, agent=_Silent())
            for _ in range(times):
                with _holder(context, home) as pid:
                    taken.append(asyncio.run(_take_over(app, pid)))
                with _holder(context, home) as pid:
                    bare.append(_bare_take_over(raw, pid))
                app.ask("and go on", _SOURCE, agent=_Silent())
        raw.close()
    for name, part, bounds in (("median", 0.5, Bounds(3.0, 2.1)), ("p99", 0.99, Bounds(10.0, 3.0))):
        yield fact(
            f"kill -9 of a holder until the next has the lease: {name}",
            _quantile(taken, part), _quantile(bare, part), unit="ms", bounds=bounds, judged="ours", rounds=times,
        )  # fmt: skip


def _quantile(spans_ns: Sequence[int], part: float) -> float:
    ordered = sorted(spans_ns)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] / 1e6


@contextmanager
def _holder(context: ForkServerContext, home: str) -> Iterator[int]:
    """Have a process with a turn of its own; it is killed by whoever asked for it."""
    here, there = context.Pipe()
    holder = context.Process(target=_hold, args=(home, there), daemon=True)
    holder.start()
    if not here.recv():
        raise RuntimeError("the lease was not free")
    yield int(holder.pid or 0)
    holder.join(20)


def _bare_take_over(raw: Raw, holder: int) -> int:
    """Return the nanoseconds that the system alone takes: a process dies, and one row is written, not synced."""
    descriptor = os.pidfd_open(holder)
    try:
        time.sleep(0.2)
        killed_at = time.perf_counter_ns()
        os.kill(holder, signal.SIGKILL)
        select.select([descriptor], [], [])
        raw.append(1, "and then")
        return time.perf_counter_ns() - killed_at
    finally:
        os.close(descriptor)


async def _take_over(app: HermesApp, holder: int) -> int:
    """Wait behind the holder, kill it, and return the nanoseconds until the waiter's begin was committed."""
    watched = _Watched(app)
    waits = asyncio.Event()
    app._store = watched  # type: ignore[assignment]  # noqa: SLF001 - looked through, not replaced
    app._service = None  # noqa: SLF001 - made anew, over the store that is watched
    asked = asyncio.create_task(app.ask_async("and then", _SOURCE, agent=_Silent(), on_event=lambda _: waits.set()))
    try:
        await asyncio.wait_for(waits.wait(), 20)
        await asyncio.sleep(0.2)  # the waiter's look-out is set up, as behind any turn that takes a while
        killed_at = time.perf_counter_ns()
        os.kill(holder, signal.SIGKILL)
        await asyncio.wait_for(asked, 20)
    finally:
        app._store = watched._store  # noqa: SLF001 - as above
        app._service = None  # noqa: SLF001 - as above
    return watched.begun_at - killed_at


# --- fairness


def _queue_up(home: str, number: int, rounds: int, pipe: Connection) -> None:
    """Ask again and again in one session that three other processes ask in, too; send how long each ask waited."""
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    with open_app(home, plugins=False, environ={}) as app:
        pipe.send(None)
        pipe.recv()
        numbers = count()

        async def one() -> list[float]:
            waited = []
            for _ in range(rounds):
                result = await app.ask_async(f"{number} {next(numbers)}", _SOURCE, agent=_Silent())
                waited.append(result.waited_s)
            return waited

        async def all_of_them() -> list[float]:
            found = await asyncio.gather(*(one() for _ in range(_EACH)))
            return [each for some in found for each in some]

        pipe.send(asyncio.run(all_of_them()))


def _fairness(rounds: int) -> Iterator[Row]:
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        home = str(Path(folder) / "home")
        with open_app(home, plugins=False, environ={}) as app:
            app.get_or_create_session(_SOURCE)
        pipes, processes = [], []
        for number in range(_PROCESSES):
            here, there = context.Pipe()
            process = context.Process(target=_queue_up, args=(home, number, rounds, there), daemon=True)
            process.start()
            pipes.append(here)
            processes.append(process)
        for pipe in pipes:
            pipe.recv()
        for pipe in pipes:
            pipe.send(None)
        waited = [each for pipe in pipes for each in pipe.recv()]
        for process in processes:
            process.join(20)
    mean = sum(waited) / len(waited)
    yield fact(
        f"one session, {_PROCESSES} processes x {_EACH} callers: longest wait against the mean",
        max(waited) * 1e3, mean * 1e3, unit="ms", bounds=Bounds(3.0, 2.0), rounds=len(waited),
    )  # fmt: skip
