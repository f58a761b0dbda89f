"""A lineage is branched off: a fresh one begins with copies of the rows of the other's context."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_core.storage.memory.routes import lead
from hermes_core.storage.memory.tables import entry_of
from hermes_core.storage.memory.titles import free_title
from hermes_hookspecs.errors import Conflict, LeaseBusy
from hermes_hookspecs.messages import KIND_SUMMARY, MessageDraft
from hermes_hookspecs.principal import room_of
from hermes_hookspecs.sessions import Lineage, Session
from hermes_hookspecs.turns import ACTIVE, Lease

if TYPE_CHECKING:
    from hermes_core.storage.memory.tables import Tables
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.operations import Branch
    from hermes_hookspecs.sessions import SessionEntry

__all__ = ["branch"]

_COPIED = tuple(field.name for field in attrs.fields(MessageDraft) if field.name != "inbox_id")


def branch(tables: Tables, operation: Branch) -> SessionEntry:
    """Run :class:`~hermes_hookspecs.operations.Branch`."""
    known = tables.sessions.get(operation.session_id)
    if known is not None:
        return entry_of(tables, known.lineage_id, operation.key)
    origin = tables.lineage(operation.origin)
    if any(turn.lineage_id == origin.id and turn.outcome == ACTIVE for turn in tables.turns.values()):
        holder = tables.leases[origin.id].holder
        who = "somebody" if holder is None else holder.describe()
        raise LeaseBusy(f"a turn of {who} runs in {origin.tip}; branch off when it is done", holder=who)
    if origin.tip != operation.expected:
        raise Conflict(f"{origin.id} goes on in {origin.tip} by now, not in {operation.expected}; look again")
    _make(tables, operation, origin)
    _lead(tables, operation)
    return entry_of(tables, operation.lineage_id, operation.key, created=True)


def _make(tables: Tables, operation: Branch, origin: Lineage) -> None:
    source, lineage_id, now, tip = operation.source, operation.lineage_id, operation.now, tables.sessions[origin.tip]
    title = None if operation.title is None else free_title(tables, operation.owner, operation.title)
    tables.sessions[operation.session_id] = Session(
        id=operation.session_id,
        lineage_id=lineage_id,
        source=source.platform,
        account_id=source.account_id,
        user_id=source.participant,
        model=tip.model,
        model_config=tip.model_config,
        system_prompt=tip.system_prompt,
        title=title,
        started_at=now,
    )
    tables.lineages[lineage_id] = Lineage(
        id=lineage_id,
        tip=operation.session_id,
        owner=operation.owner,
        source=source,
        shared=operation.shared,
        title=title,
        title_origin=None if title is None else "user",
        pinned=False,
        archived=False,
        created_at=now,
        last_activity=now,
        message_count=0,
        turn_count=0,
        segments=1,
        preview=origin.preview,
        version=1,
        room=origin.room if origin.room == room_of(source) else None,
        branched_from=tip.id,
    )
    tables.transcripts[lineage_id] = ()
    tables.leases[lineage_id] = Lease(
        lineage_id=lineage_id, token=0, renewals=0, holder=None, acquired_at=None, expires_at=None
    )
    copies = [_copy(row) for row in tables.transcripts[origin.id] if _is_meant(row, tip)]
    tables.add_rows(lineage_id, operation.session_id, None, copies, now)
    tables.lineages[lineage_id] = attrs.evolve(tables.lineages[lineage_id], preview=origin.preview)
    tables.note_lineage(lineage_id, now)


def _is_meant(row: Message, tip: Session) -> bool:
    if row.hidden or row.id < (tip.kept_from or 0):
        return False
    return row.kind != KIND_SUMMARY or row.session_id == tip.id


def _copy(row: Message) -> MessageDraft:
    return MessageDraft(**{name: getattr(row, name) for name in _COPIED})


def _lead(tables: Tables, operation: Branch) -> None:
    """Let the key lead to the branch; what waits at its place goes along."""
    before = tables.routes.get(operation.key)
    left = None if before is None else before.lineage_id
    lead(tables, operation, operation.lineage_id)
    for item in tables.pending(key=operation.key):
        if item.lineage_id in {left, None}:
            tables.give_lineage(item, operation.lineage_id)
    if left is not None:
        tables.end_tip(left, "session_switch", operation.now)
