"""Sends what stands in the outbox, for the entrances that this process serves."""

from __future__ import annotations

import asyncio
from logging import getLogger
from typing import TYPE_CHECKING, TypeVar

from hermes_core.outbox.courier import Courier
from hermes_core.outbox.enclosures import Enclosures
from hermes_core.outbox.lane import Lane
from hermes_core.outbox.limits import AccountPace
from hermes_core.outbox.owners import OwnerWatch
from hermes_core.outbox.streams import Streams
from hermes_core.outbox.topics import listening, outbox_topic
from hermes_hookspecs.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_core.config.sections import OutboxSettings
    from hermes_core.hooks import Hooks
    from hermes_core.outbox.streams import Following
    from hermes_core.outbox.topics import DeliveryWaiter, DeliveryWaker
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ids import InboxId, LineageId
    from hermes_hookspecs.outbox import OpenedThread
    from hermes_hookspecs.ports.platform import ServedEntrance
    from hermes_hookspecs.ports.services import AttachmentReader
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.source import SessionSource

__all__ = ["Deliverer"]

W = TypeVar("W", bound="DeliveryWaiter")

_log = getLogger(__name__)

_FIRST_PAUSE_S, _MOST_PAUSE_S = 0.1, 30.0


class Deliverer:
    """Brings answers to their readers: in order per address, several addresses at a time. For one event loop.

    Several deliverers, in whatever processes, may serve one entrance: a delivery is sent by who claimed it, and taken
    over only from the dead.

    :param served: entrances with their senders; one account once.
    :param files: returns where the bytes of files are; called when the first one is sent.
    :param stream_s: seconds between two edits of an answer that is being written, by platform; ``None`` shows none.
    :param ttl_s: seconds that a sender of whose process nothing can be known is given beyond the time that sending
        itself may take; the lease's own.
    :param thread_route: returns the route of a thread that an answer opened, by the thread's source (the target, with
        the id of the thread); ``None`` where such a thread gets none.
    """

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        hooks: Hooks,
        waker: DeliveryWaker[W],
        served: Sequence[ServedEntrance],
        settings: OutboxSettings,
        ttl_s: float,
        thread_route: Callable[[SessionSource], OpenedThread | None],
        stream_s: Callable[[str], float | None] = lambda _platform: None,
        files: Callable[[], AttachmentReader | None] = lambda: None,
    ) -> None:
        self._listen = listening(waker)
        # one step is at most a look-up and a send
        silence_s = ttl_s + 2 * settings.send_timeout_s
        enclosures = Enclosures(files)
        self._lanes: list[Lane] = []
        self._streams: dict[tuple[str, str], Streams] = {}
        for each in served:
            pace = AccountPace(clock, each.abilities.parts_per_minute)
            owners = OwnerWatch(clock, each.entrance, silence_s)
            streams = Streams(
                each,
                store=store,
                clock=clock,
                pace=pace,
                limit_s=settings.send_timeout_s,
                interval_s=stream_s(each.entrance.platform),
            )
            self._streams[each.entrance.platform, each.entrance.account_id] = streams
            courier = Courier(
                each,
                store=store,
                clock=clock,
                hooks=hooks,
                settings=settings,
                pace=pace,
                owners=owners,
                thread_route=thread_route,
                streams=streams,
                enclosures=enclosures,
            )
            lane = Lane(each.entrance, store=store, clock=clock, courier=courier, pace=pace, owners=owners)
            self._lanes.append(lane)

    def follow(self, target: SessionSource, lineage_id: LineageId, inbox_id: InboxId) -> Following | None:
        """Show readers what becomes of an answer while its turn runs; ``None`` where nobody here sends to them.

        :param target: where the answer goes. inbox_id: the oldest message that it answers.
        """
        streams = self._streams.get((target.platform, target.account_id))
        return None if streams is None else streams.follow(target, lineage_id, inbox_id)

    async def run(self) -> None:
        """Send what is due, as it comes, until cancelled; what is under way then is put back before it ends.

        A store that cannot be read is asked again, ever more seldom.
        """
        async with asyncio.TaskGroup() as group:
            for lane in self._lanes:
                group.create_task(self._serve(lane), name=f"hermes-{outbox_topic(lane.entrance)}")

    async def until_idle(self) -> None:
        """Send everything that is due; return when the rest waits for a time, a message, or somebody else's sending.

        Cancelled, it puts back what is under way.

        :raises StorageError: the store could not be read.
        """
        try:
            while True:
                for lane in self._lanes:
                    await lane.look()
                tasks = [task for lane in self._lanes for task in lane.tasks]
                if not tasks:
                    return
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            await self._stop()
            raise

    async def _serve(self, lane: Lane) -> None:
        with self._listen(outbox_topic(lane.entrance)) as waiter:
            lane.ended = waiter.wake
            try:
                while True:
                    wait_s = await self._look(lane)
                    waiter.watch(lane.in_the_way)
                    await waiter.wait(wait_s)
            finally:
                lane.ended = None
                await lane.stop()

    async def _look(self, lane: Lane) -> float:
        """Look at a lane until the store can be read."""
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return await lane.look()
            except StorageError as error:
                if pause_s == _FIRST_PAUSE_S:
                    _log.warning("the outbox of %s cannot be read, it is tried again: %s", lane.entrance, error)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _MOST_PAUSE_S)

    async def _stop(self) -> None:
        for lane in self._lanes:
            await lane.stop()
