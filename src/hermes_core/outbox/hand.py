"""A claimed delivery in hand: every write of the attempt that sends it."""

from __future__ import annotations

import asyncio
from logging import getLogger
from math import ceil
from typing import TYPE_CHECKING, TypeVar

import attrs

from hermes_core.outbox.results import one_line
from hermes_core.settling import settled
from hermes_hookspecs.errors import Conflict, StorageError, StoreBusy, StoreFull, StoreOutcomeUnknown, StoreStopped
from hermes_hookspecs.operations import DeferDelivery, FailDelivery, JoinDeliveries, MarkSent, SplitDelivery
from hermes_hookspecs.outbox import SENT
from hermes_hookspecs.source import Entrance

if TYPE_CHECKING:
    from hermes_core.hooks import Hooks
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ids import DeliveryId
    from hermes_hookspecs.operations import Operation
    from hermes_hookspecs.outbox import Delivery, OpenedThread, PartDraft
    from hermes_hookspecs.ports.platform import Sent
    from hermes_hookspecs.ports.store import Store

__all__ = ["Hand"]

T = TypeVar("T")

_log = getLogger(__name__)

_FIRST_PAUSE_S, _MOST_PAUSE_S = 0.05, 5.0
_LONGEST_S = 366 * 86400.0
"""Nobody means more: a platform that says so counts in another unit."""


class Hand:
    """What one attempt holds. ``delivery`` is the row as this attempt wrote it last.

    While the store takes no writes (it is busy or full, or does not know whether it wrote), every write is tried again
    until it does or the task is cancelled: what went out and is not marked would go out twice.

    :raises Conflict: (every write) the attempt is not the row's any more: somebody took the delivery over.
    :raises StorageError: (every write) the store does not take it, and would not the next time.
    :raises StoreStopped: (every write) the store takes none until it is opened again.
    """

    def __init__(self, delivery: Delivery, *, store: Store, clock: Clock, hooks: Hooks) -> None:
        self.delivery = delivery
        self.under_way = False
        """Whether a part left for the platform, and what became of it is not written yet."""
        self._store = store
        self._clock = clock
        self._hooks = hooks

    @property
    def maybe_sent(self) -> bool:
        """Return whether the first unsent part may have gone out, in this attempt or in an earlier one."""
        return self.under_way or self.delivery.uncertain

    async def split(self, drafts: tuple[PartDraft, ...]) -> None:
        """Store the parts; a delivery that has some keeps them."""
        stored = await self._write(
            SplitDelivery(
                delivery_id=self.delivery.id, attempt=self.delivery.attempt, parts=drafts, now=self._clock.now()
            )
        )
        self.delivery = attrs.evolve(self.delivery, parts=stored)

    async def join(self, others: tuple[DeliveryId, ...], text: str, drafts: tuple[PartDraft, ...]) -> None:
        """Take deliveries along that wait behind this one; nothing happens where that cannot be by now.

        :param text: what this one says then. drafts: what is sent in place of its unsent parts.
        """
        joined = await self._write(
            JoinDeliveries(
                delivery_id=self.delivery.id,
                attempt=self.delivery.attempt,
                joined=others,
                text=text,
                parts=drafts,
                now=self._clock.now(),
            )
        )
        if joined is not None:
            self.delivery = joined
            _log.info("delivery %d takes %d along that waited behind it", joined.id, len(others))

    async def mark(self, index: int, sent: Sent, opened: OpenedThread | None) -> bool:
        """Write down that a part went out; with the last one, tell it.

        :returns: whether it is written. A part that went out and cannot be marked fails its delivery, visibly.
        """
        mark = MarkSent(
            delivery_id=self.delivery.id,
            attempt=self.delivery.attempt,
            index=index,
            now=self._clock.now(),
            platform_message_id=sent.platform_message_id,
            possible_repeat=sent.possible_repeat,
            state=sent.state,
            opened=opened,
        )
        try:
            self.delivery = await self._write(mark)
        except Conflict as error:
            if not sent.state:
                raise
            # it went out: what the adapter wanted to remember must not keep that from being written
            _log.warning("delivery %d went out, but the adapter's state did not fit: %s", self.delivery.id, error)
            self.delivery = await self._write(attrs.evolve(mark, state=()))
        except StoreStopped:
            raise
        except StorageError as error:
            if not await self._mark_barely(mark, error):
                return False
        self.under_way = False
        if self.delivery.status == SENT:
            self._tell("sent")
        return True

    async def _mark_barely(self, mark: MarkSent, error: StorageError) -> bool:
        """Mark a part without anything that its sender said of it; return whether the store takes that."""
        _log.warning("delivery %d went out, but the store does not take its mark: %s", self.delivery.id, error)
        try:
            self.delivery = await self._write(attrs.evolve(mark, platform_message_id=None, state=(), opened=None))
        except StoreStopped:
            raise
        except StorageError as again:
            await self.give_up(f"it went out, and the store does not take that: {one_line(again)}")
            return False
        return True

    async def defer(
        self, error: str, *, after_s: float, awaits_inbound: bool = False, failed: bool = False, quiet: bool = False
    ) -> None:
        """Put the delivery back to be sent after ``after_s`` seconds. quiet: nobody is told."""
        self.delivery = await self._write(
            self._deferral(error, after_s=after_s, awaits_inbound=awaits_inbound, failed=failed)
        )
        if not quiet:
            self._tell("deferred")

    async def give_up(self, error: str) -> None:
        """Fail the delivery for good, visibly; those behind it go on."""
        self.delivery = await self._write(
            FailDelivery(
                delivery_id=self.delivery.id,
                attempt=self.delivery.attempt,
                now=self._clock.now(),
                error=error,
                maybe_sent=self.maybe_sent,
            )
        )
        _log.warning(
            "delivery %d to %s was given up after %d attempt%s: %s; `hermes outbox list` shows it",
            self.delivery.id,
            self.delivery.target.platform,
            self.delivery.attempt,
            "" if self.delivery.attempt == 1 else "s",
            error,
        )
        self._tell("failed")

    async def put_back(self) -> None:
        """Put the delivery back, due now, because its sender ends; tried once."""
        try:
            await settled(self._store.perform(self._deferral(self.delivery.error, after_s=0.0)))
        except (Conflict, StorageError) as error:
            _log.warning("delivery %d was in hand when its sender ended: %s", self.delivery.id, error)

    def _deferral(
        self, error: str, *, after_s: float, awaits_inbound: bool = False, failed: bool = False
    ) -> DeferDelivery:
        now = self._clock.now()
        return DeferDelivery(
            delivery_id=self.delivery.id,
            attempt=self.delivery.attempt,
            now=now,
            due_at=now + ceil(min(after_s, _LONGEST_S) * 1000),
            error=error,
            awaits_inbound=awaits_inbound,
            failed=failed,
            maybe_sent=self.maybe_sent,
        )

    def _tell(self, status: str) -> None:
        target = self.delivery.target
        self._hooks.fire(
            "hermes_after_delivery",
            lineage_id=self.delivery.lineage_id,
            entrance=Entrance(target.platform, target.account_id),
            status=status,
            attempts=self.delivery.attempt,
        )

    async def _write(self, operation: Operation[T]) -> T:
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return await settled(self._store.perform(operation))
            except (StoreBusy, StoreFull, StoreOutcomeUnknown) as error:
                if pause_s == _FIRST_PAUSE_S:
                    _log.warning("delivery %d could not be written, it is tried again: %s", self.delivery.id, error)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _MOST_PAUSE_S)
