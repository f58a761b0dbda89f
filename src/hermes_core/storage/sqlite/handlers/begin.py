"""The beginning of a turn: lease, dead turn, claims and user rows in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import attrs

from hermes_core.storage.sqlite.handlers.deliveries import cells_of, store_deliveries
from hermes_core.storage.sqlite.handlers.tips import reopen_tip, said_at
from hermes_core.storage.sqlite.handlers.transcript import ReadyRows, message_of, store_rows
from hermes_core.storage.sqlite.handlers.turn_ends import break_off
from hermes_core.storage.sqlite.queries import inbox, lineages, transcripts, turns
from hermes_core.storage.sqlite.rows import holder_text, ids_text
from hermes_hookspecs.errors import SessionNotFound
from hermes_hookspecs.inbox import CLAIMED, PENDING
from hermes_hookspecs.operations import Begun, Busy, Changed, NothingWaiting, NotYourTurn
from hermes_hookspecs.outbox import address_of
from hermes_hookspecs.turns import ACTIVE, DEAD, INTERRUPTED, Lease, LeaseStamp, Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_core.storage.sqlite.transaction import Transaction
    from hermes_hookspecs.ids import SessionId, TurnId
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.operations import Begin, BeginResult
    from hermes_hookspecs.sessions import Session

    StandRow = tuple[int, SessionId, int, int, str | None, TurnId | None]

__all__ = ["begin"]

STAND = "SELECT no, tip, lease_token, lease_renewals, lease_holder, turn_id FROM lineages WHERE id = ?"
INSERT_TURN = """
    INSERT INTO turns (id, lineage_id, session_id, token, platform, account_id, terminal, session_key, user_id,
        user_name, inbox_ids, started_at, outcome, attempt)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'active', ?)
"""
TAKE_LEASE = """
    UPDATE lineages SET version = version + 1, written_at = :now, turn_count = turn_count + 1,
        message_count = message_count + :messages, lease_token = lease_token + 1, lease_renewals = 0,
        lease_holder = :holder, lease_label = :label, lease_acquired_at = :now, lease_expires_at = :expires,
        lease_ttl_ms = :ttl,
        turn_no = :turn_no, turn_id = :turn_id, open_calls = NULL,
        last_activity = iif(:touch, max(last_activity, :now), last_activity)
    WHERE no = :no RETURNING version
"""
CLAIM = "UPDATE inbox SET status = 'claimed', attempts = attempts + 1 WHERE id = ?"
STORED = "SELECT 1 FROM messages WHERE lineage_no = ? AND inbox_id = ?"
FREEZE = """
    UPDATE sessions SET model = iif(model IS NULL AND system_prompt IS NULL, ?1, model), model_config = ?2,
        system_prompt = iif(model IS NULL AND system_prompt IS NULL, ?3, system_prompt)
    WHERE id = ?4 AND model_config IS NULL
