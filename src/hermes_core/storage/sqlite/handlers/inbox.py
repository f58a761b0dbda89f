"""Acceptance and withdrawal of messages."""

# ruff: noqa: S608 - statements are put together from constants of this module, values are always bound

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.handlers.plugin_state import put
from hermes_core.storage.sqlite.rows import attachments_text, holder_text, read_strings, source_text, strings_text
from hermes_hookspecs.inbox import CONTROL, INTERNAL, PENDING, QUARANTINED, AcceptResult
from hermes_hookspecs.outbox import address_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.storage.sqlite.transaction import SQLiteValue, Transaction
    from hermes_hookspecs.ids import InboxId
    from hermes_hookspecs.inbox import InboxDraft
    from hermes_hookspecs.operations import Accept, Attach, Withdraw

__all__ = ["accept", "attach", "withdraw"]

KNOWN = "SELECT inbox_id FROM inbox_identities WHERE identity = ?"
WAITING = """
    SELECT count(*) FROM (
        SELECT 1 FROM inbox WHERE session_key = ? AND status = 'pending' AND (kind = 'control') = ? LIMIT ?
    )
"""
# A draft that knows its lineage says so; otherwise the route decides.
LINEAGE = "coalesce(?2, (SELECT lineage_id FROM routes WHERE key = ?1))"
BUSY = f"""
    SELECT 1 WHERE EXISTS (SELECT 1 FROM lineages WHERE id = {LINEAGE} AND lease_holder IS NOT NULL)
    OR EXISTS (SELECT 1 FROM inbox WHERE lineage_id = {LINEAGE} AND status = 'pending' AND kind <> 'control')
"""
INSERT = f"""
    INSERT INTO inbox (session_key, lineage_id, kind, status, accepted_at, platform, account_id, terminal, identities,
        waiter, error, source, text, attachments, settled_at)
    VALUES (?1, {LINEAGE}, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
"""
REMEMBER = "INSERT OR IGNORE INTO inbox_identities VALUES (?, ?)"
IDENTITIES = "SELECT identities FROM inbox WHERE id = ?"
LEARN = "UPDATE inbox SET identities = ? WHERE id = ?"
# What waits for word from there may be sent again; what is being sent need not wait for more.
HEARD_FROM = """
    UPDATE outbox SET due_at = iif(awaits_inbound, ?, due_at), awaits_inbound = 0, inbound_seen = 1
    WHERE settled_at IS NULL AND (awaits_inbound = 1 OR status = 'sending') AND address = ?
"""
ATTACH = "UPDATE inbox SET attachments = ? WHERE id = ? AND status = 'pending'"
WITHDRAW = "UPDATE inbox SET status = 'withdrawn', settled_at = ? WHERE id = ? AND status = 'pending'"


def accept(operation: Accept) -> Callable[[Transaction], tuple[AcceptResult, ...]]:
    """Work of :class:`~hermes_hookspecs.operations.Accept`."""
    drafts = [(draft, _cells(draft), address_of(draft.source)) for draft in operation.drafts]

    def work(tx: Transaction) -> tuple[AcceptResult, ...]:
        results = tuple([_accept_one(tx, operation, *draft) for draft in drafts])
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
        draft.accepted_at if draft.error else None,
    )


def _accept_one(
    tx: Transaction, operation: Accept, draft: InboxDraft, cells: tuple[SQLiteValue, ...], address: str
) -> AcceptResult:
    for identity in draft.identities:
        known = tx.one(KNOWN, (identity,))
        if known is not None:
            (there,) = cast("tuple[InboxId]", known)  # the column of KNOWN
            _learn(tx, there, draft.identities)
            return AcceptResult(id=there, duplicate=True)
    refused = _refused(tx, draft, operation.max_waiting)
    if refused:
        return AcceptResult(id=None, refused=refused)
    inbox_id = cast("InboxId", tx.insert(INSERT, cells))  # the rowid is the id
    if draft.identities:
        tx.run_many(REMEMBER, [(identity, inbox_id) for identity in draft.identities])
    if draft.kind != INTERNAL:
        tx.run(HEARD_FROM, (operation.now, address))
    return AcceptResult(id=inbox_id)


def _refused(tx: Transaction, draft: InboxDraft, max_waiting: int) -> str:
    """Why a draft is not taken, empty when it is."""
    if draft.only_if_idle and tx.one(BUSY, (draft.session_key, draft.lineage_id)) is not None:
        return "busy"
    if not draft.error:
        is_command = draft.kind == CONTROL
        (waiting,) = cast("tuple[int]", tx.one(WAITING, (draft.session_key, is_command, max_waiting)))  # a count
        if waiting >= max_waiting:
            return f"{max_waiting} {'commands' if is_command else 'messages'} wait already"
    return ""


def _learn(tx: Transaction, inbox_id: InboxId, identities: tuple[str, ...]) -> None:
    """Remember the identities of a duplicate that nobody has yet with the row that was there."""
    fresh = [one for one in dict.fromkeys(identities) if tx.one(KNOWN, (one,)) is None]
    row = tx.one(IDENTITIES, (inbox_id,)) if fresh else None
    if row is not None:
        known = read_strings(cast("tuple[str | None]", row)[0])  # the column of IDENTITIES
        tx.run(LEARN, (strings_text((*known, *fresh)), inbox_id))
        tx.run_many(REMEMBER, [(identity, inbox_id) for identity in fresh])


def attach(operation: Attach) -> Callable[[Transaction], bool]:
    """Work of :class:`~hermes_hookspecs.operations.Attach`."""
    cells = (attachments_text(operation.attachments), operation.inbox_id)
    return lambda tx: tx.run(ATTACH, cells) > 0


def withdraw(operation: Withdraw) -> Callable[[Transaction], int]:
    """Work of :class:`~hermes_hookspecs.operations.Withdraw`."""

    def work(tx: Transaction) -> int:
        return sum([tx.run(WITHDRAW, (operation.now, inbox_id)) for inbox_id in operation.ids])

    return work
