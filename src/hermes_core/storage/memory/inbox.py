"""Acceptance and withdrawal of messages, and the effects of control rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_core.storage.memory import approvals, branching, compression, hiding, lineages, routes, titles, turns
from hermes_core.storage.memory.outbox import wake_deliveries
from hermes_core.storage.memory.plugin_state import write_state
from hermes_hookspecs.errors import Conflict
from hermes_hookspecs.ids import InboxId
from hermes_hookspecs.inbox import (
    APPLIED,
    CONTROL,
    INTERNAL,
    PENDING,
    QUARANTINED,
    SETTLED,
    WITHDRAWN,
    AcceptResult,
    InboxItem,
)
from hermes_hookspecs.operations import (
    AnswerApproval,
    BindRoute,
    Branch,
    Compress,
    Hide,
    ReleaseRoute,
    Rename,
    Revoke,
    SetFlags,
    Withdraw,
)
from hermes_hookspecs.operations.outcomes import outcome_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.storage.memory.tables import Tables
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.inbox import ControlOutcome, InboxDraft
    from hermes_hookspecs.operations import Accept, Attach, Control, Operation

__all__ = ["accept", "attach", "control", "store_item", "withdraw"]


def accept(tables: Tables, operation: Accept) -> tuple[AcceptResult, ...]:
    """Run :class:`~hermes_hookspecs.operations.Accept`."""
    results = tuple(_accept_one(tables, draft, operation) for draft in operation.drafts)
    for update in operation.state:
        write_state(tables, update, operation.now)
    return results


def _accept_one(tables: Tables, draft: InboxDraft, operation: Accept) -> AcceptResult:
    for identity in draft.identities:
        known = tables.identities.get(identity)
        if known is not None:
            _remember(tables, known, draft.identities)
            return AcceptResult(id=known, duplicate=True)
    route = tables.routes.get(draft.session_key)
    routed = None if route is None else route.lineage_id
    lineage_id = routed if draft.lineage_id is None else draft.lineage_id
    refused = _refusal(tables, draft, lineage_id, operation.max_waiting)
    if refused:
        return AcceptResult(id=None, refused=refused)
    inbox_id = store_item(tables, draft, lineage_id)
    if draft.kind != INTERNAL:
        wake_deliveries(tables, draft.source, operation.now)
    return AcceptResult(id=inbox_id)


def _refusal(tables: Tables, draft: InboxDraft, lineage_id: LineageId | None, max_waiting: int) -> str:
    """Return why a draft is not taken, ``""`` when it is."""
    if draft.only_if_idle and lineage_id is not None:
        lease = tables.leases.get(lineage_id)
        runs = lease is not None and lease.holder is not None
        if runs or tables.pending(lineage_id=lineage_id):
            return "busy"
    if draft.error:
        return ""
    if draft.kind == CONTROL:
        waiting, what = tables.pending_controls(draft.session_key), "commands"
    else:
        waiting, what = tables.pending(key=draft.session_key), "messages"
    return f"{max_waiting} {what} wait already" if len(waiting) >= max_waiting else ""


def _remember(tables: Tables, inbox_id: InboxId, identities: tuple[str, ...]) -> None:
    """Learn the identities of a duplicate that nobody has yet."""
    fresh = tuple(one for one in dict.fromkeys(identities) if one not in tables.identities)
    if fresh:
        item = tables.inbox[inbox_id]
        tables.inbox[inbox_id] = attrs.evolve(item, identities=item.identities + fresh)
        tables.identities.update(dict.fromkeys(fresh, inbox_id))


def store_item(tables: Tables, draft: InboxDraft, lineage_id: LineageId | None) -> InboxId:
    """Store a row; return its number."""
    tables.last_inbox += 1
    inbox_id = InboxId(tables.last_inbox)
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
        lineage_id=lineage_id,
        waiter=draft.waiter,
        status=QUARANTINED if draft.error else PENDING,
        attempts=0,
        error=draft.error,
    )
    tables.identities.update(dict.fromkeys(draft.identities, inbox_id))
    if draft.error:
        tables.settled[inbox_id] = draft.accepted_at
    return inbox_id


def attach(tables: Tables, operation: Attach) -> bool:
    """Run :class:`~hermes_hookspecs.operations.Attach`."""
    item = tables.inbox.get(operation.inbox_id)
    if item is None or item.status != PENDING:
        return False
    tables.inbox[item.id] = attrs.evolve(item, attachments=operation.attachments)
    return True


def withdraw(tables: Tables, operation: Withdraw) -> int:
    """Run :class:`~hermes_hookspecs.operations.Withdraw`."""
    found = {inbox_id: tables.inbox.get(inbox_id) for inbox_id in operation.ids}
    pending = [item for item in found.values() if item is not None and item.status == PENDING]
    for item in pending:
        tables.settle(item, WITHDRAWN, operation.now)
    return len(pending)


def control(tables: Tables, operation: Control) -> ControlOutcome:
    """Run :class:`~hermes_hookspecs.operations.Control`."""
    item = tables.inbox.get(operation.inbox_id)
    if item is None or item.kind != CONTROL:
        raise Conflict(f"inbox row {operation.inbox_id} is no control row")
    if item.outcome is not None:
        return attrs.evolve(item.outcome, repeated=True)
    if item.status != PENDING:
        raise Conflict(f"control row {item.id} is {item.status}; its effect does not run any more")
    outcome = outcome_of(operation.effect, _run_effect(tables, operation.effect))
    tables.inbox[item.id] = item = attrs.evolve(item, outcome=outcome, status=APPLIED)
    if operation.settle:
        tables.settle(item, SETTLED, operation.now)
    return outcome


def _run_effect(tables: Tables, effect: Operation[object] | None) -> object:
    """Run the effect of a control row by its own handler; return what that returns, ``None`` for no effect."""
    run = _EFFECTS.get(type(effect))
    return None if run is None else run(tables, effect)


_EFFECTS: dict[type, Callable[..., object]] = {
    AnswerApproval: approvals.answer_approval,
    BindRoute: routes.bind_route,
    Branch: branching.branch,
    Compress: compression.compress,
    Hide: hiding.hide,
    ReleaseRoute: routes.release_route,
    Rename: titles.rename,
    Revoke: turns.revoke,
    SetFlags: lineages.set_flags,
    Withdraw: withdraw,
}