"""


def begin(operation: Begin) -> Callable[[Transaction], BeginResult]:
    """Work of :class:`~hermes_hookspecs.operations.Begin`."""
    holder = holder_text(operation.holder)
    deliveries = cells_of(operation.deliveries)

    def work(tx: Transaction) -> BeginResult:
        found = tx.one(STAND, (operation.lineage_id,))
        if found is None:
            raise SessionNotFound(operation.lineage_id)
        lineage_no, tip, token, renewals, held_by, turn_id = cast("StandRow", found)  # columns of STAND
        if held_by == holder and turn_id == operation.turn_id:
            return _begun_before(tx, operation, lineage_no, tip)
        if held_by is not None and LeaseStamp(token, renewals) != operation.presumed_dead:
            lease = turns.lease(tx, operation.lineage_id)
            if lease is not None:
                return Busy(lease=lease)
        again = [] if turn_id is None else _again(tx, operation, turn_id)
        items = [] if operation.maintenance else _choose(tx, operation, again)
        if not isinstance(items, list):
            return items
        interrupted = None
        if turn_id is not None:
            back = frozenset([item.id for item in again])
            interrupted = break_off(tx, lineage_no, INTERRUPTED, DEAD, operation.now, again=back)
            store_deliveries(tx, deliveries, operation.now)
        _go_on(tx, operation, items)
        turn, rows, version = _start(tx, operation, items, holder, lineage_no=lineage_no, tip=tip, token=token + 1)
        session = _frozen(tx, operation, tip)
        return Begun(
            turn=turn,
            lease=_lease(operation, token + 1),
            session=session,
            items=tuple([attrs.evolve(item, status=CLAIMED, attempts=item.attempts + 1) for item in items]),
            rows=rows,
            interrupted=interrupted,
            version=version,
        )

    return work


def _go_on(tx: Transaction, operation: Begin, items: Sequence[InboxItem]) -> None:
    """The lineage is spoken in again: an ended tip is reopened, and what is said elsewhere makes it private."""
    if not operation.maintenance:
        reopen_tip(tx, operation.lineage_id)
    for source in {item.source for item in items}:
        said_at(tx, operation.lineage_id, source, operation.now)


def _again(tx: Transaction, operation: Begin, dead: TurnId) -> list[InboxItem]:
    """The rows of the dead turn that are to wait once more."""
    if not operation.again:
        return []
    turn = turns.turn(tx, dead)
    claimed = () if turn is None else turn.inbox_ids
    found = [inbox.item(tx, inbox_id) for inbox_id in claimed if inbox_id in operation.again]
    return [
        item
        for item in found
        if item is not None and item.status == CLAIMED and item.lineage_id == operation.lineage_id
    ]


def _choose(
    tx: Transaction, operation: Begin, again: Sequence[InboxItem]
) -> list[InboxItem] | NotYourTurn | Changed | NothingWaiting:
    """The rows that the drafts name, when they are the oldest and belong together; ``again`` waits like the others."""
    drafts, passed_over = operation.drafts, operation.passed_over
    found = inbox.waiting(tx, operation.lineage_id, len(drafts) + len(passed_over) + 1)
    if again:
        found = tuple(sorted((*found, *again), key=lambda item: item.id))
    waiting = [item for item in found if item.id not in passed_over]
    if not waiting or not drafts:
        return NothingWaiting()
    wanted = [draft.inbox_id for draft in drafts]
    oldest = waiting[0]
    if oldest.id != wanted[0]:
        item = None if wanted[0] is None or wanted[0] in passed_over else inbox.item(tx, wanted[0])
        waits = item is not None and (_waits(item, operation) or item.id in [each.id for each in again])
        return NotYourTurn(item=oldest) if waits else Changed()
    chosen = waiting[: len(wanted)]
    if [item.id for item in chosen] != wanted or any(_address(item) != _address(oldest) for item in chosen[1:]):
        return Changed()
    return chosen


def _waits(item: InboxItem, operation: Begin) -> bool:
    return item.lineage_id == operation.lineage_id and item.status == PENDING and item.kind != "control"


def _address(item: InboxItem) -> tuple[str, str | None, str]:
    """What rows of one turn have in common: one principal, one place to answer."""
    return item.session_key, item.source.participant, address_of(item.source)


def _start(
    tx: Transaction,
    operation: Begin,
    items: Sequence[InboxItem],
    holder: str,
    *,
    lineage_no: int,
    tip: SessionId,
    token: int,
) -> tuple[Turn, tuple[Message, ...], int]:
    """Take the lease, write the turn, claim the rows, store their user rows.

    :returns: the turn, its user rows, and the version of the lineage.
    """
    turn = _turn(operation, items, tip, token)
    entrance = turn.entrance
    turn_no = tx.insert(
        INSERT_TURN,
        (
            turn.id,
            turn.lineage_id,
            tip,
            token,
            entrance.platform,
            entrance.account_id,
            entrance.terminal,
            turn.session_key,
            turn.user_id,
            turn.user_name,
            ids_text(turn.inbox_ids),
            turn.started_at,
            turn.attempt,
        ),
    )
    drafts = operation.drafts if items else ()
    # A retry finds the user row of the first try.
    fresh = [draft for draft in drafts if tx.one(STORED, (lineage_no, draft.inbox_id)) is None]
    retried = len(fresh) < len(drafts)
    note = [operation.note] if retried and operation.note is not None else []
    rows = ReadyRows([*fresh, *note])
    taken = tx.one(
        TAKE_LEASE,
        {
            "now": operation.now,
            "messages": len(rows),
            "holder": holder,
            "label": operation.holder.describe(),
            "expires": operation.now + operation.ttl_ms,
            "ttl": operation.ttl_ms,
            "turn_no": turn_no,
            "turn_id": operation.turn_id,
            "touch": operation.touch,
            "no": lineage_no,
        },
    )
    for item in items:
        tx.run(CLAIM, (item.id,))
    ids = store_rows(tx, rows, lineage_no=lineage_no, session_id=tip, turn_no=turn_no)
    stored = tuple([message_of(draft, number, turn) for draft, number in zip([*fresh, *note], ids, strict=True)])
    if retried:
        users = transcripts.user_rows(tx, lineage_no, operation.lineage_id, turn.inbox_ids)
        stored = users + stored[len(fresh) :]
    return turn, stored, cast("tuple[int]", taken)[0]  # the row was there a statement ago


def _frozen(tx: Transaction, operation: Begin, tip: SessionId) -> Session:
    """The session that goes on, with what its first turn freezes."""
    snapshot = operation.snapshot
    if snapshot is not None:
        tx.run(FREEZE, (snapshot.model, snapshot.model_config, snapshot.system_prompt, tip))
    session = lineages.session_of(tx, tip)
    if session is None:
        raise SessionNotFound(operation.lineage_id)
    return session


def _turn(operation: Begin, items: Sequence[InboxItem], tip: SessionId, token: int) -> Turn:
    """The turn as it begins."""
    source = items[0].source if items else None
    return Turn(
        id=operation.turn_id,
        lineage_id=operation.lineage_id,
        session_id=tip,
        token=token,
        entrance=operation.holder.entrance,
        session_key=operation.holder.session_key,
        user_id=None if source is None else source.participant,
        user_name=None if source is None else source.user_name,
        inbox_ids=tuple([item.id for item in items]),
        started_at=operation.now,
        ended_at=None,
        outcome=ACTIVE,
        reason="",
        attempt=items[0].attempts + 1 if items else 1,
    )


def _lease(operation: Begin, token: int) -> Lease:
    """The lease as it is taken."""
    return Lease(
        lineage_id=operation.lineage_id,
        token=token,
        renewals=0,
        holder=operation.holder,
        acquired_at=operation.now,
        expires_at=operation.now + operation.ttl_ms,
        ttl_ms=operation.ttl_ms,
    )


def _begun_before(tx: Transaction, operation: Begin, lineage_no: int, tip: SessionId) -> Begun:
    """The same answer to the same begin once more: everything as it stands now, read back."""
    turn = turns.turn(tx, operation.turn_id)
    lease = turns.lease(tx, operation.lineage_id)
    session = lineages.session_of(tx, tip)
    version = tx.one("SELECT version FROM lineages WHERE no = ?", (lineage_no,))
    if turn is None or lease is None or session is None or version is None:
        raise SessionNotFound(operation.lineage_id)
    items = [inbox.item(tx, inbox_id) for inbox_id in turn.inbox_ids]
    rows = transcripts.user_rows(tx, lineage_no, operation.lineage_id, turn.inbox_ids) if items else ()
    if operation.note is not None and any(row.turn_id != turn.id for row in rows):
        rows += transcripts.newest_of_kind(tx, lineage_no, operation.lineage_id, operation.note.kind)
    return Begun(
        turn=turn,
        lease=lease,
        session=session,
        items=tuple(item for item in items if item is not None),
        rows=rows,
        interrupted=None,
        version=cast("tuple[int]", version)[0],  # declared so
    )
