"""State of plugins, compared and set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.storage.sqlite.queries.plugin_state import entry
from hermes_hookspecs.errors import Conflict
from hermes_hookspecs.state import ABSENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.storage.sqlite.transaction import Transaction
    from hermes_hookspecs.operations import PutState
    from hermes_hookspecs.state import StateEntry, StateUpdate

__all__ = ["put", "put_state"]

REMOVE = "DELETE FROM plugin_state WHERE namespace = ? AND key = ?"
PUT = """
    INSERT OR REPLACE INTO plugin_state (namespace, key, value, version, updated_at, expires_at, person, lineage_id)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""


def put_state(operation: PutState) -> Callable[[Transaction], tuple[StateEntry | None, ...]]:
    """Work of :class:`~hermes_hookspecs.operations.PutState`."""

    def work(tx: Transaction) -> tuple[StateEntry | None, ...]:
        return tuple([put(tx, update, operation.now) for update in operation.updates])

    return work


def put(tx: Transaction, update: StateUpdate, now: int) -> StateEntry | None:
    """Write one entry; return it as it stands now, ``None`` when it was removed.

    :raises Conflict: it has another version than expected; the whole operation is undone.
    """
    place = (update.namespace, update.key)
    found = entry(tx, *place, now)
    version = ABSENT if found is None else found.version
    if update.expected_version is not None and update.expected_version != version:
        raise Conflict(
            f"{update.key!r} of {update.namespace!r} has version {version}, not {update.expected_version}; look again"
        )
    if update.value is None:
        tx.run(REMOVE, place)
        return None
    values = (update.value, version + 1, now, update.expires_at, update.person, update.lineage_id)
    tx.run(PUT, (*place, *values))
    # Whether it has expired already is asked by readers, not here.
    return entry(tx, *place, now if update.expires_at is None else min(now, update.expires_at - 1))
