"""Operations on routes, lineages, the inbox and the state of plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs import operations as ops
from hermes_hookspecs.errors import Conflict, LeaseBusy, TitleError
from hermes_hookspecs.ids import InboxId
from hermes_hookspecs.inbox import PENDING, QUARANTINED, SUPERSEDED, WITHDRAWN, AcceptResult, InboxItem
from hermes_hookspecs.operations.outcomes import outcome_of
from hermes_hookspecs.outbox import OPEN_STATES, address_of
from hermes_hookspecs.principal import room_of
from hermes_hookspecs.sessions import TITLE_LIMIT, Lineage, Route, Session, SessionEntry
from hermes_hookspecs.state import StateEntry, StateUpdate
from hermes_hookspecs.turns import Lease
from hermes_toy_store.talk import active, compress, revoke, take_away

if TYPE_CHECKING:
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.inbox import ControlOutcome, InboxDraft
    from hermes_hookspecs.principal import Owner
    from hermes_toy_store.book import Book


def get_or_create(book: Book, op: ops.GetOrCreate) -> SessionEntry:
    if not op.bind:
        return _make(book, op, None)
    current = book.leads_to(op.key)
    if current is not None and not (op.force_new and current == op.observed):
        return _hit(book, op, current)
    for claim in () if op.force_new else op.claims:
        old = book.routes.get(claim.key)
        if old is not None and old.lineage_id is not None and claim.fits(old.source):
            del book.routes[claim.key]
            if claim.scope_id is None and op.source.scope_id is not None:
                _fill_scope(book, book.lineages[old.lineage_id], op)
            _lead(book, op, old.lineage_id)
            for item in book.waiting(key=claim.key):
                book.set_item(item, lineage_id=old.lineage_id)
            return attrs.evolve(_hit(book, op, old.lineage_id), claimed=claim.key)
    known = book.routes.get(op.key)
    entry = _make(book, op, None if known is None else known.pending_title)
    _lead(book, op, entry.lineage_id)
    book.routes[op.key] = attrs.evolve(book.routes[op.key], pending_title=None)
    book.adopt(op.key, entry.lineage_id)
    if current is not None:
        book.end_tip(current, "new_session", op.now)
    return entry


def _fill_scope(book: Book, lineage: Lineage, op: ops.GetOrCreate) -> None:
    at = op.source

    def fill(one: Owner) -> Owner:
        return attrs.evolve(one, scope_id=one.scope_id or at.scope_id) if one.platform == at.platform else one

    source = lineage.source
    if source.platform == at.platform and source.scope_id is None:
        source = attrs.evolve(source, scope_id=at.scope_id)
    owner, room = fill(lineage.owner), lineage.room and fill(lineage.room)
    title = lineage.title
    if title is not None and owner != lineage.owner:
        title = _free(book, owner, title)
        book.sessions[lineage.tip] = attrs.evolve(book.sessions[lineage.tip], title=title)
    book.lineages[lineage.id] = attrs.evolve(lineage, owner=owner, room=room, source=source, title=title)
    book.tell(lineage.id, op.now)


def _hit(book: Book, op: ops.GetOrCreate, lineage_id: LineageId) -> SessionEntry:
    if op.touch and op.now - book.lineages[lineage_id].last_activity >= ops.ACTIVITY_RESOLUTION_MS:
        book.touch(lineage_id, op.now)
        book.routes[op.key] = attrs.evolve(book.routes[op.key], updated_at=op.now)
    book.adopt(op.key, lineage_id)
    return book.entry(lineage_id, op.key)


def _make(book: Book, op: ops.GetOrCreate, title: str | None) -> SessionEntry:
    if op.session_id in book.sessions:
        return book.entry(book.sessions[op.session_id].lineage_id, op.key)
    title = None if title is None else _free(book, op.owner, title)
    book.sessions[op.session_id] = Session(
        id=op.session_id,
        lineage_id=op.lineage_id,
        source=op.source.platform,
        account_id=op.source.account_id,
        user_id=op.source.participant,
        title=title,
        started_at=op.now,
    )
    book.lineages[op.lineage_id] = Lineage(
        id=op.lineage_id,
        tip=op.session_id,
        owner=op.owner,
        source=op.source,
        shared=op.shared,
        title=title,
        title_origin=None if title is None else "user",
        pinned=False,
        archived=False,
        created_at=op.now,
        last_activity=op.now,
        message_count=0,
        turn_count=0,
        segments=1,
        preview="",
        version=1,
        room=room_of(op.source),
    )
    book.rows[op.lineage_id] = []
    book.leases[op.lineage_id] = Lease(
        lineage_id=op.lineage_id, token=0, renewals=0, holder=None, acquired_at=None, expires_at=None
    )
    book.tell(op.lineage_id, op.now)
    return book.entry(op.lineage_id, op.key, created=True)


def _lead(book: Book, op: ops.GetOrCreate | ops.BindRoute, lineage_id: LineageId) -> None:
    old = book.routes.get(op.key)
    book.routes[op.key] = Route(
        key=op.key,
        source=op.source,
        lineage_id=lineage_id,
        key_version=op.key_version,
        policy=op.policy,
        created_at=op.now if old is None else old.created_at,
        updated_at=op.now,
        pending_title=None if old is None else old.pending_title,
    )


def _compare(op: ops.BindRoute | ops.ReleaseRoute, current: LineageId | None) -> None:
    if op.check and op.expected != current:
        raise Conflict(f"{op.key} leads to {current} by now; look again")


def bind_route(book: Book, op: ops.BindRoute) -> SessionEntry:
    target = book.lineage(op.lineage_id).id
    left = book.leads_to(op.key)
    _compare(op, left)
    superseded = 0
    if left != target:
        _lead(book, op, target)
        for item in book.waiting(key=op.key):
            if item.lineage_id in {left, None}:
                settled = not op.carry and (op.control_id is None or item.id < op.control_id)
                _move(book, item, op.now, target, settled=settled)
                superseded += settled
        if left is not None:
            book.end_tip(left, "session_switch", op.now)
    book.said_at(target, op.source, op.now)
    tip = book.sessions[book.lineages[target].tip]
    if tip.ended_at is not None:
        book.sessions[tip.id] = attrs.evolve(tip, ended_at=None, end_reason=None)
        book.change(target)
    return book.entry(target, op.key, superseded=superseded)


def _move(book: Book, item: InboxItem, now: int, lineage_id: LineageId | None, *, settled: bool) -> None:
    if settled:
        book.settle(item, SUPERSEDED, now)
    else:
        book.set_item(item, lineage_id=lineage_id)


def release_route(book: Book, op: ops.ReleaseRoute) -> ops.Released:
    route, left = book.routes.get(op.key), book.leads_to(op.key)
    _compare(op, left)
    if route is not None and left is not None and op.quiet_since is not None:
        used = max(book.lineages[left].last_activity, route.updated_at)
        waiting = [*book.waiting(key=op.key), *book.waiting(lineage_id=left)]
        if used > op.quiet_since or waiting or active(book, left) is not None:
            raise Conflict(f"{op.key} is not quiet any more; look again")
    stopped = None
    if route is not None and left is None and op.title is not None:
        book.routes[op.key] = attrs.evolve(route, pending_title=op.title)
    if route is not None and left is not None:
        book.routes[op.key] = attrs.evolve(route, lineage_id=None, updated_at=op.now, pending_title=op.title)
        turn = active(book, left)
        if turn is not None and turn.session_key == op.key:
            stopped = take_away(book, ops.Revoke(lineage_id=left, now=op.now, reason=op.reason))
    older = [i for i in book.waiting(key=op.key) if op.control_id is None or i.id < op.control_id]
    for item in book.waiting(key=op.key):
        _move(book, item, op.now, None, settled=item in older)
    if left is not None:
        book.end_tip(left, op.reason, op.now)
    return ops.Released(lineage=None if left is None else book.lineages[left], stopped=stopped, superseded=len(older))


def forget_route(book: Book, op: ops.ForgetRoute) -> bool:
    return book.routes.pop(op.key, None) is not None


def _free(book: Book, owner: Owner, base: str) -> str:
    taken = {each.title for each in book.lineages.values() if each.owner == owner}
    numbered = (f"{base} #{number}" for number in range(2, len(taken) + 3))
    return base if base not in taken else next(title for title in numbered if title not in taken)


def rename(book: Book, op: ops.Rename) -> str | None:
    lineage, title = book.lineage(op.lineage_id), op.title
    if title is not None and not 0 < len(title) <= TITLE_LIMIT:
        raise TitleError(f"a title has 1 to {TITLE_LIMIT} characters")
    if op.origin == "auto":
        if lineage.title is not None or title is None or op.session_id not in {None, lineage.tip}:
            return lineage.title
        title = _free(book, lineage.owner, title)
    for other in book.lineages.values() if title is not None else ():
        if other.owner == lineage.owner and other.title == title and other.id != lineage.id:
            raise TitleError(f"the title {title!r} is taken by session {other.tip}")
    origin = None if title is None else op.origin
    if (title, origin) != (lineage.title, lineage.title_origin):
        book.change(lineage.id, title=title, title_origin=origin)
        book.sessions[lineage.tip] = attrs.evolve(book.sessions[lineage.tip], title=title)
        book.tell(lineage.id, op.now)
    return title


def set_flags(book: Book, op: ops.SetFlags) -> Lineage:
    lineage = book.lineage(op.lineage_id)
    pinned = lineage.pinned if op.pinned is None else op.pinned
    archived = lineage.archived if op.archived is None else op.archived
    if (pinned, archived) != (lineage.pinned, lineage.archived):
        book.change(lineage.id, pinned=pinned, archived=archived)
        book.tell(lineage.id, op.now)
    return book.lineages[lineage.id]


def delete(book: Book, op: ops.Delete) -> ops.Deleted:
    lineage = book.lineage(op.lineage_id)
    gone, tip = lineage.id, lineage.tip
    lease = book.leases[gone]
    if lease.holder is not None and not op.force and lease.stamp != op.presumed_dead:
        raise LeaseBusy(f"{lease.holder.describe()} runs a turn in {gone}", holder=lease.holder.describe())
    if lease.holder is not None and op.force:
        take_away(book, ops.Revoke(lineage_id=gone, now=op.now, reason="deleted"))
    sessions = [each.id for each in book.sessions.values() if each.lineage_id == gone]
    for session_id in sessions:
        del book.sessions[session_id]
    rows = book.rows.pop(gone)
    del book.lineages[gone], book.leases[gone]
    for turn in [turn for turn in book.turns.values() if turn.lineage_id == gone]:
        del book.turns[turn.id]
        book.usage.pop(turn.id, None)
    for item in [item for item in book.inbox.values() if item.lineage_id == gone]:
        if item.status in {PENDING, "applied"}:
            book.set_item(item, lineage_id=None)
            continue
        book.settled.setdefault(item.id, op.now)
        status = "done" if item.status == "claimed" else item.status
        book.set_item(item, lineage_id=None, status=status, text="", attachments=(), outcome=None)
    book.forget([row.id for row in book.deliveries.values() if row.lineage_id == gone])
    book.state = {key: entry for key, entry in book.state.items() if entry.lineage_id != gone}
    for route in [route for route in book.routes.values() if route.lineage_id == gone]:
        book.routes[route.key] = attrs.evolve(route, lineage_id=None)
    of_rows = [at for at, one in enumerate(book.feed) if one.lineage_id == gone and one.message_id is not None]
    for at in of_rows:
        book.feed[at] = attrs.evolve(book.feed[at], session_id=tip)
    book.tell(gone, op.now, "delete-lineage")
    return ops.Deleted(lineage_id=gone, sessions=len(sessions), messages=len(rows))


def accept(book: Book, op: ops.Accept) -> tuple[AcceptResult, ...]:
    results = tuple(_accept_one(book, draft, op) for draft in op.drafts)
    for update in op.state:
        write_state(book, update, op.now)
    return results


def _accept_one(book: Book, draft: InboxDraft, op: ops.Accept) -> AcceptResult:
    for identity in draft.identities:
        if identity in book.identities:
            known = book.inbox[book.identities[identity]]
            fresh = tuple(one for one in dict.fromkeys(draft.identities) if one not in book.identities)
            book.set_item(known, identities=known.identities + fresh)
            book.identities |= dict.fromkeys(fresh, known.id)
            return AcceptResult(id=known.id, duplicate=True)
    lineage_id, most = draft.lineage_id or book.leads_to(draft.session_key), op.max_waiting
    if draft.only_if_idle and _is_busy(book, lineage_id):
        return AcceptResult(id=None, refused="busy")
    is_command = draft.kind == "control"
    pending = [i for i in book.inbox.values() if i.session_key == draft.session_key and i.status == PENDING]
    if not draft.error and len([i for i in pending if (i.kind == "control") is is_command]) >= most:
        return AcceptResult(id=None, refused=f"{most} {'commands' if is_command else 'messages'} wait already")
    book.last_item += 1
    inbox_id = InboxId(book.last_item)
    fields = attrs.asdict(draft, recurse=False) | {"lineage_id": lineage_id}
    del fields["only_if_idle"]
    status = QUARANTINED if draft.error else PENDING
    book.inbox[inbox_id] = InboxItem(id=inbox_id, status=status, attempts=0, **fields)
    for identity in draft.identities:
        book.identities[identity] = inbox_id
    if draft.error:
        book.settled[inbox_id] = draft.accepted_at
    for row in list(book.deliveries.values()) if draft.kind != "internal" else ():
        if row.status not in OPEN_STATES or address_of(row.target) != address_of(draft.source):
            continue
        book.heard[row.id] = row.attempt
        if row.awaits_inbound:
            book.send(row, awaits_inbound=False, due_at=op.now)
    return AcceptResult(id=inbox_id)


def _is_busy(book: Book, lineage_id: LineageId | None) -> bool:
    if lineage_id is None:
        return False
    lease = book.leases.get(lineage_id)
    return bool(book.waiting(lineage_id=lineage_id)) or (lease is not None and lease.holder is not None)


def attach(book: Book, op: ops.Attach) -> bool:
    item = book.inbox.get(op.inbox_id)
    if item is None or item.status != PENDING:
        return False
    book.inbox[item.id] = attrs.evolve(item, attachments=op.attachments)
    return True


def withdraw(book: Book, op: ops.Withdraw) -> int:
    pending = [i for i in book.inbox.values() if i.id in set(op.ids) and i.status == PENDING]
    for item in pending:
        book.settle(item, WITHDRAWN, op.now)
    return len(pending)


def control(book: Book, op: ops.Control) -> ControlOutcome:
    item, effect = book.inbox.get(op.inbox_id), op.effect
    if item is not None and item.outcome is not None:
        return attrs.evolve(item.outcome, repeated=True)
    if item is None or item.kind != "control" or item.status != PENDING:
        raise Conflict(f"inbox row {op.inbox_id} is no command that waits")
    runs = {
        ops.BindRoute: bind_route,
        ops.Compress: compress,
        ops.ReleaseRoute: release_route,
        ops.Rename: rename,
        ops.Revoke: revoke,
        ops.SetFlags: set_flags,
    }
    run = runs.get(type(effect))
    outcome = outcome_of(effect, None if run is None else run(book, effect))  # type: ignore[operator]
    book.set_item(item, status="applied", outcome=outcome)
    if op.settle:
        book.settle(book.inbox[item.id], "done", op.now)
    return outcome


def put_state(book: Book, op: ops.PutState) -> tuple[StateEntry | None, ...]:
    return tuple(write_state(book, update, op.now) for update in op.updates)


def write_state(book: Book, update: StateUpdate, now: int) -> StateEntry | None:
    place = (update.namespace, update.key)
    old = book.state.get(place)
    version = 0 if old is None or (old.expires_at is not None and old.expires_at <= now) else old.version
    if update.expected_version not in {None, version}:
        raise Conflict(f"{update.key!r} has version {version}, not {update.expected_version}")
    book.state.pop(place, None)
    if update.value is not None:
        book.state[place] = StateEntry(
            namespace=update.namespace,
            key=update.key,
            value=update.value,
            version=version + 1,
            updated_at=now,
            person=update.person,
            lineage_id=update.lineage_id,
            expires_at=update.expires_at,
        )
    return book.state.get(place)
