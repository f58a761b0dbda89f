"""The lease of a turn that runs: renewed again and again, and looked at when somebody may have taken it."""

from __future__ import annotations

import asyncio
from logging import getLogger
from typing import TYPE_CHECKING

from hermes_hookspecs.errors import LeaseLost, StorageError, StoreStopped
from hermes_hookspecs.operations import Renew

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from hermes_core.turns.surroundings import Surroundings
    from hermes_hookspecs.turns import Fence

__all__ = ["Renewal"]

_log = getLogger(__name__)

_SHORT_S = 0.05
"""Seconds after which a turn begins to listen for its own revocation."""


class Renewal:
    """Keeps the lease of one turn.

    A store that does not answer is no reason to give the turn up: every write of it is fenced, so whoever took the
    lease meanwhile is safe, and the next renewal or write tells. Only a store that takes no more writes is.
    """

    def __init__(self, around: Surroundings, fence: Fence) -> None:
        self._store = around.store
        self._clock = around.clock
        self._waker = around.waker
        self._times = around.times
        self._fence = fence
        self._is_failing = False

    async def run(self) -> None:
        """Renew until cancelled; a signal makes it look at once.

        :raises LeaseLost: the lease is gone. :raises StoreStopped: the store takes no more writes.
        """
        clock = asyncio.get_running_loop().time
        due = clock() + self._times.renew_s
        await asyncio.sleep(min(_SHORT_S, self._times.renew_s))  # most turns end before anybody could want to stop them
        waiter = self._waker.enter(self._fence.lineage_id)
        try:
            await self._try(self._check())  # whatever happened before anybody listened
            while True:
                if await waiter.wait(max(0.0, due - clock()), look=False):
                    await self._try(self._check())
                if clock() >= due:
                    await self._try(self._renew())
                    due = clock() + self._times.renew_s
        finally:
            self._waker.leave(waiter)

    async def _check(self) -> None:
        lineage_id = self._fence.lineage_id
        lease = await asyncio.wrap_future(self._store.submit_read(lambda reader: reader.lease(lineage_id)))
        if lease is None or lease.token != self._fence.token:
            raise LeaseLost(lineage_id, self._fence.token)

    async def _renew(self) -> None:
        await self._store.perform(Renew(fence=self._fence, now=self._clock.now(), ttl_ms=self._times.ttl_ms))

    async def _try(self, work: Awaitable[None]) -> None:
        """Do it; what the store fails with is told once, until it answers again."""
        try:
            await work
        except StoreStopped:
            raise
        except StorageError as error:
            if not self._is_failing:
                _log.warning("the lease of turn %s was not renewed, it is tried again: %s", self._fence.turn_id, error)
            self._is_failing = True
        else:
            self._is_failing = False
