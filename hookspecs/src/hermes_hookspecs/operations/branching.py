"""The write by which a conversation gets a second way to go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.operations.operation import Operation

if TYPE_CHECKING:
    from hermes_hookspecs.ids import LineageId, SessionId, SessionKey
    from hermes_hookspecs.principal import Owner
    from hermes_hookspecs.sessions import SessionEntry  # noqa: F401 - named in a subscript, which linters do not read
    from hermes_hookspecs.source import KeyPolicy, SessionSource

__all__ = ["Branch"]


@attrs.frozen(kw_only=True)
class Branch(Operation["SessionEntry"]):
    """Make a lineage that begins where another one stands, and let ``key`` lead to it: one transaction.

    Its session begins with copies of the rows of the origin's context, in their order: the tip's own summary and what
    is not hidden from ``kept_from`` on. A copy belongs to no turn and answers no message. Model, its configuration and
    the system text are the tip's, the preview is the origin's; numbers begin anew. The lineage remembers the tip
    (``Lineage.branched_from``), which goes its own way, and is private unless all of that was said in this very room.
    Pending rows of the key that are the origin's go along; the origin ends its tip as ``session_switch`` when no route
    leads to it any more.

    Recognised by ``session_id``: a repetition answers with what the key leads to.

    Attributes:
        origin: the lineage. expected: its tip, else :class:`Conflict`.
        session_id, lineage_id: of what is made, fresh. owner: whose it is. shared: several people write there.
        title: with `` #2``, `` #3`` ... behind it where it is taken; ``None`` for none.

    :raises SessionNotFound: no such lineage. :raises LeaseBusy: a turn runs there; nothing was written.
    """

    key: SessionKey
    key_version: int
    source: SessionSource
    owner: Owner
    policy: KeyPolicy
    shared: bool
    origin: LineageId
    expected: SessionId
    session_id: SessionId
    lineage_id: LineageId
    now: int
    title: str | None = None
