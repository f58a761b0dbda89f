"""What plugins remember."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_hookspecs.state import StateEntry

if TYPE_CHECKING:
    from hermes_core.storage.sqlite.transaction import Reader, SQLiteValue
    from hermes_hookspecs.ids import LineageId

    EntryRow = tuple[str, str, str, int, int, str | None, LineageId | None, int | None]

__all__ = ["entries", "entry"]

ENTRY = """
    SELECT namespace, key, value, version, updated_at, person, lineage_id, expires_at FROM plugin_state
"""
LIVE = "(expires_at IS NULL OR expires_at > ?)"


def _entry(row: tuple[SQLiteValue, ...]) -> StateEntry:
    namespace, key, value, version, updated, person, lineage_id, expires = cast("EntryRow", row)  # columns of ENTRY
    return StateEntry(
        namespace=namespace,
        key=key,
        value=value,
        version=version,
        updated_at=updated,
        person=person,
        lineage_id=lineage_id,
        expires_at=expires,
    )


def entry(reader: Reader, namespace: str, key: str, now: int) -> StateEntry | None:
    """One entry that has not expired."""
    row = reader.one(f"{ENTRY} WHERE namespace = ? AND key = ? AND {LIVE}", (namespace, key, now))
    return None if row is None else _entry(row)


def entries(reader: Reader, namespace: str, now: int, prefix: str) -> tuple[StateEntry, ...]:
    """Entries of a namespace whose key begins with ``prefix``, in order of their keys."""
    rows = reader.all(f"{ENTRY} WHERE namespace = ? AND key >= ? AND {LIVE} ORDER BY key", (namespace, prefix, now))
    return tuple(found for found in map(_entry, rows) if found.key.startswith(prefix))
