"""What all operations amount to: dictionaries of the contract's frozen values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.errors import SessionNotFound
from hermes_hookspecs.ids import MessageId
from hermes_hookspecs.inbox import PENDING
from hermes_hookspecs.messages import USER, Message, preview_of
from hermes_hookspecs.principal import room_of
from hermes_hookspecs.sessions import SessionEntry
from hermes_hookspecs.state import Change

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_hookspecs.ids import DeliveryId, InboxId, LineageId, SessionId, SessionKey, TurnId
    from hermes_hookspecs.inbox import EntranceServer, InboxItem
    from hermes_hookspecs.messages import MessageDraft
    from hermes_hookspecs.outbox import Delivery
    from hermes_hookspecs.sessions import Lineage, Route, Session
    from hermes_hookspecs.source import Entrance, SessionSource
    from hermes_hookspecs.state import StateEntry
    from hermes_hookspecs.turns import Lease, RecordedUsage, Turn

__all__ = ["Book"]


class Book:
    """The state of the store; changed in place by one operation at a time."""

    def __init__(self) -> None:
        self.lineages: dict[LineageId, Lineage] = {}
        self.leases: dict[LineageId, Lease] = {}
        self.sessions: dict[SessionId, Session] = {}
        self.rows: dict[LineageId, list[Message]] = {}
        self.turns: dict[TurnId, Turn] = {}
        self.usage: dict[TurnId, list[RecordedUsage]] = {}
        self.routes: dict[SessionKey, Route] = {}
        self.inbox: dict[InboxId, InboxItem] = {}
        self.identities: dict[str, InboxId] = {}
        self.settled: dict[InboxId, int] = {}
        self.servers: dict[tuple[Entrance, tuple[object, ...]], EntranceServer] = {}
        self.deliveries: dict[DeliveryId, Delivery] = {}
        self.marked: dict[tuple[DeliveryId, int], int] = {}
        self.heard: dict[DeliveryId, int] = {}
        self.state: dict[tuple[str, str], StateEntry] = {}
        self.feed: list[Change] = []
        self.feed_begin = 0
        self.last_row = 0
        self.last_item = 0
        self.last_delivery = 0

    def lineage(self, lineage_id: LineageId) -> Lineage:
        try:
            return self.lineages[lineage_id]
        except KeyError:
            raise SessionNotFound(lineage_id) from None

    def change(self, lineage_id: LineageId, bump: int = 1, **fields: object) -> None:
        """Change fields of a lineage and count the write."""
        old = self.lineages[lineage_id]
        self.lineages[lineage_id] = attrs.evolve(old, version=old.version + bump, **fields)  # type: ignore[arg-type]

    def touch(self, lineage_id: LineageId, now: int) -> None:
        self.change(lineage_id, 0, last_activity=max(self.lineages[lineage_id].last_activity, now))

    def tell(self, lineage_id: LineageId, now: int, kind: str = "lineage") -> None:
        self.feed.append(Change(kind=kind, lineage_id=lineage_id, session_id=None, message_id=None, at=now))

    def leads_to(self, key: SessionKey) -> LineageId | None:
        route = self.routes.get(key)
        return None if route is None else route.lineage_id

    def end_tip(self, lineage_id: LineageId, reason: str, now: int) -> None:
        """End the tip of a lineage where no route leads to it any more."""
        tip = self.sessions[self.lineages[lineage_id].tip]
        routed = any(route.lineage_id == lineage_id for route in self.routes.values())
        if tip.ended_at is None and not routed:
            self.sessions[tip.id] = attrs.evolve(tip, ended_at=now, end_reason=reason)
            self.change(lineage_id)

    def said_at(self, lineage_id: LineageId, source: SessionSource, now: int) -> None:
        """Make a lineage private once something of it is said elsewhere than in its room."""
        lineage = self.lineages[lineage_id]
        if lineage.room is not None and lineage.room != room_of(source):
            self.lineages[lineage_id] = attrs.evolve(lineage, room=None)
            self.tell(lineage_id, now)

    def waiting(self, *, key: SessionKey | None = None, lineage_id: LineageId | None = None) -> list[InboxItem]:
        """Return pending messages, oldest first; control rows are none."""
        return [
            item
            for item in self.inbox.values()
            if item.status == PENDING and item.kind != "control"
            if key is None or item.session_key == key
            if lineage_id is None or item.lineage_id == lineage_id
        ]

    def adopt(self, key: SessionKey, lineage_id: LineageId) -> None:
        for item in self.waiting(key=key):
            if item.lineage_id is None:
                self.set_item(item, lineage_id=lineage_id)

    def set_item(self, item: InboxItem, **fields: object) -> None:
        self.inbox[item.id] = attrs.evolve(item, **fields)  # type: ignore[arg-type]

    def settle(self, item: InboxItem, status: str, now: int, **fields: object) -> None:
        self.settled[item.id] = now
        self.set_item(item, status=status, **fields)

    def send(self, row: Delivery, **fields: object) -> Delivery:
        """Change fields of a delivery."""
        self.deliveries[row.id] = attrs.evolve(row, **fields)  # type: ignore[arg-type]
        return self.deliveries[row.id]

    def forget(self, ids: Iterable[DeliveryId]) -> None:
        for delivery_id in ids:
            del self.deliveries[delivery_id]
        self.marked = {place: each for place, each in self.marked.items() if place[0] in self.deliveries}

    def entry(self, lineage_id: LineageId, key: SessionKey, **fields: object) -> SessionEntry:
        found = self.lineages[lineage_id]
        entry = SessionEntry(
            session_key=key,
            session_id=found.tip,
            lineage_id=lineage_id,
            source=found.source,
            created_at=found.created_at,
            updated_at=found.last_activity,
            version=found.version,
            title=found.title,
            shared=found.shared,
        )
        return attrs.evolve(entry, **fields)  # type: ignore[arg-type]

    def store(self, turn: Turn, drafts: Iterable[MessageDraft], now: int) -> tuple[MessageId, ...]:
        """Store rows of a turn, count them, tell the feed; return their ids."""
        lineage, session = self.lineages[turn.lineage_id], self.sessions[turn.session_id]
        ids = []
        for draft in drafts:
            self.last_row += 1
            row_id = MessageId(self.last_row)
            ids.append(row_id)
            known = self.rows[lineage.id]
            if draft.role == USER and not any(row.role == USER for row in known):
                self.change(lineage.id, 0, preview=preview_of(draft.content))
            fields = attrs.asdict(draft, recurse=False)
            known.append(Message(id=row_id, lineage_id=lineage.id, session_id=session.id, turn_id=turn.id, **fields))
            self.feed.append(
                Change(kind="insert", lineage_id=lineage.id, session_id=session.id, message_id=row_id, at=now)
            )
            session = attrs.evolve(
                session,
                message_count=session.message_count + 1,
                tool_call_count=session.tool_call_count + len(draft.tool_calls),
            )
        self.sessions[session.id] = session
        self.change(lineage.id, 0, message_count=lineage.message_count + len(ids))
        return tuple(ids)
