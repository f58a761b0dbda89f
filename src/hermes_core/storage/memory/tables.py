"""All that a memory store holds: dictionaries of immutable values, copied as a whole for every write.

A handler changes a copy; the store takes the copy when the handler returned and forgets it when the handler raised.
So a write is all or nothing, and a reader that holds a :class:`Tables` has one consistent view for as long as it likes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.errors import SessionNotFound
from hermes_hookspecs.ids import MessageId
from hermes_hookspecs.inbox import CONTROL, PENDING
from hermes_hookspecs.messages import USER, Message, preview_of
from hermes_hookspecs.principal import room_of
from hermes_hookspecs.sessions import SessionEntry
from hermes_hookspecs.state import Change

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_hookspecs.approvals import Approval
    from hermes_hookspecs.audit import AuditRow
    from hermes_hookspecs.ids import ApprovalId, DeliveryId, InboxId, JobId, LineageId, SessionId, SessionKey, TurnId
    from hermes_hookspecs.inbox import EntranceServer, InboxItem
    from hermes_hookspecs.jobs import Job
    from hermes_hookspecs.messages import MessageDraft
    from hermes_hookspecs.outbox import Delivery
    from hermes_hookspecs.sessions import Lineage, Route, RouteMove, Session
    from hermes_hookspecs.source import Entrance, SessionSource
    from hermes_hookspecs.state import StateEntry
    from hermes_hookspecs.turns import Lease, RecordedUsage, Turn

__all__ = ["ServerKey", "Tables", "UsageRow", "entry_of"]

ServerKey = tuple["Entrance", tuple[str, str, str, int, str]]
"""An entrance, and what tells the process that serves it from all others."""


@attrs.frozen
class UsageRow:
    """Usage of a turn."""

    lineage_id: LineageId
    turn_id: TurnId
    recorded: RecordedUsage


@attrs.define
class Tables:
    """The whole store. Dictionaries keep the order of insertion, which for rows with numbers is their order.

    Attributes:
        settled: when an inbox row came to its end, UTC milliseconds; rows that wait or run are not in it.
        marked: attempt that marked a part of a delivery as sent, by delivery and place of the part.
        answered: deliveries whose address was heard from since they were claimed.
    """

    lineages: dict[LineageId, Lineage] = attrs.field(factory=dict)
    leases: dict[LineageId, Lease] = attrs.field(factory=dict)
    sessions: dict[SessionId, Session] = attrs.field(factory=dict)
    transcripts: dict[LineageId, tuple[Message, ...]] = attrs.field(factory=dict)
    turns: dict[TurnId, Turn] = attrs.field(factory=dict)
    usage: list[UsageRow] = attrs.field(factory=list)
    routes: dict[SessionKey, Route] = attrs.field(factory=dict)
    inbox: dict[InboxId, InboxItem] = attrs.field(factory=dict)
    identities: dict[str, InboxId] = attrs.field(factory=dict)
    settled: dict[InboxId, int] = attrs.field(factory=dict)
    servers: dict[ServerKey, EntranceServer] = attrs.field(factory=dict)
    deliveries: dict[DeliveryId, Delivery] = attrs.field(factory=dict)
    marked: dict[tuple[DeliveryId, int], int] = attrs.field(factory=dict)
    answered: frozenset[DeliveryId] = frozenset()
    state: dict[tuple[str, str], StateEntry] = attrs.field(factory=dict)
    feed: list[Change] = attrs.field(factory=list)
    feed_begin: int = 0
    approvals: dict[ApprovalId, Approval] = attrs.field(factory=dict)
    audit: dict[tuple[TurnId, str], AuditRow] = attrs.field(factory=dict)
    jobs: dict[JobId, Job] = attrs.field(factory=dict)
    moves: list[RouteMove] = attrs.field(factory=list)
    last_message: int = 0
    last_inbox: int = 0
    last_delivery: int = 0
    last_audit: int = 0
    last_move: int = 0

    def copy(self) -> Tables:
        """Return tables that can be changed while these stay as they are; the values are shared."""
        copied = attrs.evolve(self)
        for field in attrs.fields(Tables):
            value = getattr(self, field.name)
            if isinstance(value, dict | list):
                setattr(copied, field.name, value.copy())
        return copied

    # lineages
    def lineage(self, lineage_id: LineageId) -> Lineage:
        """Return a lineage.

        :raises SessionNotFound: no such lineage.
        """
        found = self.lineages.get(lineage_id)
        if found is None:
            raise SessionNotFound(lineage_id)
        return found

    def bump(self, lineage_id: LineageId) -> int:
        """Count one write of a lineage; return its new version."""
        lineage = self.lineages[lineage_id]
        self.lineages[lineage_id] = attrs.evolve(lineage, version=lineage.version + 1)
        return lineage.version + 1

    def touch(self, lineage_id: LineageId, now: int) -> None:
        """Move the last activity to ``now``, never backwards."""
        lineage = self.lineages[lineage_id]
        self.lineages[lineage_id] = attrs.evolve(lineage, last_activity=max(lineage.last_activity, now))

    def note_lineage(self, lineage_id: LineageId, now: int, kind: str = "lineage") -> None:
        """Tell the change feed about a lineage."""
        self.feed.append(Change(kind=kind, lineage_id=lineage_id, session_id=None, message_id=None, at=now))

    def is_routed(self, lineage_id: LineageId) -> bool:
        """Return whether any route leads to a lineage."""
        return any(route.lineage_id == lineage_id for route in self.routes.values())

    def end_tip(self, lineage_id: LineageId, reason: str, now: int) -> None:
        """End the tip of a lineage that no route leads to any more; the first reason wins."""
        tip = self.sessions[self.lineages[lineage_id].tip]
        if tip.ended_at is None and not self.is_routed(lineage_id):
            self.sessions[tip.id] = attrs.evolve(tip, ended_at=now, end_reason=reason)
            self.bump(lineage_id)

    def said_at(self, lineage_id: LineageId, source: SessionSource, now: int) -> None:
        """Make a lineage private once something of it is said elsewhere than in its room; the feed is told."""
        lineage = self.lineages[lineage_id]
        if lineage.room is not None and lineage.room != room_of(source):
            self.lineages[lineage_id] = attrs.evolve(lineage, room=None)
            self.note_lineage(lineage_id, now)

    def reopen_tip(self, lineage_id: LineageId) -> bool:
        """Take back the end of a lineage's tip; return whether it had ended."""
        tip = self.sessions[self.lineages[lineage_id].tip]
        if tip.ended_at is None:
            return False
        self.sessions[tip.id] = attrs.evolve(tip, ended_at=None, end_reason=None)
        return True

    # rows
    def add_rows(
        self,
        lineage_id: LineageId,
        session_id: SessionId,
        turn_id: TurnId | None,
        drafts: Iterable[MessageDraft],
        now: int,
    ) -> tuple[Message, ...]:
        """Store rows with their counters, preview and changes; return them in order."""
        added: list[Message] = []
        for draft in drafts:
            self.last_message += 1
            fields = attrs.asdict(draft, recurse=False)
            row = Message(
                id=MessageId(self.last_message),
                lineage_id=lineage_id,
                session_id=session_id,
                turn_id=turn_id,
                **fields,
            )
            added.append(row)
            self.feed.append(
                Change(kind="insert", lineage_id=lineage_id, session_id=session_id, message_id=row.id, at=now)
            )
        self._count(lineage_id, session_id, added)
        self.transcripts[lineage_id] += tuple(added)
        return tuple(added)

    def _count(self, lineage_id: LineageId, session_id: SessionId, added: list[Message]) -> None:
        lineage, session = self.lineages[lineage_id], self.sessions[session_id]
        preview = lineage.preview
        if not any(row.role == USER for row in self.transcripts[lineage_id]):
            preview = next((preview_of(row.content) for row in added if row.role == USER), preview)
        self.lineages[lineage_id] = attrs.evolve(
            lineage, message_count=lineage.message_count + len(added), preview=preview
        )
        self.sessions[session_id] = attrs.evolve(
            session,
            message_count=session.message_count + len(added),
            tool_call_count=session.tool_call_count + sum(len(row.tool_calls) for row in added),
        )

    # inbox
    def pending(self, *, key: SessionKey | None = None, lineage_id: LineageId | None = None) -> list[InboxItem]:
        """Return the pending messages of a key or of a lineage, oldest first; control rows are no messages."""
        return [
            item
            for item in self.inbox.values()
            if item.status == PENDING
            and item.kind != CONTROL
            and (key is None or item.session_key == key)
            and (lineage_id is None or item.lineage_id == lineage_id)
        ]

    def pending_controls(self, key: SessionKey) -> list[InboxItem]:
        """Return the pending control rows of a key, oldest first."""
        found = (item for item in self.inbox.values() if item.session_key == key and item.kind == CONTROL)
        return [item for item in found if item.status == PENDING]

    def set_item(self, item: InboxItem, *, status: str | None = None, attempts: int | None = None) -> InboxItem:
        """Give an inbox row a status, an attempt count; return it."""
        new = attrs.evolve(
            item,
            status=item.status if status is None else status,
            attempts=item.attempts if attempts is None else attempts,
        )
        self.inbox[item.id] = new
        return new

    def settle(self, item: InboxItem, status: str, now: int) -> InboxItem:
        """Bring an inbox row to its end; return it."""
        self.settled[item.id] = now
        return self.set_item(item, status=status)

    def give_lineage(self, item: InboxItem, lineage_id: LineageId | None) -> None:
        """Say to which lineage an inbox row belongs."""
        self.inbox[item.id] = attrs.evolve(item, lineage_id=lineage_id)

    def adopt_waiting(self, key: SessionKey, lineage_id: LineageId) -> None:
        """Give a lineage the pending messages of a key that have none yet."""
        for item in self.pending(key=key):
            if item.lineage_id is None:
                self.give_lineage(item, lineage_id)


def entry_of(
    tables: Tables,
    lineage_id: LineageId,
    key: SessionKey,
    *,
    created: bool = False,
    claimed: SessionKey | None = None,
) -> SessionEntry:
    """Return what ``key`` leads to, as callers see it."""
    lineage = tables.lineages[lineage_id]
    return SessionEntry(
        session_key=key,
        session_id=lineage.tip,
        lineage_id=lineage_id,
        source=lineage.source,
        created_at=lineage.created_at,
        updated_at=lineage.last_activity,
        version=lineage.version,
        title=lineage.title,
        shared=lineage.shared,
        created=created,
        claimed=claimed,
    )
