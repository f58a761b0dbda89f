"""A lineage is branched off: a fresh one begins with copies of the rows of the other's context."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import attrs

from hermes_core.storage.sqlite.handlers.entries import lead
from hermes_core.storage.sqlite.handlers.routes import CARRY
from hermes_core.storage.sqlite.handlers.tips import end_tip, note_lineage
from hermes_core.storage.sqlite.handlers.titles import free_title
from hermes_core.storage.sqlite.queries.routes import entry_of_lineage, route
from hermes_core.storage.sqlite.rows import room_text, source_text
from hermes_hookspecs.errors import Conflict, LeaseBusy, SessionNotFound

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.storage.sqlite.transaction import Transaction
    from hermes_hookspecs.ids import LineageId, SessionId
    from hermes_hookspecs.operations import Branch
    from hermes_hookspecs.sessions import SessionEntry

    StandRow = tuple[int, SessionId, int | None, str | None, int | None]

__all__ = ["branch"]

KNOWN = "SELECT lineage_id FROM sessions WHERE id = ?"
STAND = """
    SELECT l.no, l.tip, l.turn_no, l.lease_label, s.kept_from FROM lineages AS l JOIN sessions AS s ON s.id = l.tip
    WHERE l.id = ?
"""
INSERT_LINEAGE = """
    INSERT INTO lineages (id, tip, owner, room, shared, platform, title, title_origin, created_at, last_activity,
        written_at, source, branched_from, preview)
    SELECT ?, ?, ?, iif(room IS ?, room, NULL), ?, ?, ?, ?, ?, ?, ?, ?, tip, preview FROM lineages WHERE no = ?
"""
INSERT_SESSION = """
    INSERT INTO sessions (id, lineage_id, source, account_id, user_id, title, started_at, model, model_config,
        system_prompt)
    SELECT ?, ?, ?, ?, ?, ?, ?, model, model_config, system_prompt FROM sessions WHERE id = ?
"""
COPY = """
    INSERT INTO messages (lineage_no, session_id, role, content, timestamp, sent, tool_calls, tool_call_id, tool_name,
        token_count, finish_reason, reasoning, kind, attachments)
    SELECT ?, ?, role, content, timestamp, sent, tool_calls, tool_call_id, tool_name, token_count, finish_reason,
        reasoning, kind, attachments
    FROM messages
    WHERE lineage_no = ? AND id >= ? AND hidden = 0 AND (kind IS NOT 'summary' OR session_id = ?) ORDER BY id
"""
COUNT = """
    UPDATE lineages SET (message_count, tool_call_count) = (
        SELECT count(*), coalesce(sum(iif(json_valid(tool_calls), json_array_length(tool_calls), 0)), 0)
        FROM messages WHERE lineage_no = ?1)
    WHERE no = ?1
"""


def branch(operation: Branch) -> Callable[[Transaction], SessionEntry]:
    """Work of :class:`~hermes_hookspecs.operations.Branch`."""

    def work(tx: Transaction) -> SessionEntry:
        known = tx.one(KNOWN, (operation.session_id,))
        if known is not None:
            return _entry(tx, operation, cast("tuple[LineageId]", known)[0])  # the column of KNOWN
        found = tx.one(STAND, (operation.origin,))
        if found is None:
            raise SessionNotFound(operation.origin)
        origin_no, tip, turn_no, holder, kept_from = cast("StandRow", found)  # columns of STAND
        if turn_no is not None:
            who = holder or "somebody"
            raise LeaseBusy(f"a turn of {who} runs in {tip}; branch off when it is done", holder=who)
        if tip != operation.expected:
            raise Conflict(f"{operation.origin} goes on in {tip} by now, not in {operation.expected}; look again")
        _make(tx, operation, origin_no, tip, kept_from or 0)
        _lead(tx, operation)
        return attrs.evolve(_entry(tx, operation, operation.lineage_id), created=True)

    return work


def _make(tx: Transaction, operation: Branch, origin_no: int, tip: SessionId, kept_from: int) -> None:
    source, owner, now = operation.source, str(operation.owner), operation.now
    title = None if operation.title is None else free_title(tx, owner, operation.title)
    origin = None if title is None else "user"
    lineage_no = tx.insert(
        INSERT_LINEAGE,
        (
            operation.lineage_id,
            operation.session_id,
            owner,
            room_text(source),
            operation.shared,
            source.platform,
            title,
            origin,
            now,
            now,
            now,
            source_text(source),
            origin_no,
        ),
    )
    who = (source.platform, source.account_id, source.participant)
    tx.run(INSERT_SESSION, (operation.session_id, operation.lineage_id, *who, title, now, tip))
    tx.run(COPY, (lineage_no, operation.session_id, origin_no, kept_from, tip))
    tx.run(COUNT, (lineage_no,))
    note_lineage(tx, lineage_no, now)


def _lead(tx: Transaction, operation: Branch) -> None:
    """Let the key lead to the branch; what waits at its place goes along."""
    before = route(tx, operation.key)
    left = None if before is None else before.lineage_id
    lead(tx, operation, operation.lineage_id)
    tx.run(CARRY, (operation.lineage_id, operation.key, left))
    if left is not None:
        end_tip(tx, left, "session_switch", operation.now)


def _entry(tx: Transaction, operation: Branch, lineage_id: LineageId) -> SessionEntry:
    entry = entry_of_lineage(tx, operation.key, lineage_id)
    if entry is None:
        raise SessionNotFound(lineage_id)
    return entry
