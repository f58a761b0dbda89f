"""How a turn ends: the row gets its outcome, inbox rows are done or wait again; broken off, it gets closing rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.handlers.audit import without_a_run
from hermes_core.storage.sqlite.handlers.transcript import closing_rows, store_rows
from hermes_core.storage.sqlite.queries.turns import turn as read_turn
from hermes_core.storage.sqlite.rows import read_ids, read_open_calls

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from hermes_core.storage.sqlite.transaction import Transaction
    from hermes_hookspecs.ids import InboxId, TurnId
    from hermes_hookspecs.turns import Turn

__all__ = ["break_off", "revoke_lease", "settle_turn"]

NONE: frozenset[InboxId] = frozenset()
END_TURN = "UPDATE turns SET outcome = ?, reason = ?, ended_at = ? WHERE no = ? RETURNING inbox_ids"
SETTLE = "UPDATE inbox SET status = 'done', settled_at = ? WHERE id = ? AND status = 'claimed'"
# It keeps its number, and so its place.
WAIT_AGAIN = "UPDATE inbox SET status = 'pending' WHERE id = ? AND status = 'claimed'"
ACTIVE = "SELECT turn_no, turn_id, tip, open_calls FROM lineages WHERE no = ? AND turn_no IS NOT NULL"
LEAVE = """
    UPDATE lineages SET written_at = ?, message_count = message_count + ?, turn_no = NULL, turn_id = NULL,
        open_calls = NULL
    WHERE no = ?
"""
# A lease without holder or turn only counts on.
REVOKE = """
    UPDATE lineages SET version = version + (lease_holder IS NOT NULL OR turn_no IS NOT NULL),
        lease_token = lease_token + 1, lease_renewals = 0, lease_holder = NULL, lease_label = NULL,
        lease_acquired_at = NULL, lease_expires_at = NULL
    WHERE no = ?
"""


def settle_turn(
    tx: Transaction, turn_no: int, outcome: str, reason: str, now: int, *, again: AbstractSet[InboxId] = NONE
) -> None:
    """Write down how a turn ended; the inbox rows that it had claimed are done, those in ``again`` wait once more."""
    (inbox_ids,) = cast("tuple[str]", tx.one(END_TURN, (outcome, reason, now, turn_no)))  # an active turn has a row
    for inbox_id in read_ids(inbox_ids):
        if inbox_id in again:
            tx.run(WAIT_AGAIN, (inbox_id,))
        else:
            tx.run(SETTLE, (now, inbox_id))


def break_off(
    tx: Transaction, lineage_no: int, outcome: str, reason: str, now: int, *, again: AbstractSet[InboxId] = NONE
) -> Turn | None:
    """End the active turn of a lineage that will not end by itself; ``None`` when there is none."""
    found = tx.one(ACTIVE, (lineage_no,))
    if found is None:
        return None
    turn_no, turn_id, tip, waiting = cast("tuple[int, TurnId, str, str | None]", found)  # columns of ACTIVE
    calls = read_open_calls(waiting)
    rows = closing_rows(calls, without_a_run(tx, lineage_no, turn_id, calls), outcome, reason, now)
    tx.run(LEAVE, (now, len(rows), lineage_no))
    store_rows(tx, rows, lineage_no=lineage_no, session_id=tip, turn_no=turn_no)
    settle_turn(tx, turn_no, outcome, reason, now, again=again)
    return read_turn(tx, turn_id)


def revoke_lease(
    tx: Transaction, lineage_no: int, outcome: str, reason: str, now: int, *, again: AbstractSet[InboxId] = NONE
) -> Turn | None:
    """Take the lease of a lineage away and break off its turn; return the turn that ended."""
    tx.run(REVOKE, (lineage_no,))
    return break_off(tx, lineage_no, outcome, reason, now, again=again)
