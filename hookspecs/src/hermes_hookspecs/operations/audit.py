"""Writes of what tools did, beside those of the turn itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.operations.operation import Operation

if TYPE_CHECKING:
    from hermes_hookspecs.audit import AuditEntry
    from hermes_hookspecs.ids import TurnId

__all__ = ["RecordAudit"]


@attrs.frozen(kw_only=True)
class RecordAudit(Operation[None]):
    """Add what is known of calls of a turn that may have lost its lease already; such rows are marked late.

    An entry of a call that has a row changes its outcome, duration, result and approval; nothing happens for a turn
    that is gone.
    """

    turn_id: TurnId
    entries: tuple[AuditEntry, ...]
    now: int
