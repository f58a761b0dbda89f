"""What plugins remember: values that are compared and set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.errors import Conflict
from hermes_hookspecs.state import ABSENT, StateEntry

if TYPE_CHECKING:
    from hermes_core.storage.memory.tables import Tables
    from hermes_hookspecs.operations import PutState
    from hermes_hookspecs.state import StateUpdate

__all__ = ["put_state", "write_state"]


def put_state(tables: Tables, operation: PutState) -> tuple[StateEntry | None, ...]:
    """Run :class:`~hermes_hookspecs.operations.PutState`."""
    return tuple(write_state(tables, update, operation.now) for update in operation.updates)


def write_state(tables: Tables, update: StateUpdate, now: int) -> StateEntry | None:
    """Write one value; return the entry, ``None`` where it was removed.

    :raises Conflict: the entry has another version than the update expects.
    """
    place = (update.namespace, update.key)
    entry = tables.state.get(place)
    if entry is not None and entry.expires_at is not None and entry.expires_at <= now:
        entry = None
    version = ABSENT if entry is None else entry.version
    if update.expected_version is not None and update.expected_version != version:
        raise Conflict(
            f"{update.key!r} of {update.namespace!r} has version {version}, not {update.expected_version}; look again"
        )
    if update.value is None:
        tables.state.pop(place, None)
        return None
    tables.state[place] = StateEntry(
        namespace=update.namespace,
        key=update.key,
        value=update.value,
        version=version + 1,
        updated_at=now,
        person=update.person,
        lineage_id=update.lineage_id,
        expires_at=update.expires_at,
    )
    return tables.state[place]
