"""Writes of requests for approval."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.operations.operation import Operation

if TYPE_CHECKING:
    from hermes_hookspecs.approvals import Approval  # noqa: F401 - named in a subscript, which linters do not read
    from hermes_hookspecs.ids import ApprovalId, SessionKey
    from hermes_hookspecs.messages import ToolCall
    from hermes_hookspecs.outbox import DeliveryDraft
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.turns import Fence

__all__ = ["AnswerApproval", "AskApproval"]


@attrs.frozen(kw_only=True)
class AskApproval(Operation["Approval"]):
    """Store a request of the running turn, and what its entrance is told of it, in one transaction.

    A call is asked for once in a turn: a second request returns the first one as it stands, and stores nothing. The
    call itself must be stored; its arguments are cut to :data:`~hermes_hookspecs.approvals.MOST_SHOWN` characters.

    :raises LeaseLost: the token is no longer the lineage's; nothing was written.
    """

    fence: Fence
    approval_id: ApprovalId
    call: ToolCall
    source: SessionSource
    session_key: SessionKey | None
    now: int
    expires_at: int
    deliveries: tuple[DeliveryDraft, ...] = ()


@attrs.frozen(kw_only=True)
class AnswerApproval(Operation["Approval"]):
    """Settle an open request; return it. Who may do that is the caller's business.

    :raises Conflict: it is not open: unknown, answered, over, or its turn has ended. Nothing was written.

    Attributes:
        status: ``approved``, ``denied`` or ``expired``. An answer that comes behind ``expires_at`` is too late.
    """

    approval_id: ApprovalId
    status: str
    now: int
    answered_by: str = ""
