"""The deliveries of one served entrance: in order within an address, side by side between addresses."""

from __future__ import annotations

import asyncio
from logging import getLogger
from typing import TYPE_CHECKING

from hermes_core.settling import abandon, settled
from hermes_hookspecs.errors import StorageError
from hermes_hookspecs.outbox import SENDING, address_of

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

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
_TOLD_PAUSE_S = 5.0
"""Seconds of an account's pause from which on the rows that it holds up say so."""
_ABREAST = 8
"""Most addresses of one account that are sent to at a time."""
_FAILING_ABREAST = 5
"""Most of these whose delivery failed before: those that hang or fail again leave places to the others."""
_LOOKED_AT = 100
_LEAVE_S = 30.0
"""Seconds in which what is under way has to be put back: a sender's cleaning up, and a write."""


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
        self._failing: set[str] = set()  # of the addresses with a task
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
        for at, head in self._in_turn(heads):
            address = address_of(head.target)
            if address in self._tasks:
                continue
            wait_s = self._wait_s(head, address)
            if at < _LOOKED_AT and self._is_held_up(head):
                if len(self._tasks) < _ABREAST:
                    self._run(head, address, self._courier.postpone(head))
            elif wait_s > 0:
                next_s = min(next_s, wait_s)
            elif self._has_place(head):
                self._start(head, address)
        return next_s

    async def stop(self) -> None:
        """Cancel what is under way and wait until all of it is put back; leave it where it does not end in time."""
        tasks = self.tasks
        for task in tasks:
            task.cancel()
        if not tasks:
            return
        _, left = await settled(asyncio.wait(tasks, timeout=_LEAVE_S))
        for task in left:
            _log.warning("a delivery of %s does not end; it is left, and found again", self.entrance)
            abandon(task)

    async def _heads_now(self) -> Sequence[Delivery]:
        """Return the heads, none of them older than the tasks: what one has just ended would look like a stranger's."""
        while True:
            ends = self._ends
            heads = await self._heads()
            if ends == self._ends:
                return heads

    async def _heads(self) -> Sequence[Delivery]:
        """Return the first delivery of each address; so many that those that wait or failed hide none that may go."""
        limit = _LOOKED_AT
        while True:
            heads = await asyncio.wrap_future(self._store.submit_read(_heads_of(self.entrance, limit)))
            if len(heads) < limit or any(head.failures == 0 and self._may_start(head) for head in heads):
                return heads
            limit *= 4

    def _in_turn(self, heads: Sequence[Delivery]) -> list[tuple[int, Delivery]]:
        """Return heads with their places: those that never failed first, but for one that did while none is sent."""
        places = list(enumerate(heads))
        fresh = [each for each in places if each[1].failures == 0]
        failing = [each for each in places if each[1].failures > 0]
        first = 0 if self._failing else next((n for n, each in enumerate(failing, 1) if self._may_start(each[1])), 0)
        return failing[:first] + fresh + failing[first:]

    def _has_place(self, head: Delivery) -> bool:
        return len(self._tasks) < _ABREAST and (head.failures == 0 or len(self._failing) < _FAILING_ABREAST)

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

    def _is_held_up(self, head: Delivery) -> bool:
        """Return whether only a pause of the account keeps a delivery back, and its row does not say so yet."""
        # not by is_due: behind a clock that was set back a row stays due, and would be put off for ever
        may_go = head.status != SENDING and not head.awaits_inbound and head.due_at <= self._clock.now()
        return may_go and self._pace.paused_s >= _TOLD_PAUSE_S

    def _start(self, head: Delivery, address: str) -> None:
        self._run(head, address, self._courier.deliver(head, presumed_dead=head.status == SENDING))

    def _run(self, head: Delivery, address: str, work: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(work, name=f"hermes-delivery-{head.id}")
        self._tasks[address] = task
        if head.failures > 0:
            self._failing.add(address)
        task.add_done_callback(lambda done: self._end(address, done))

    def _end(self, address: str, task: asyncio.Task[None]) -> None:
        del self._tasks[address]
        self._failing.discard(address)
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
