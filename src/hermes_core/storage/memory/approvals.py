"""Requests for approval: asked under the lease, answered once by whoever is quicker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_core.storage.memory.outbox import store_deliveries
from hermes_core.storage.memory.turns import check_fence
from hermes_hookspecs.approvals import EXPIRED, MOST_SHOWN, OPEN, WITHDRAWN, Approval
from hermes_hookspecs.errors import Conflict
from hermes_hookspecs.turns import ACTIVE

if TYPE_CHECKING:
    from hermes_core.storage.memory.tables import Tables
    from hermes_hookspecs.ids import ApprovalId
    from hermes_hookspecs.operations import AnswerApproval, AskApproval

__all__ = ["answer_approval", "as_it_stands", "ask_approval"]


def as_it_stands(tables: Tables, approval: Approval) -> Approval:
    """Return a request; one whose turn has ended is asked by nobody any more."""
    turn = tables.turns.get(approval.turn_id)
    settled_at = approval.settled_at
    if settled_at is None and turn is not None:
        settled_at = turn.ended_at
    is_over = approval.status == OPEN and (turn is None or turn.outcome != ACTIVE)
    return attrs.evolve(approval, status=WITHDRAWN if is_over else approval.status, settled_at=settled_at)


def ask_approval(tables: Tables, operation: AskApproval) -> Approval:
    """Run :class:`~hermes_hookspecs.operations.AskApproval`."""
    turn, call = check_fence(tables, operation.fence), operation.call
    for known in tables.approvals.values():
        if (known.turn_id, known.call_id) == (turn.id, call.id):
            return as_it_stands(tables, known)
    tables.approvals[operation.approval_id] = asked = Approval(
        id=operation.approval_id,
        lineage_id=turn.lineage_id,
        session_id=tables.lineages[turn.lineage_id].tip,
        turn_id=turn.id,
        call_id=call.id,
        tool_name=call.name,
        effect=call.effect,
        arguments=call.arguments[:MOST_SHOWN],
        status=OPEN,
        asked_at=operation.now,
        expires_at=operation.expires_at,
        settled_at=None,
        session_key=operation.session_key,
        source=operation.source,
    )
    store_deliveries(tables, operation.deliveries, operation.now)
    return asked


def answer_approval(tables: Tables, operation: AnswerApproval) -> Approval:
    """Run :class:`~hermes_hookspecs.operations.AnswerApproval`."""
    found = _there(tables, operation.approval_id)
    too_late = operation.status != EXPIRED and operation.now >= found.expires_at
    if found.status != OPEN or too_late:
        status = EXPIRED if too_late and found.status == OPEN else found.status
        raise Conflict(f"request {operation.approval_id} is {status}; nothing was changed")
    answered = attrs.evolve(found, status=operation.status, settled_at=operation.now, answered_by=operation.answered_by)
    tables.approvals[found.id] = answered
    return answered


def _there(tables: Tables, approval_id: ApprovalId) -> Approval:
    found = tables.approvals.get(approval_id)
    if found is None:
        raise Conflict(f"there is no request {approval_id}; nothing was changed")
    return as_it_stands(tables, found)
