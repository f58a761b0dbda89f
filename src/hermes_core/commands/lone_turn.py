"""A turn without an agent for one write: the lease is taken, the write ends the turn, and whoever waits is woken."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from hermes_hookspecs.errors import LeaseBusy, LeaseLost
from hermes_hookspecs.ids import new_turn_id
from hermes_hookspecs.operations import Begin, Begun, Busy, Control, Finish
from hermes_hookspecs.turns import DONE, Fence

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.turns.surroundings import Surroundings
    from hermes_hookspecs.ids import InboxId, LineageId
    from hermes_hookspecs.operations import Hide
    from hermes_hookspecs.turns import LeaseHolder

__all__ = ["change_under_lease"]


def change_under_lease(
    around: Surroundings,
    lineage_id: LineageId,
    holder: LeaseHolder,
    control_id: InboxId | None,
    change: Callable[[Fence], Hide | None],
) -> bool:
    """Take the lease, make the change and let go of it; return whether it was made here. Blocks.

    :param change: reads under the lease what is there, and returns the write, which ends the turn (``finish``);
        ``None`` where nothing is to be changed. What the row of ``control_id`` did before is not done again.
    :raises LeaseBusy: a turn runs; nothing was changed. :raises SessionNotFound: no such lineage.
    """
    store, clock = around.store, around.clock
    fence = _begin(around, lineage_id, holder)
    made = False
    try:
        operation = change(fence)
        if operation is not None:
            if control_id is None:
                store.apply(operation)
                made = True
            else:
                made = not store.apply(Control(inbox_id=control_id, effect=operation, now=clock.now())).repeated
    finally:
        if not made:
            with suppress(LeaseLost):  # it was made after all, or somebody took the lease
                store.apply(Finish(fence=fence, outcome=DONE, now=clock.now(), touch=False))
        around.waker.wake(lineage_id)
    return made


def _begin(around: Surroundings, lineage_id: LineageId, holder: LeaseHolder) -> Fence:
    now = around.clock.now()
    begin = Begin(
        lineage_id=lineage_id,
        turn_id=new_turn_id(now),
        holder=holder,
        now=now,
        ttl_ms=int(around.times.ttl_s * 1000),
        maintenance=True,
        touch=False,
    )
    begun = around.store.apply(begin)
    if isinstance(begun, Busy) and begun.lease.holder is not None:
        name = begun.lease.holder.describe()
        raise LeaseBusy(f"{name} is answering in this session; try again when it is done", holder=name)
    if not isinstance(begun, Begun):
        raise LeaseBusy("this session is busy; try again in a moment")
    return Fence(lineage_id, begun.turn.id, begun.lease.token)
