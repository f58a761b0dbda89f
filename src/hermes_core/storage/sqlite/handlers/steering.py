"""Accepted messages that come into a turn while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.handlers.tips import said_at
from hermes_core.storage.sqlite.rows import read_source
from hermes_hookspecs.errors import Conflict, IllegalMessage
from hermes_hookspecs.messages import USER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_core.storage.sqlite.transaction import Transaction
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.messages import MessageDraft
    from hermes_hookspecs.turns import Fence

__all__ = ["take_steered"]

STORED = "SELECT 1 FROM messages WHERE lineage_no = (SELECT no FROM lineages WHERE id = ?) AND inbox_id = ?"
TAKE = """
    UPDATE inbox SET status = 'done', settled_at = ?, attempts = attempts + 1
    WHERE id = ? AND status = 'pending' AND kind <> 'control' AND lineage_id = ?
    RETURNING source
"""
JOIN_TURN = "UPDATE turns SET inbox_ids = ltrim(inbox_ids || ' ' || ?) WHERE id = ?"


def take_steered(tx: Transaction, fence: Fence, drafts: Sequence[MessageDraft], now: int) -> None:
    """Take the waiting messages that some drafts hold into the turn of a fence, which was checked.

    :raises IllegalMessage: a draft is no user row, or its message is in the transcript already.
    :raises Conflict: a message does not wait, or not in this lineage.
    """
    lineage_id = fence.lineage_id
    _check(tx, lineage_id, drafts)
    for draft in drafts:
        taken = tx.one(TAKE, (now, draft.inbox_id, lineage_id))
        if taken is None:
            raise Conflict(f"message {draft.inbox_id} does not wait in {lineage_id} (any more); look again")
        tx.run(JOIN_TURN, (draft.inbox_id, fence.turn_id))
        said_at(tx, lineage_id, read_source(cast("tuple[str]", taken)[0]), now)  # what TAKE returns


def _check(tx: Transaction, lineage_id: LineageId, drafts: Sequence[MessageDraft]) -> None:
    seen: set[int | None] = set()
    for draft in drafts:
        if draft.role != USER:
            raise IllegalMessage(f"a {draft.role} row cannot hold the accepted message {draft.inbox_id}")
        if draft.inbox_id in seen or tx.one(STORED, (lineage_id, draft.inbox_id)) is not None:
            raise IllegalMessage(f"the accepted message {draft.inbox_id} is stored already; it is stored once")
        seen.add(draft.inbox_id)
