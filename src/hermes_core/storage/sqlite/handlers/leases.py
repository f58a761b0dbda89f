"""A lease that goes on, and one that is taken away."""

# ruff: noqa: S608 - statements are put together from constants of this package, values are always bound

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.handlers.deliveries import cells_of, store_deliveries
from hermes_core.storage.sqlite.handlers.turn_ends import revoke_lease
from hermes_core.storage.sqlite.queries.turns import LEASE, read_lease
from hermes_hookspecs.errors import LeaseLost, SessionNotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.storage.sqlite.transaction import Transaction
    from hermes_hookspecs.operations import Renew, Revoke
    from hermes_hookspecs.turns import Lease, Turn

__all__ = ["renew", "revoke"]

RENEW = f"""
    UPDATE lineages AS l SET lease_renewals = lease_renewals + 1, lease_expires_at = ?, lease_ttl_ms = ?
    WHERE id = ? AND lease_token = ? AND turn_id = ?
    RETURNING {LEASE.replace("l.", "")}
"""
STAMP = "SELECT no, lease_token, lease_renewals FROM lineages WHERE id = ?"


def renew(operation: Renew) -> Callable[[Transaction], Lease]:
    """Work of :class:`~hermes_hookspecs.operations.Renew`."""
    fence = operation.fence

    def work(tx: Transaction) -> Lease:
        expires = operation.now + operation.ttl_ms
        found = tx.one(RENEW, (expires, operation.ttl_ms, fence.lineage_id, fence.token, fence.turn_id))
        if found is None:
            raise LeaseLost(fence.lineage_id, fence.token)
        return read_lease(found)

    return work


def revoke(operation: Revoke) -> Callable[[Transaction], Turn | None]:
    """Work of :class:`~hermes_hookspecs.operations.Revoke`."""
    deliveries = cells_of(operation.deliveries)

    def work(tx: Transaction) -> Turn | None:
        found = tx.one(STAMP, (operation.lineage_id,))
        if found is None:
            raise SessionNotFound(operation.lineage_id)
        lineage_no, token, renewals = cast("tuple[int, int, int]", found)  # columns of STAMP
        expected = operation.expected
        if expected is not None and (token, renewals) != (expected.token, expected.renewals):
            return None
        now = operation.now
        ended = revoke_lease(tx, lineage_no, operation.outcome, operation.reason, now, again=operation.again)
        if ended is not None:
            store_deliveries(tx, deliveries, now)
        return ended

    return work
