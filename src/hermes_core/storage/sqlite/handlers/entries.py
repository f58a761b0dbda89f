"""Get or create: what a key leads to, made where it leads nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import attrs

from hermes_core.storage.sqlite.handlers.tips import end_tip, note_lineage
from hermes_core.storage.sqlite.handlers.titles import free_title
from hermes_core.storage.sqlite.handlers.transcript import ReadyRows, store_rows
from hermes_core.storage.sqlite.queries.routes import entry_of_lineage, route
from hermes_core.storage.sqlite.rows import DAMAGED, room_text, source_text
from hermes_hookspecs.errors import SessionNotFound
from hermes_hookspecs.operations import ACTIVITY_RESOLUTION_MS

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.storage.sqlite.transaction import Transaction
    from hermes_hookspecs.ids import LineageId, SessionKey
    from hermes_hookspecs.operations import BindRoute, Branch, Claim, GetOrCreate
    from hermes_hookspecs.sessions import Route, SessionEntry

__all__ = ["get_or_create", "lead"]

TOUCH = "UPDATE lineages SET last_activity = max(last_activity, ?) WHERE id = ?"
TOUCH_ROUTE = "UPDATE routes SET updated_at = ? WHERE key = ?"
OF_SCOPE = "SELECT 1 FROM routes WHERE key = ? AND scope_id IS ?"
REMOVE_ROUTE = "DELETE FROM routes WHERE key = ?"
KNOWN = "SELECT lineage_id FROM sessions WHERE id = ?"
ADOPT = """
    UPDATE inbox SET lineage_id = ? WHERE session_key = ? AND status = 'pending' AND kind <> 'control'
    AND lineage_id IS NULL
"""
FOLLOW = "UPDATE inbox SET lineage_id = ? WHERE session_key = ? AND status = 'pending' AND kind <> 'control'"
INSERT_LINEAGE = """
    INSERT INTO lineages (id, tip, owner, room, shared, platform, title, title_origin, created_at, last_activity,
        written_at, source, message_count)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
INSERT_SESSION = """
    INSERT INTO sessions (id, lineage_id, source, account_id, user_id, title, started_at) VALUES (?, ?, ?, ?, ?, ?, ?)
"""
# A route that is there keeps its creation and the title that waits on it.
LEAD = """
    INSERT INTO routes (key, lineage_id, profile, platform, account_id, scope_id, chat_type, chat_id, thread_id,
        user_id, key_version, group_sessions_per_user, thread_sessions_per_user, created_at, updated_at, source)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET lineage_id = excluded.lineage_id, profile = excluded.profile,
        platform = excluded.platform, account_id = excluded.account_id, scope_id = excluded.scope_id,
        chat_type = excluded.chat_type, chat_id = excluded.chat_id, thread_id = excluded.thread_id,
        user_id = excluded.user_id, key_version = excluded.key_version,
        group_sessions_per_user = excluded.group_sessions_per_user,
        thread_sessions_per_user = excluded.thread_sessions_per_user, updated_at = excluded.updated_at,
        source = excluded.source
"""
CLEAR_TITLE = "UPDATE routes SET pending_title = NULL WHERE key = ?"


def get_or_create(operation: GetOrCreate) -> Callable[[Transaction], SessionEntry]:
    """Work of :class:`~hermes_hookspecs.operations.GetOrCreate`."""

    def work(tx: Transaction) -> SessionEntry:
        if not operation.bind:
            return _create(tx, operation, None)
        found = route(tx, operation.key)
        current = None if found is None else found.lineage_id
        if current is not None and not (operation.force_new and current == operation.observed):
            return _hit(tx, operation, current)
        if current is None and not operation.force_new:
            claimed = _claim(tx, operation)
            if claimed is not None:
                return claimed
            if operation.claims:
                from hermes_core.storage.sqlite.handlers.moves import note_refusals

                note_refusals(tx, operation)
        return _create_and_bind(tx, operation, found)

    return work


