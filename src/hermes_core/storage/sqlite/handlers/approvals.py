"""Requests for approval: asked under the lease, answered once by whoever is quicker."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.handlers.deliveries import cells_of, store_deliveries
from hermes_core.storage.sqlite.queries.records import approval
from hermes_core.storage.sqlite.rows import source_text
from hermes_hookspecs.approvals import EXPIRED, MOST_SHOWN, OPEN
from hermes_hookspecs.errors import Conflict, LeaseLost
from hermes_hookspecs.principal import owner_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.storage.sqlite.transaction import Transaction
    from hermes_hookspecs.approvals import Approval
    from hermes_hookspecs.ids import ApprovalId
    from hermes_hookspecs.operations import AnswerApproval, AskApproval

__all__ = ["answer_approval", "ask_approval"]

FENCED = "SELECT tip FROM lineages WHERE id = ? AND lease_token = ? AND turn_id = ?"
KNOWN = "SELECT id FROM approvals WHERE turn_id = ? AND call_id = ?"
INSERT = """
    INSERT INTO approvals (id, lineage_id, session_id, turn_id, call_id, tool_name, effect, status, asked_at,
        expires_at, session_key, person, arguments, source)
    VALUES (?, ?, ?, ?, ?, ?, ?, 'open', ?, ?, ?, ?, ?, ?)
"""
ANSWER = "UPDATE approvals SET status = ?, settled_at = ?, answered_by = ? WHERE id = ?"


def ask_approval(operation: AskApproval) -> Callable[[Transaction], Approval]:
    """Work of :class:`~hermes_hookspecs.operations.AskApproval`."""
    fence, call = operation.fence, operation.call
    person = str(owner_of(operation.source, shared=False))
    source, deliveries = source_text(operation.source), cells_of(operation.deliveries)

    def work(tx: Transaction) -> Approval:
        found = tx.one(FENCED, (fence.lineage_id, fence.token, fence.turn_id))
        if found is None:
            raise LeaseLost(fence.lineage_id, fence.token)
        known = tx.one(KNOWN, (fence.turn_id, call.id))
        if known is not None:
            return _there(tx, cast("tuple[ApprovalId]", known)[0])  # the column of KNOWN
        what = (fence.turn_id, call.id, call.name, call.effect, operation.now, operation.expires_at)
        who = (operation.session_key, person, call.arguments[:MOST_SHOWN], source)
        tx.run(INSERT, (operation.approval_id, fence.lineage_id, found[0], *what, *who))
        store_deliveries(tx, deliveries, operation.now)
        return _there(tx, operation.approval_id)

    return work


def answer_approval(operation: AnswerApproval) -> Callable[[Transaction], Approval]:
    """Work of :class:`~hermes_hookspecs.operations.AnswerApproval`."""

    def work(tx: Transaction) -> Approval:
        found = _there(tx, operation.approval_id)
        too_late = operation.status != EXPIRED and operation.now >= found.expires_at
        if found.status != OPEN or too_late:
            status = EXPIRED if too_late and found.status == OPEN else found.status
            raise Conflict(f"request {operation.approval_id} is {status}; nothing was changed")
        tx.run(ANSWER, (operation.status, operation.now, operation.answered_by, operation.approval_id))
        return _there(tx, operation.approval_id)

    return work


def _there(tx: Transaction, approval_id: ApprovalId) -> Approval:
    found = approval(tx, approval_id)
    if found is None:
        raise Conflict(f"there is no request {approval_id}; nothing was changed")
    return found
