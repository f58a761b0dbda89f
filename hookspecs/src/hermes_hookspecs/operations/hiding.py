"""The write that takes rows back, or brings them back: nothing is removed, the model does not see them meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.operations.operation import Operation

if TYPE_CHECKING:
    from hermes_hookspecs.ids import LineageId, MessageId, SessionId
    from hermes_hookspecs.state import StateUpdate
    from hermes_hookspecs.turns import Fence

__all__ = ["Hid", "Hide"]


@attrs.frozen(kw_only=True)
class Hid:
    """What a hiding changed.

    Attributes:
        rows: how many rows changed; 0 where all were as wanted already. session_id: the tip. version: of the lineage.
    """

    lineage_id: LineageId
    session_id: SessionId
    rows: int
    version: int


@attrs.frozen(kw_only=True)
class Hide(Operation[Hid]):
    """Hide the rows of a lineage from ``first`` to ``last``, or show them again.

    Rows that are as wanted already are passed over, and so are summaries: what a compression made of rows is taken back
    by another compression. The lineage, and each segment that a row stands in, count rows that are not hidden. The
    change feed tells of each row (``hide``, ``show``) and of the lineage. Like a step it counts as a renewal.

    Attributes:
        fence: of a turn; one without an agent, usually. last: ``None`` for all behind ``first``.
        show: the rows are shown again. finish: the turn ends with this, done, and the lease is free.
        swap: first and last of rows that are changed the other way; a row between them is not meant by ``first`` and
            ``last``. So one write takes back what was said and brings back what it had replaced.
        state: what its caller has to remember of it, written in the same transaction.

    :raises LeaseLost: the token is no longer the lineage's; nothing was written.
    :raises IllegalMessage: calls of the turn wait for their results; nothing was written.
    :raises Conflict: an expected version of the state did not fit; nothing was written.
    """

    fence: Fence
    first: MessageId
    now: int
    last: MessageId | None = None
    show: bool = False
    finish: bool = False
    swap: tuple[tuple[MessageId, MessageId], ...] = ()
    state: tuple[StateUpdate, ...] = ()