def _hit(tx: Transaction, operation: GetOrCreate, lineage_id: LineageId) -> SessionEntry:
    entry = _entry(tx, operation.key, lineage_id)
    if operation.touch and operation.now - entry.updated_at >= ACTIVITY_RESOLUTION_MS:
        tx.run(TOUCH, (operation.now, lineage_id))
        tx.run(TOUCH_ROUTE, (operation.now, operation.key))
        entry = _entry(tx, operation.key, lineage_id)
    tx.run(ADOPT, (lineage_id, operation.key))
    return entry


def _entry(tx: Transaction, key: SessionKey, lineage_id: LineageId) -> SessionEntry:
    entry = entry_of_lineage(tx, key, lineage_id)
    if entry is None:
        raise SessionNotFound(lineage_id)
    return entry


def _claim(tx: Transaction, operation: GetOrCreate) -> SessionEntry | None:
    for claim in operation.claims:
        old = route(tx, claim.key)
        if old is None or old.lineage_id is None or not _fits(tx, claim, old):
            continue
        from hermes_core.storage.sqlite.handlers.moves import note_claim

        note_claim(tx, operation, claim, old.lineage_id)
        tx.run(REMOVE_ROUTE, (claim.key,))
        lead(tx, operation, old.lineage_id)
        tx.run(FOLLOW, (old.lineage_id, claim.key))
        return attrs.evolve(_hit(tx, operation, old.lineage_id), claimed=claim.key)
    return None


def _fits(tx: Transaction, claim: Claim, old: Route) -> bool:
    """Whether a route may be taken over; one whose source is damaged by its scope's own column, and for no person."""
    if old.source.platform != DAMAGED:
        return claim.fits(old.source)
    return claim.user_id is None and tx.one(OF_SCOPE, (claim.key, claim.scope_id)) is not None


def _create_and_bind(tx: Transaction, operation: GetOrCreate, found: Route | None) -> SessionEntry:
    entry = _create(tx, operation, None if found is None else found.pending_title)
    lead(tx, operation, entry.lineage_id)
    tx.run(CLEAR_TITLE, (operation.key,))
    tx.run(ADOPT, (entry.lineage_id, operation.key))
    if found is not None and found.lineage_id is not None:
        end_tip(tx, found.lineage_id, "new_session", operation.now)
    return entry


def _create(tx: Transaction, operation: GetOrCreate, title: str | None) -> SessionEntry:
    known = tx.one(KNOWN, (operation.session_id,))
    if known is not None:
        # A repetition: the ids are fresh, so nobody else can have made it.
        return _entry(tx, operation.key, cast("tuple[LineageId]", known)[0])  # the column of KNOWN
    source, owner, now = operation.source, str(operation.owner), operation.now
    if title is not None:
        title = free_title(tx, owner, title)
    carried = ReadyRows(() if operation.carry is None else (operation.carry,))
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
            None if title is None else "user",
            now,
            now,
            now,
            source_text(source),
            len(carried),
        ),
    )
    tx.run(
        INSERT_SESSION,
        (
            operation.session_id,
            operation.lineage_id,
            source.platform,
            source.account_id,
            source.participant,
            title,
            now,
        ),
    )
    store_rows(tx, carried, lineage_no=lineage_no, session_id=operation.session_id, turn_no=None)
    note_lineage(tx, lineage_no, now)
    return attrs.evolve(_entry(tx, operation.key, operation.lineage_id), created=True)


def lead(tx: Transaction, operation: GetOrCreate | BindRoute | Branch, lineage_id: LineageId) -> None:
    """Let the operation's key lead to a lineage."""
    source, policy = operation.source, operation.policy
    tx.run(
        LEAD,
        (
            operation.key,
            lineage_id,
            source.profile,
            source.platform,
            source.account_id,
            source.scope_id,
            source.chat_type,
            source.chat_id,
            source.thread_id,
            source.participant,
            operation.key_version,
            policy.group_sessions_per_user,
            policy.thread_sessions_per_user,
            operation.now,
            operation.now,
            source_text(source),
        ),
    )
