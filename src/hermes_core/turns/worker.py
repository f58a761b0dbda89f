"""Answering the entrances that a process serves: messages, commands, and what dead processes left.

One task a lineage, one task a key with commands, and one that looks what there is. Whatever a process does not come to
do waits in the store for the next one that serves the entrance.
"""

from __future__ import annotations

import asyncio
from logging import getLogger
from typing import TYPE_CHECKING

import attrs

from hermes_core.faultpoints import reach
from hermes_core.leases import holder_here
from hermes_core.settling import settled
from hermes_core.turns.control_work import ControlWork, next_controls
from hermes_core.turns.lineage_work import LineageWork
from hermes_core.turns.presence import door
from hermes_core.turns.topics import WORK
from hermes_hookspecs.errors import HermesError, StorageError, StoreStopped
from hermes_hookspecs.operations import LeaveEntrances, ServeEntrances

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from hermes_core.turns.control_work import Controls
    from hermes_core.turns.engine import TurnEngine
    from hermes_core.turns.queue import LineageQueue
    from hermes_core.turns.serving import Serving
    from hermes_hookspecs.ids import InboxId, LineageId, SessionKey
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.ports.store import StoreReader

__all__ = ["Worker"]

_log = getLogger(__name__)

_LOOK_S = 1.0
"""Seconds after which a process looks for the dead turns of others."""
_AFTER_FAULT_S = 1.0


@attrs.frozen(kw_only=True)
class _Found:
    """What one look found: commands, messages without a lineage, lineages to work on.

    Attributes:
        announced: everybody can see that this process serves its entrances.
    """

    controls: Controls
    unrouted: Sequence[InboxItem]
    lineages: Sequence[LineageId]
    announced: bool


