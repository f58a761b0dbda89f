"""Acceptance and withdrawal of messages, and the state that plugins write with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.storage.memory.tables import CONTROL
from hermes_hookspecs.errors import Conflict
from hermes_hookspecs.ids import InboxId
from hermes_hookspecs.inbox import PENDING, QUARANTINED, WITHDRAWN, AcceptResult, InboxItem
from hermes_hookspecs.state import ABSENT, StateEntry

if TYPE_CHECKING:
    from hermes_core.storage.memory.tables import Tables
    from hermes_hookspecs.inbox import InboxDraft
    from hermes_hookspecs.operations import Accept, PutState, Withdraw
    from hermes_hookspecs.state import StateUpdate

__all__ = ["accept", "put_state", "withdraw"]


def accept(tables: Tables, operation: Accept) -> tuple[AcceptResult, ...]:
    """Run :class:`~hermes_hookspecs.operations.Accept`."""
    results = tuple(_accept_one(tables, draft, operation.max_waiting) for draft in operation.drafts)
    for update in operation.state:
        _put(tables, update, operation.now)
    return results


def _accept_one(tables: Tables, draft: InboxDraft, max_waiting: int) -> AcceptResult:
    for identity in draft.identities:
        known = tables.identities.get(identity)
        if known is not None:
            return AcceptResult(id=known, duplicate=True)
    queued = draft.kind != CONTROL and not draft.error
    if queued and len(tables.pending(key=draft.session_key)) >= max_waiting:
        return AcceptResult(id=None, refused=f"{max_waiting} messages wait already")
    tables.last_inbox += 1
    inbox_id = InboxId(tables.last_inbox)
    route = tables.routes.get(draft.session_key)
    routed = None if route is None else route.lineage_id
    tables.inbox[inbox_id] = InboxItem(
        id=inbox_id,
        session_key=draft.session_key,
        source=draft.source,
        entrance=draft.entrance,
        text=draft.text,
        accepted_at=draft.accepted_at,
        identities=draft.identities,
        attachments=draft.attachments,
        kind=draft.kind,
        lineage_id=routed if draft.lineage_id is None else draft.lineage_id,
        waiter=draft.waiter,
        status=QUARANTINED if draft.error else PENDING,
        attempts=0,
        error=draft.error,
    )
    tables.identities.update(dict.fromkeys(draft.identities, inbox_id))
    return AcceptResult(id=inbox_id)


def withdraw(tables: Tables, operation: Withdraw) -> int:
    """Run :class:`~hermes_hookspecs.operations.Withdraw`."""
    found = {inbox_id: tables.inbox.get(inbox_id) for inbox_id in operation.ids}
    pending = [item for item in found.values() if item is not None and item.status == PENDING]
    for item in pending:
        tables.set_item(item, status=WITHDRAWN)
    return len(pending)


def put_state(tables: Tables, operation: PutState) -> tuple[StateEntry | None, ...]:
    """Run :class:`~hermes_hookspecs.operations.PutState`."""
    return tuple(_put(tables, update, operation.now) for update in operation.updates)


def _put(tables: Tables, update: StateUpdate, now: int) -> StateEntry | None:
    place = (update.namespace, update.key)
    entry = tables.state.get(place)
    if entry is not None and entry.expires_at is not None and entry.expires_at <= now:
        entry = None
    version = ABSENT if entry is None else entry.version
    if update.expected_version is not None and update.expected_version != version:
        raise Conflict(
            f"{update.key!r} of {update.namespace!r} has version {version}, not {update.expected_version}; look again"
        )
    if update.value is None:
        tables.state.pop(place, None)
        return None
    tables.state[place] = StateEntry(
        namespace=update.namespace,
        key=update.key,
        value=update.value,
        version=version + 1,
        updated_at=now,
        person=update.person,
        lineage_id=update.lineage_id,
        expires_at=update.expires_at,
    )
    return tables.state[place]
