"""Waiting for one's turn: first in, first out per lineage, behind one lease.

The message stands in the inbox already. Each look reads the lineage's oldest waiting rows and its lease, and *begin*
decides in one transaction. Whoever waits too long takes the message back: it never runs beside somebody else's turn.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hermes_core.faultpoints import reach
from hermes_core.settling import settled
from hermes_core.turns.forsaken import take_back_forsaken
from hermes_core.turns.queue import LeaseTimes, QueueLook
from hermes_core.turns.topics import WORK
from hermes_hookspecs.errors import LeaseBusy, SessionNotFound, StorageError
from hermes_hookspecs.inbox import PENDING
from hermes_hookspecs.operations import Begun, Busy, NothingWaiting, NotYourTurn, Withdraw

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hermes_core.context.opening import Opened
    from hermes_core.turns.surroundings import Surroundings
    from hermes_core.turns.waker import Waiter
    from hermes_hookspecs.ids import InboxId, LineageId
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.operations import Snapshot
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.turns import LeaseHolder, Usage

__all__ = ["LeaseTimes", "TurnWait"]


class TurnWait:
    """The wait of one accepted message for its turn.

    :param inbox_id: the row that waits. holder: this process, with entrance and key of the message.
    :param open: prepares the message, once, when its turn is about to begin.
    :param snapshot: what the session's first turn freezes. on_wait: told once who is in the way, after the notice
        time. on_way: told whenever that changes.
    """

    def __init__(
        self,
        around: Surroundings,
        *,
        lineage_id: LineageId,
        inbox_id: InboxId,
        holder: LeaseHolder,
        shared: bool,
        snapshot: Snapshot | None,
        on_wait: Callable[[str], None] | None,
        on_way: Callable[[str], None],
        open: Callable[[InboxItem], Awaitable[Opened]],  # noqa: A002 - what is done to the message
    ) -> None:
        self._around = around
        self._queue = around.queue(lineage_id)
        self._inbox_id = inbox_id
        self._holder = holder
        self._shared = shared
        self._snapshot = snapshot
        self._on_wait = on_wait
        self._on_way = on_way
        self._open = open
        self._opened: Opened | None = None
        self._in_the_way = ""
        self._began = around.clock.monotonic()
        self._told = False

    @property
    def _lineage_id(self) -> LineageId:
        return self._queue.lineage_id

    @property
    def waited_s(self) -> float:
        """Return the seconds since the wait began."""
        return self._around.clock.monotonic() - self._began

    @property
    def side_usage(self) -> tuple[Usage, ...]:
        """Return what was used to prepare the message."""
        return () if self._opened is None else self._opened.usage

    @property
    def was_held_up(self) -> bool:
        """Return whether anybody was in the way."""
        return bool(self._in_the_way)

    async def begin(self) -> Begun:
        """Return once the turn has begun, in the lineage that the message stands in by then.

        :raises LeaseBusy: not within the limit; the message was taken back and will not be answered.
        :raises SessionNotFound: the lineage went away, or the message was settled by somebody else (a reset).
        """
        try:
            while True:
                begun = await self._begin_here()
                if begun is not None:
                    return begun
        except BaseException:
            await settled(self._withdraw())
            raise

    async def _begin_here(self) -> Begun | None:
        """Wait where the message stands; ``None`` when its route took it along to another lineage."""
        waker, times = self._around.waker, self._around.times
        waiter = waker.enter(self._lineage_id, place=self._inbox_id)
        try:
            while True:
                own, look = await asyncio.wrap_future(self._around.store.submit_read(self._look))
                if own is None or own.status != PENDING or own.lineage_id is None:
                    raise SessionNotFound(self._lineage_id)
                if own.lineage_id != self._lineage_id:
                    self._queue = self._around.queue(own.lineage_id)
                    return None
                await take_back_forsaken(self._around, look)
                begun, in_the_way = await self._try(look, own)
                if begun is not None:
                    return begun
                await self._tell(in_the_way)
                await self._around.leftovers.write()
                begun = await self._inherit(waiter, look, own, max(0.001, min(1.0, times.wait_s - self.waited_s)))
                if begun is not None:
                    return begun
        finally:
            waker.leave(waiter)

    async def _inherit(self, waiter: Waiter, look: QueueLook, own: InboxItem, patience_s: float) -> Begun | None:
        """Wait until there may be something to look at; begin at once when the holder in the way has died."""
        if not self._around.waker.is_first(waiter):
            # Somebody of this process goes first whatever happens elsewhere: one look-out is enough.
            await waiter.doze(patience_s)
            return None
        waiter.watch(None if look.lease is None else look.lease.holder)
        await waiter.wait(patience_s)
        inherited = look.after_death() if waiter.saw_death else None
        return None if inherited is None else (await self._try(inherited, own))[0]

    def _look(self, reader: StoreReader) -> tuple[InboxItem | None, QueueLook]:
        return reader.inbox_item(self._inbox_id), self._queue.look(reader, own=self._inbox_id)

    async def _try(self, look: QueueLook, own: InboxItem) -> tuple[Begun | None, str]:
        """Begin, where it seems to be our turn; return the turn, or who is in the way."""
        if look.lease is None:
            raise SessionNotFound(self._lineage_id)
        oldest = look.oldest
        if oldest is None or oldest.id != self._inbox_id:
            if look.dead is not None:
                self._around.waker.wake(WORK)  # whoever serves that entrance takes the lease over
            return None, "an earlier message" if oldest is None else f"an earlier message of {oldest.entrance}"
        if look.is_held and look.lease.holder is not None:
            return None, look.lease.holder.describe()
        if self._opened is None:
            self._opened = await self._open(own)
        operation = self._queue.begin(
            look, (own,), holder=self._holder, shared=self._shared, snapshot=self._snapshot, opened=self._opened
        )
        reach("begin.before")
        result = await settled(self._around.store.perform(operation))
        reach("begin.stored")
        if isinstance(result, Begun):
            return result, ""
        if isinstance(result, Busy) and result.lease.holder is not None:
            return None, result.lease.holder.describe()
        if isinstance(result, NotYourTurn):
            return None, f"an earlier message of {result.item.entrance}"
        return None, "another message" if isinstance(result, NothingWaiting) else "a change of the queue"

    async def _tell(self, in_the_way: str) -> None:
        waited, times = self.waited_s, self._around.times
        if in_the_way != self._in_the_way:
            self._in_the_way = in_the_way
            self._on_way(in_the_way)
        if waited >= times.wait_s:
            raise LeaseBusy(
                f"{in_the_way} is still at work in this session after {waited:.0f} s; "
                "the message was taken back: send it again later",
                holder=in_the_way,
            )
        if waited < times.notice_s or self._told:
            return
        self._told = True
        if self._on_wait is not None:
            self._on_wait(in_the_way)
        lease = await asyncio.wrap_future(self._around.store.submit_read(lambda reader: reader.lease(self._lineage_id)))
        if lease is not None:
            self._around.hooks.fire("hermes_after_lease_contention", lease=lease, waited_s=waited)

    async def _withdraw(self) -> None:
        operation = Withdraw(ids=(self._inbox_id,), now=self._around.clock.now())
        try:
            await self._around.store.perform(operation)
        except StorageError as error:
            self._around.leftovers.owe(operation, f"that message {self._inbox_id} is taken back", error)
        self._around.waker.wake_next(self._lineage_id)