class Worker:
    """Serves entrances until it is cancelled. One instance, one run.

    :param parallel: most turns at a time. drain_s: how long turns may go on once it is cancelled.
    :param slots: where several workers share the bound on turns; ``None`` for one of its own.
    """

    def __init__(
        self,
        engine: TurnEngine,
        serving: Serving,
        *,
        parallel: int,
        drain_s: float,
        slots: asyncio.Semaphore | None = None,
    ) -> None:
        self._engine = engine
        self._around = engine.around
        self._serving = serving
        self._drain_s = drain_s
        self._slots = asyncio.Semaphore(parallel) if slots is None else slots
        self._works: dict[LineageId, tuple[asyncio.Task[None], LineageWork]] = {}
        self._controls: dict[SessionKey, tuple[asyncio.Task[None], ControlWork]] = {}
        self._urgent: dict[SessionKey, tuple[asyncio.Task[None], ControlWork]] = {}
        self._routing: dict[SessionKey, asyncio.Task[None]] = {}
        self._running: set[InboxId] = set()
        self._queues: dict[LineageId, LineageQueue] = {}
        self._ended = asyncio.Event()

    async def run(self, *, until_idle: bool = False) -> None:
        """Work; cancelled, let turns end in time, hand the rest back, and say that nobody serves here any more.

        :param until_idle: return once nothing waits that this process could do.
        :raises StoreStopped: the store takes no more writes.
        """
        await self._announce()
        beating = asyncio.create_task(self._beat())
        try:
            await self._look_and_work(until_idle)
        finally:
            beating.cancel()
            await settled(self._leave())

    # --- presence

    async def _announce(self) -> None:
        entrances = self._serving.entrances
        operation = ServeEntrances(
            entrances=entrances, holder=holder_here(entrances[0], None), now=self._around.clock.now()
        )
        await settled(self._around.store.perform(operation))

    async def _beat(self) -> None:
        """Say again and again that this process lives, for those who cannot look at it."""
        while True:
            await asyncio.sleep(self._around.times.renew_s)
            try:
                await self._announce()
            except StorageError as error:
                _log.warning("the store was not told that this process lives: %s", error)

    async def _leave(self) -> None:
        works: list[tuple[asyncio.Task[None], bool]] = [(task, False) for task in self._routing.values()]
        for task, work in self._works.values():
            work.leaving = True
            works.append((task, work.in_turn))
        for task, control in (*self._controls.values(), *self._urgent.values()):
            control.leaving = True
            works.append((task, control.in_command))
        busy = [task for task, is_busy in works if is_busy]
        for task, is_busy in works:
            if not is_busy:
                task.cancel()
        if busy:
            await asyncio.wait(busy, timeout=self._drain_s)
        for task in busy:
            task.cancel()
        await self._end([task for task, _ in works])
        holder = holder_here(self._serving.entrances[0], None)
        try:
            await self._around.store.perform(LeaveEntrances(holders=(holder,), now=self._around.clock.now()))
        except HermesError as error:
            _log.info("the store was not told that this process leaves: %s", error)

    async def _end(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        """Wait for tasks that are cancelled; what does not end is left behind, its leases protect the store."""
        if not tasks:
            return
        _, left = await asyncio.wait(tasks, timeout=2 * self._around.cleanup_s)
        for task in left:
            _log.warning("a piece of work does not end and is left behind: %s", task.get_name())

    # --- looking

    async def _look_and_work(self, until_idle: bool) -> None:
        waiter = self._around.waker.enter(WORK)
        try:
            while True:
                found = await self._look()
                if found is not None:
                    self._start(found)
                    if until_idle and self._is_idle:
                        return
                await self._change(waiter.wait(_LOOK_S))
        finally:
            self._around.waker.leave(waiter)

    @property
    def _is_idle(self) -> bool:
        """Return whether there is nothing to do here but to wait for what other processes have to answer first."""
        commands = self._controls or self._urgent or self._routing
        return not commands and all(work.stands_behind for _, work in self._works.values())

    async def _change(self, wake: Coroutine[object, object, bool]) -> None:
        """Return when somebody woke this process, or when a task of it has ended."""
        self._ended.clear()
        woken, ended = asyncio.create_task(wake), asyncio.create_task(self._ended.wait())
        try:
            if any(task.done() for task in self._tasks()):
                return
            await asyncio.wait({woken, ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            woken.cancel()
            ended.cancel()
            await asyncio.gather(woken, ended, return_exceptions=True)
            self._reap()

    def _tasks(self) -> list[asyncio.Task[None]]:
        controls = (*self._controls.values(), *self._urgent.values())
        return [task for task, _ in (*self._works.values(), *controls)] + list(self._routing.values())

    async def _look(self) -> _Found | None:
        """Return what there is, ``None`` where the store does not say; it is asked again."""
        try:
            await self._around.leftovers.write()
            overtaken = frozenset(key for key, (_, work) in self._controls.items() if work.is_overtaken)
            read = self._around.store.submit_read(lambda reader: self._read(reader, overtaken))
            found = await asyncio.wrap_future(read)
            if not found.announced:  # another worker of this process has left, and took the process's name with it
                await self._announce()
        except StoreStopped:
            raise
        except StorageError as error:
            _log.warning("the store does not answer, it is tried again: %s", error)
            await asyncio.sleep(_AFTER_FAULT_S)
            return None
        return found

    def _read(self, reader: StoreReader, overtaken: frozenset[SessionKey]) -> _Found:
        entrances = self._serving.entrances
        waiting, leases = reader.work(entrances), reader.leases()
        self._queues = {
            lineage_id: self._queues.get(lineage_id) or self._around.queue(lineage_id)
            for lineage_id in (*waiting, *(lease.lineage_id for lease in leases))
        }
        gone = [lease.lineage_id for lease in leases if self._queues[lease.lineage_id].presumed_dead(lease) is not None]
        controls = next_controls(reader, self._serving, overtaken)
        items = (*controls.in_order, *controls.urgent)
        # What was interrupted is not gone on with before a command that may end it, as /new does.
        first = {item.lineage_id for item in items if not self._serving.waits_its_turn(item)}.intersection(gone)
        left = [lineage_id for lineage_id in gone if self._is_left(reader, lineage_id)]
        return _Found(
            controls=controls,
            unrouted=reader.unrouted(entrances),
            lineages=tuple(one for one in dict.fromkeys((*waiting, *left)) if one not in first),
            announced=self._is_announced(reader),
        )

    def _is_left(self, reader: StoreReader, lineage_id: LineageId) -> bool:
        """Return whether a dead process was in a turn for an entrance that is served here, or for nobody else."""
        turn = reader.active_turn(lineage_id)
        items = [] if turn is None else [reader.inbox_item(inbox_id) for inbox_id in turn.inbox_ids]
        there = [item for item in items if item is not None]
        return any(map(self._serving.serves, there)) or all(item.waiter is not None for item in there)

    def _is_announced(self, reader: StoreReader) -> bool:
        entrances = self._serving.entrances
        me = holder_here(entrances[0], None)
        mine = {
            door(one.entrance)
            for one in reader.servers()
            if (one.holder.pid, one.holder.started) == (me.pid, me.started)
        }
        return mine.issuperset(map(door, entrances))

    # --- working

    def _start(self, found: _Found) -> None:
        self._start_controls(found.controls)
        unrouted = {item.session_key: item for item in found.unrouted}
        for key, item in unrouted.items():
            if key not in self._controls and key not in self._routing:
                self._routing[key] = self._task(self._route(item))
        for lineage_id in found.lineages:
            if lineage_id not in self._works:
                lineage_work = LineageWork(self._engine, self._serving, self._queues[lineage_id], self._slots)
                self._works[lineage_id] = (self._task(lineage_work.run()), lineage_work)

    def _start_controls(self, found: Controls) -> None:
        for items, works in ((found.in_order, self._controls), (found.urgent, self._urgent)):
            for item in items:
                key = item.session_key
                if key in works or key in self._routing or item.id in self._running:
                    continue
                urgent = works is self._urgent
                work = ControlWork(self._engine, self._serving, key, self._running, urgent=urgent)
                works[key] = (self._task(work.run()), work)

    async def _route(self, item: InboxItem) -> None:
        """Give a message that was accepted without one the session of its key."""
        await asyncio.to_thread(self._serving.desk.route_waiting, item)
        reach("route.stored")
        self._around.waker.wake(WORK)

    def _task(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(self._kept_going(work))
        task.add_done_callback(lambda _: self._ended.set())
        return task

    async def _kept_going(self, work: Coroutine[object, object, None]) -> None:
        """Run a piece of work; what it fails with is told, and it is tried again with the next look.

        :raises StoreStopped: the store takes no more writes.
        """
        try:
            await work
        except StoreStopped:
            raise
        except HermesError as error:
            _log.warning("work on a session failed and is tried again: %s", error)
            await asyncio.sleep(_AFTER_FAULT_S)
        except Exception:  # noqa: BLE001 - one session's fault does not end the others
            _log.exception("work on a session failed and is tried again")
            await asyncio.sleep(_AFTER_FAULT_S)

    def _reap(self) -> None:
        """Let go of tasks that have ended. :raises StoreStopped: one of them ended with it."""
        done = [task for task in self._tasks() if task.done()]
        self._works = {key: value for key, value in self._works.items() if not value[0].done()}
        self._controls = {key: value for key, value in self._controls.items() if not value[0].done()}
        self._urgent = {key: value for key, value in self._urgent.items() if not value[0].done()}
        self._routing = {key: task for key, task in self._routing.items() if not task.done()}
        for task in done:
            if not task.cancelled() and task.exception() is not None:
                task.result()
