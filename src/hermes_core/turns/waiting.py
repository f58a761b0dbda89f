"""Waiting for one's turn: first in, first out per lineage, behind one lease.

The message stands in the inbox already. Each look reads the lineage's oldest waiting rows and its lease, and *begin*
decides in one transaction. Whoever waits too long takes the message back: it never runs beside somebody else's turn.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import attrs

from hermes_core.context.window import sent_text
from hermes_core.leases import LeaseWatch, holder_lives
from hermes_core.turns.settling import settled
from hermes_hookspecs.errors import LeaseBusy, SessionNotFound, StorageError
from hermes_hookspecs.ids import new_turn_id
from hermes_hookspecs.inbox import PENDING
from hermes_hookspecs.messages import USER, MessageDraft
from hermes_hookspecs.operations import Begin, Begun, Busy, NothingWaiting, NotYourTurn, Withdraw

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.hooks import Hooks
    from hermes_core.turns.leftovers import Leftovers
    from hermes_core.turns.waker import LocalWaker
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ids import InboxId, LineageId
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.operations import Snapshot
    from hermes_hookspecs.ports.store import Store, StoreReader
    from hermes_hookspecs.turns import Lease, LeaseHolder

__all__ = ["LeaseTimes", "TurnWait"]

_LOOKED_AT = 50


@attrs.frozen(kw_only=True)
class LeaseTimes:
    """Seconds: life of a lease, its renewal, when a waiter is told, when it gives up."""

    ttl_s: float
    renew_s: float
    notice_s: float
    wait_s: float

    @property
    def ttl_ms(self) -> int:
        """Return the life of a lease in milliseconds."""
        return int(self.ttl_s * 1000)


@attrs.frozen(kw_only=True)
class _Look:
    """What one look saw, on one view of the store."""

    own: InboxItem | None
    oldest: InboxItem | None
    passed_over: frozenset[InboxId]
    lease: Lease | None


class TurnWait:
    """The wait of one accepted message for its turn.

    :param inbox_id: the row that waits. holder: this process, with entrance and key of the message.
    :param snapshot: what the session's first turn freezes. on_wait: told once who is in the way, after the notice
        time. on_way: told whenever that changes.
    """

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        hooks: Hooks,
        waker: LocalWaker,
        leftovers: Leftovers,
        times: LeaseTimes,
        lineage_id: LineageId,
        inbox_id: InboxId,
        holder: LeaseHolder,
        shared: bool,
        snapshot: Snapshot | None,
        on_wait: Callable[[str], None] | None,
        on_way: Callable[[str], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._hooks = hooks
        self._waker = waker
        self._leftovers = leftovers
        self._times = times
        self._lineage_id = lineage_id
        self._inbox_id = inbox_id
        self._holder = holder
        self._shared = shared
        self._snapshot = snapshot
        self._on_wait = on_wait
        self._on_way = on_way
        self._in_the_way = ""
        self._watch = LeaseWatch(clock, times.ttl_s)
        self._began = clock.monotonic()
        self._told = False

    @property
    def waited_s(self) -> float:
        """Return the seconds since the wait began."""
        return self._clock.monotonic() - self._began

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
        waiter = self._waker.enter(self._lineage_id)
        try:
            while True:
                look = await asyncio.wrap_future(self._store.submit_read(self._look))
                if look.own is None or look.own.status != PENDING or look.own.lineage_id is None:
                    raise SessionNotFound(self._lineage_id)
                if look.own.lineage_id != self._lineage_id:
                    self._lineage_id = look.own.lineage_id
                    self._watch = LeaseWatch(self._clock, self._times.ttl_s)
                    return None
                begun, in_the_way = await self._try(look, look.own)
                if begun is not None:
                    return begun
                await self._tell(in_the_way)
                await self._leftovers.write()
                waiter.watch(None if look.lease is None else look.lease.holder)
                await waiter.wait(max(0.001, min(1.0, self._times.wait_s - self.waited_s)))
        finally:
            self._waker.leave(waiter)

    async def _try(self, look: _Look, own: InboxItem) -> tuple[Begun | None, str]:
        """Begin, where it seems to be our turn; return the turn, or who is in the way."""
        if look.lease is None:
            raise SessionNotFound(self._lineage_id)
        if look.oldest is None or look.oldest.id != self._inbox_id:
            return (
                None,
                "an earlier message" if look.oldest is None else f"an earlier message of {look.oldest.entrance}",
            )
        presumed_dead = self._watch.presumed_dead(look.lease)
        if look.lease.holder is not None and presumed_dead is None:
            return None, look.lease.holder.describe()
        now = self._clock.now()
        operation = Begin(
            lineage_id=self._lineage_id,
            turn_id=new_turn_id(now),
            holder=self._holder,
            now=now,
            ttl_ms=self._times.ttl_ms,
            drafts=(self._draft(own),),
            passed_over=look.passed_over,
            presumed_dead=presumed_dead,
            snapshot=self._snapshot,
            touch=own.kind != "internal",
        )
        result = await settled(self._store.perform(operation))
        if isinstance(result, Begun):
            return result, ""
        if isinstance(result, Busy) and result.lease.holder is not None:
            return None, result.lease.holder.describe()
        if isinstance(result, NotYourTurn):
            return None, f"an earlier message of {result.item.entrance}"
        return None, "another message" if isinstance(result, NothingWaiting) else "a change of the queue"

    def _look(self, reader: StoreReader) -> _Look:
        limit = _LOOKED_AT
        while True:
            waiting = reader.waiting(self._lineage_id, limit=limit)
            passed_over = frozenset(item.id for item in waiting if self._has_nobody(item))
            if len(passed_over) < limit:
                break
            limit *= 4  # nothing but rows of the dead so far
        return _Look(
            own=reader.inbox_item(self._inbox_id),
            oldest=next((item for item in waiting if item.id not in passed_over), None),
            passed_over=passed_over,
            lease=reader.lease(self._lineage_id),
        )

    def _has_nobody(self, item: InboxItem) -> bool:
        """Return whether nobody alive serves the row: it keeps its place and is passed over."""
        if item.id == self._inbox_id:
            return False
        return item.waiter is None or holder_lives(item.waiter) is False

    def _draft(self, item: InboxItem) -> MessageDraft:
        return MessageDraft(
            role=USER,
            content=item.text,
            sent=sent_text(item, shared=self._shared),
            timestamp=item.accepted_at,
            inbox_id=item.id,
            attachments=item.attachments,
        )

    async def _tell(self, in_the_way: str) -> None:
        waited = self.waited_s
        if in_the_way != self._in_the_way:
            self._in_the_way = in_the_way
            self._on_way(in_the_way)
        if waited >= self._times.wait_s:
            raise LeaseBusy(
                f"{in_the_way} is still at work in this session after {waited:.0f} s; "
                "the message was taken back: send it again later",
                holder=in_the_way,
            )
        if waited < self._times.notice_s or self._told:
            return
        self._told = True
        if self._on_wait is not None:
            self._on_wait(in_the_way)
        lease = await asyncio.wrap_future(self._store.submit_read(lambda reader: reader.lease(self._lineage_id)))
        if lease is not None:
            self._hooks.fire("hermes_after_lease_contention", lease=lease, waited_s=waited)

    async def _withdraw(self) -> None:
        operation = Withdraw(ids=(self._inbox_id,), now=self._clock.now())
        try:
            await self._store.perform(operation)
        except StorageError as error:
            self._leftovers.owe(operation, f"that message {self._inbox_id} is taken back", error)
        self._waker.wake(self._lineage_id)
