"""A lineage goes on in a child session with a summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_core.storage.memory.legality import open_calls
from hermes_core.storage.memory.turns import check_fence, finish
from hermes_hookspecs.errors import Conflict, IllegalMessage
from hermes_hookspecs.messages import KIND_SUMMARY, TOOL
from hermes_hookspecs.operations import Compressed, Finish
from hermes_hookspecs.operations.compression import child_title, is_summary
from hermes_hookspecs.sessions import Session
from hermes_hookspecs.turns import DONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_core.storage.memory.tables import Tables
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.operations import Compress
    from hermes_hookspecs.turns import Turn

__all__ = ["compress"]


def compress(tables: Tables, operation: Compress) -> Compressed:
    """Run :class:`~hermes_hookspecs.operations.Compress`."""
    known = tables.sessions.get(operation.session_id)
    if known is not None:
        return Compressed(lineage_id=known.lineage_id, session=known, version=tables.lineages[known.lineage_id].version)
    turn = check_fence(tables, operation.fence)
    tip = tables.lineages[turn.lineage_id].tip
    if tip != operation.expected:
        raise Conflict(f"{turn.lineage_id} goes on in {tip} by now, not in {operation.expected}; look again")
    _check(tables, operation, turn)
    turn = _go_on(tables, operation, turn)
    drafts = () if operation.summary is None else (operation.summary,)
    rows = tables.add_rows(turn.lineage_id, turn.session_id, turn.id, drafts, operation.now)
    if operation.kept_from is None:
        child = tables.sessions[turn.session_id]
        tables.sessions[child.id] = attrs.evolve(child, kept_from=rows[0].id)
    tables.note_lineage(turn.lineage_id, operation.now)
    version = tables.bump(turn.lineage_id)
    if operation.finish:
        end = Finish(fence=operation.fence, outcome=DONE, now=operation.now, touch=False)
        version = finish(tables, end).version
    return Compressed(lineage_id=turn.lineage_id, session=tables.sessions[turn.session_id], version=version)


def _check(tables: Tables, operation: Compress, turn: Turn) -> None:
    rows = tables.transcripts[turn.lineage_id]
    waiting = open_calls(rows, turn.id)
    if waiting:
        raise IllegalMessage(f"nothing is compressed before the results of {', '.join(waiting)}")
    _check_beginning(operation, rows)
    if operation.summary is not None and not is_summary(operation.summary):
        raise IllegalMessage("a summary is a marked system row with text, without calls")


def _check_beginning(operation: Compress, rows: Sequence[Message]) -> None:
    if operation.kept_from is None:
        if operation.summary is None:
            raise IllegalMessage("a context of nothing but its summary needs one")
        return
    first = next((row for row in rows if row.id == operation.kept_from), None)
    if first is None or first.hidden or first.role == TOOL or first.kind == KIND_SUMMARY:
        raise IllegalMessage(f"row {operation.kept_from} is none that the context of this lineage may begin with")


def _go_on(tables: Tables, operation: Compress, turn: Turn) -> Turn:
    """Close the parent, make the child, move the tip and the turn there; return the turn."""
    lineage, lease = tables.lineages[turn.lineage_id], tables.leases[turn.lineage_id]
    parent, number = tables.sessions[lineage.tip], lineage.segments + 1
    tables.sessions[parent.id] = attrs.evolve(parent, ended_at=operation.now, end_reason=operation.reason)
    tables.sessions[operation.session_id] = Session(
        id=operation.session_id,
        lineage_id=lineage.id,
        source=parent.source,
        account_id=parent.account_id,
        user_id=parent.user_id,
        model=parent.model,
        model_config=parent.model_config,
        system_prompt=parent.system_prompt,
        parent_session_id=parent.id,
        kept_from=operation.kept_from,
        title=child_title(lineage.title, number),
        started_at=operation.now,
        ended_at=parent.ended_at,
        end_reason=parent.end_reason,
    )
    tables.lineages[lineage.id] = attrs.evolve(lineage, tip=operation.session_id, segments=number)
    tables.leases[lineage.id] = attrs.evolve(lease, renewals=lease.renewals + 1)
    tables.turns[turn.id] = attrs.evolve(turn, session_id=operation.session_id)
    return tables.turns[turn.id]
