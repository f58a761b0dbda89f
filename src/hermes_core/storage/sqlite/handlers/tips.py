"""The tip of a lineage: ended when no route leads to it any more, reopened when one does again."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.rows import room_text

if TYPE_CHECKING:
    from hermes_core.storage.sqlite.transaction import Transaction
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.source import SessionSource

__all__ = ["bump", "end_tip", "note_lineage", "reopen_tip", "said_at"]

END = """
    UPDATE sessions SET ended_at = ?, end_reason = ?
    WHERE id = (SELECT tip FROM lineages WHERE id = ?) AND ended_at IS NULL
    AND NOT EXISTS (SELECT 1 FROM routes WHERE lineage_id = ?)
"""
REOPEN = """
    UPDATE sessions SET ended_at = NULL, end_reason = NULL
    WHERE id = (SELECT tip FROM lineages WHERE id = ?) AND ended_at IS NOT NULL
"""
BUMP = "UPDATE lineages SET version = version + 1 WHERE id = ?"
MAKE_PRIVATE = "UPDATE lineages SET room = NULL WHERE id = ? AND room IS NOT NULL AND room IS NOT ? RETURNING no"
NOTE = "INSERT INTO changes (kind, lineage_no, at) VALUES (?, ?, ?)"


def end_tip(tx: Transaction, lineage_id: LineageId, reason: str, now: int) -> None:
    """End the tip of a lineage that no route leads to; one that has ended keeps its reason."""
    if tx.run(END, (now, reason, lineage_id, lineage_id)):
        bump(tx, lineage_id)


def reopen_tip(tx: Transaction, lineage_id: LineageId) -> bool:
    """Take back the end of a lineage's tip; say whether it had ended. The caller counts the version."""
    return tx.run(REOPEN, (lineage_id,)) > 0


def said_at(tx: Transaction, lineage_id: LineageId, source: SessionSource, now: int) -> None:
    """Make a lineage private once something of it is said elsewhere than in its room, and tell the change feed."""
    changed = tx.one(MAKE_PRIVATE, (lineage_id, room_text(source)))
    if changed is not None:
        note_lineage(tx, cast("tuple[int]", changed)[0], now)  # what MAKE_PRIVATE returns


def bump(tx: Transaction, lineage_id: LineageId) -> None:
    """Count one write of a lineage."""
    tx.run(BUMP, (lineage_id,))


def note_lineage(tx: Transaction, lineage_no: int, now: int, kind: str = "lineage") -> None:
    """Tell the change feed about a lineage; its rows tell of themselves."""
    tx.run(NOTE, (kind, lineage_no, now))
