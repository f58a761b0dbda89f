"""What is removed: lineages, and the routes of entrances that end with their process."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from hermes_core.leases import dead_stamp
from hermes_hookspecs.errors import LeaseBusy, SessionNotFound, StorageError
from hermes_hookspecs.operations import Delete, ForgetRoute

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_core.hooks import Hooks
    from hermes_hookspecs.ids import LineageId, SessionKey
    from hermes_hookspecs.operations import Deleted
    from hermes_hookspecs.ports.store import Store

__all__ = ["FORGETTING_S", "delete", "forget"]

FORGETTING_S = 1.0
"""How long the end of a process may be held up by what it leaves behind."""


def forget(store: Store, keys: Iterable[SessionKey], *, now: int) -> None:
    """Remove routes; a store that cannot do it soon keeps them: they do no harm, and a process must be able to end."""
    with suppress(StorageError, TimeoutError):
        for key in keys:
            forgotten = store.submit(ForgetRoute(key=key, now=now))
            try:
                forgotten.result(FORGETTING_S)
            finally:
                forgotten.cancel()


def delete(store: Store, hooks: Hooks, lineage_id: LineageId, *, now: int, force: bool) -> Deleted:
    """Remove a lineage with all that hangs on it; plugins have heard of it before anything is gone.

    :raises LeaseBusy: a turn runs, and not ``force``. :raises SessionNotFound: no such lineage.
    """
    lease = store.lease(lineage_id)
    if lease is None:
        raise SessionNotFound(lineage_id)
    dead = dead_stamp(lease)
    if lease.holder is not None and dead is None and not force:
        raise LeaseBusy(
            f"{lease.holder.describe()} runs a turn in this session; nothing was removed (--force stops it first)",
            holder=lease.holder.describe(),
        )
    hooks.fire("hermes_before_erase", lineage_id=lineage_id)
    hooks.flush()
    return store.apply(Delete(lineage_id=lineage_id, now=now, presumed_dead=dead, force=force))
