"""The deliveries of one served entrance: in order within an address, side by side between addresses."""

from __future__ import annotations

import asyncio
from logging import getLogger
from typing import TYPE_CHECKING

from hermes_core.settling import settled
from hermes_hookspecs.errors import StorageError
from hermes_hookspecs.outbox import SENDING, address_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_core.outbox.courier import Courier
    from hermes_core.outbox.limits import AccountPace
    from hermes_core.outbox.owners import OwnerWatch
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.outbox import Delivery
    from hermes_hookspecs.ports.store import Store, StoreReader
    from hermes_hookspecs.source import Entrance
    from hermes_hookspecs.turns import LeaseHolder

__all__ = ["LONGEST_LOOK_S", "Lane"]

_log = getLogger(__name__)

LONGEST_LOOK_S = 60.0
"""Seconds after which an entrance is looked at again even if nothing seems due: somebody may have set the clock."""
_OTHERS_LOOK_S = 1.0
"""The same while somebody else sends, who may die."""
_AFTER_FAILURE_S = 1.0
_ABREAST = 8
"""Most addresses of one account that are sent to at a time."""
_LOOKED_AT = 100


class Lane:
    """What goes out through one entrance. Holds at most one task per address. For one event loop.

    Attributes:
        in_the_way: a sender elsewhere that somebody waits for, found by the last look. ended: called after each task.
    """

    def __init__(
        self, entrance: Entrance, *, store: Store, clock: Clock, courier: Courier, pace: AccountPace, owners: OwnerWatch
    ) -> None:
        self.entrance = entrance
        self.in_the_way: LeaseHolder | None = None
        self.ended: Callable[[], None] | None = None
        self._store = store
        self._clock = clock
        self._courier = courier
        self._pace = pace
        self._owners = owners
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._ends = 0

    @property
    def tasks(self) -> tuple[asyncio.Task[None], ...]:
        """Return the tasks that send at this moment."""
        return tuple(self._tasks.values())

    async def look(self) -> float:
        """Begin with every delivery whose turn it is; return the seconds until another one may be due.

        :raises StorageError: the store could not be read.
        """
        heads = await self._heads_now()
        self.in_the_way = None
        self._owners.forget_others(frozenset(head.id for head in heads if head.status == SENDING))
        next_s = LONGEST_LOOK_S
        for head in heads:
            address = address_of(head.target)
            if address in self._tasks:
                continue
            wait_s = self._wait_s(head, address)
            if wait_s > 0:
                next_s = min(next_s, wait_s)
            elif len(self._tasks) < _ABREAST:
                self._start(head, address)
        return next_s

    async def stop(self) -> None:
        """Cancel what is under way and wait until all of it is put back."""
        tasks = self.tasks
        for task in tasks:
            task.cancel()
        if tasks:
            await settled(asyncio.wait(tasks))

    async def _heads_now(self) -> Sequence[Delivery]:
        """Return the heads, none of them older than the tasks: what one has just ended would look like a stranger's."""
        while True:
            ends = self._ends
            heads = await self._heads()
            if ends == self._ends:
                return heads

    async def _heads(self) -> Sequence[Delivery]:
        """Return the first delivery of each address; so many that those that only wait hide none that is due."""
        limit = _LOOKED_AT
        while True:
            heads = await asyncio.wrap_future(self._store.submit_read(_heads_of(self.entrance, limit)))
            if len(heads) < limit or any(self._may_start(head) for head in heads):
                return heads
            limit *= 4

    def _may_start(self, head: Delivery) -> bool:
        address = address_of(head.target)
        return address not in self._tasks and self._wait_s(head, address) <= 0

    def _wait_s(self, head: Delivery, address: str) -> float:
        """Return the seconds until a delivery may go, ``0.0`` for now."""
        pace_s = self._pace.wait_s(address)
        if head.status == SENDING:
            if self._owners.presumed_dead(head):
                return pace_s
            self.in_the_way = head.owner
            return _OTHERS_LOOK_S
        if head.awaits_inbound:
            return LONGEST_LOOK_S
        return pace_s if head.is_due(self._clock.now()) else max(pace_s, (head.due_at - self._clock.now()) / 1000)

    def _start(self, head: Delivery, address: str) -> None:
        work = self._courier.deliver(head, presumed_dead=head.status == SENDING)
        task = asyncio.get_running_loop().create_task(work, name=f"hermes-delivery-{head.id}")
        self._tasks[address] = task
        task.add_done_callback(lambda done: self._end(address, done))

    def _end(self, address: str, task: asyncio.Task[None]) -> None:
        del self._tasks[address]
        self._ends += 1
        error = None if task.cancelled() else task.exception()
        if error is not None:
            # without the pause the next look would begin with the same delivery at once
            self._pace.pause(_AFTER_FAILURE_S)
            trace = None if isinstance(error, StorageError) else error
            _log.warning("a delivery of %s was left: %s", self.entrance, error, exc_info=trace)
        if self.ended is not None:
            self.ended()


def _heads_of(entrance: Entrance, limit: int) -> Callable[[StoreReader], Sequence[Delivery]]:
    return lambda reader: reader.next_deliveries((entrance,), limit=limit)
