"""What the effect of a control row did, in the form that is stored with the row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.inbox import ControlOutcome

if TYPE_CHECKING:
    from hermes_hookspecs.operations.operation import Operation

__all__ = ["outcome_of"]


def outcome_of(effect: Operation[object] | None, result: object) -> ControlOutcome:
    """Return the outcome of an effect from the operation and what it returned.

    :raises ValueError: the operation is none that a control row may have as its effect.
    """
    from hermes_hookspecs.approvals import Approval
    from hermes_hookspecs.operations.approvals import AnswerApproval
    from hermes_hookspecs.operations.branching import Branch
    from hermes_hookspecs.operations.compression import Compress, Compressed
    from hermes_hookspecs.operations.hiding import Hid, Hide
    from hermes_hookspecs.operations.inbox import Withdraw
    from hermes_hookspecs.operations.lineages import BindRoute, Released, ReleaseRoute, Rename, SetFlags
    from hermes_hookspecs.operations.turns import Revoke
    from hermes_hookspecs.sessions import Lineage, SessionEntry
    from hermes_hookspecs.turns import Turn

    if effect is None:
        return ControlOutcome()
    if isinstance(effect, ReleaseRoute) and isinstance(result, Released):
        left = result.lineage
        return ControlOutcome(
            lineage_id=None if left is None else left.id,
            session_id=None if left is None else left.tip,
            stopped=None if result.stopped is None else result.stopped.id,
            superseded=result.superseded,
        )
    if isinstance(effect, BindRoute | Branch) and isinstance(result, SessionEntry):
        return ControlOutcome(lineage_id=result.lineage_id, session_id=result.session_id, superseded=result.superseded)
    if isinstance(effect, Revoke):
        stopped = result if isinstance(result, Turn) else None
        return ControlOutcome(
            lineage_id=effect.lineage_id,
            session_id=None if stopped is None else stopped.session_id,
            stopped=None if stopped is None else stopped.id,
        )
    if isinstance(effect, Rename):
        return ControlOutcome(lineage_id=effect.lineage_id, title=result if isinstance(result, str) else None)
    if isinstance(effect, Withdraw) and isinstance(result, int):
        return ControlOutcome(superseded=result)
    if isinstance(effect, SetFlags | Compress) and isinstance(result, Lineage | Compressed):
        lineage_id = result.id if isinstance(result, Lineage) else result.lineage_id
        tip = result.tip if isinstance(result, Lineage) else result.session.id
        return ControlOutcome(lineage_id=lineage_id, session_id=tip)
    if isinstance(effect, Hide | AnswerApproval) and isinstance(result, Hid | Approval):
        return ControlOutcome(lineage_id=result.lineage_id, session_id=result.session_id)
    raise ValueError(f"{type(effect).__name__} is no effect of a control row")
