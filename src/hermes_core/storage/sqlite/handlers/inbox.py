"""Acceptance and withdrawal of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.handlers.plugin_state import put
from hermes_core.storage.sqlite.rows import attachments_text, holder_text, source_text, strings_text
from hermes_hookspecs.inbox import PENDING, QUARANTINED, AcceptResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.storage.sqlite.transaction import SQLiteValue, Transaction
    from hermes_hookspecs.ids import InboxId
    from hermes_hookspecs.inbox import InboxDraft
    from hermes_hookspecs.operations import Accept, Withdraw

__all__ = ["accept", "withdraw"]

CONTROL = "control"
KNOWN = "SELECT inbox_id FROM inbox_identities WHERE identity = ?"
WAITING = """
    SELECT count(*) FROM (
        SELECT 1 FROM inbox WHERE session_key = ? AND status = 'pending' AND kind <> 'control' LIMIT ?
    )
"""
# A draft that knows its lineage says so; otherwise the route decides.
INSERT = """
    INSERT INTO inbox (session_key, lineage_id, kind, status, accepted_at, platform, account_id, terminal, identities,
        waiter, error, source, text, attachments)
    VALUES (?1, coalesce(?2, (SELECT lineage_id FROM routes WHERE key = ?1)), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11,
        ?12, ?13, ?14)
"""
REMEMBER = "INSERT OR IGNORE INTO inbox_identities VALUES (?, ?)"
WITHDRAW = "UPDATE inbox SET status = 'withdrawn', settled_at = ? WHERE id = ? AND status = 'pending'"


def accept(operation: Accept) -> Callable[[Transaction], tuple[AcceptResult, ...]]:
    """Work of :class:`~hermes_hookspecs.operations.Accept`."""
    drafts = [(draft, _cells(draft)) for draft in operation.drafts]

    def work(tx: Transaction) -> tuple[AcceptResult, ...]:
        results = tuple([_accept_one(tx, draft, cells, operation.max_waiting) for draft, cells in drafts])
        for update in operation.state:
            put(tx, update, operation.now)
        return results

    return work


def _cells(draft: InboxDraft) -> tuple[SQLiteValue, ...]:
    entrance = draft.entrance
    return (
        draft.session_key,
        draft.lineage_id,
        draft.kind,
        QUARANTINED if draft.error else PENDING,
        draft.accepted_at,
        entrance.platform,
        entrance.account_id,
        entrance.terminal,
        strings_text(draft.identities),
        None if draft.waiter is None else holder_text(draft.waiter),
        draft.error,
        source_text(draft.source),
        draft.text,
        attachments_text(draft.attachments),
    )


def _accept_one(tx: Transaction, draft: InboxDraft, cells: tuple[SQLiteValue, ...], max_waiting: int) -> AcceptResult:
    for identity in draft.identities:
        known = tx.one(KNOWN, (identity,))
        if known is not None:
            return AcceptResult(id=cast("tuple[InboxId]", known)[0], duplicate=True)  # the column of KNOWN
    if draft.kind != CONTROL and not draft.error:
        (waiting,) = cast("tuple[int]", tx.one(WAITING, (draft.session_key, max_waiting)))  # a count
        if waiting >= max_waiting:
            return AcceptResult(id=None, refused=f"{max_waiting} messages wait already")
    inbox_id = cast("InboxId", tx.insert(INSERT, cells))  # the rowid is the inbox id
    if draft.identities:
        tx.run_many(REMEMBER, [(identity, inbox_id) for identity in draft.identities])
    return AcceptResult(id=inbox_id)


def withdraw(operation: Withdraw) -> Callable[[Transaction], int]:
    """Work of :class:`~hermes_hookspecs.operations.Withdraw`."""

    def work(tx: Transaction) -> int:
        return sum([tx.run(WITHDRAW, (operation.now, inbox_id)) for inbox_id in operation.ids])

    return work
