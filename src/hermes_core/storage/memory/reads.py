"""Reads over one set of tables, which nobody changes."""

from __future__ import annotations

from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING

from hermes_core.storage.memory.closing import active_turn
from hermes_core.storage.memory.legality import open_calls
from hermes_core.storage.memory.listing import by_activity, count_everything, fits, summary_of
from hermes_core.storage.memory.outbox import heads
from hermes_core.storage.memory.record_reads import MemoryRecordReader
from hermes_core.storage.memory.text import clean_text
from hermes_hookspecs.inbox import APPLIED, CONTROL, PENDING, QUARANTINED
from hermes_hookspecs.messages import ASSISTANT, USER
from hermes_hookspecs.principal import may_read
from hermes_hookspecs.sessions import SessionFilter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_core.storage.memory.tables import Tables
    from hermes_hookspecs.ids import DeliveryId, InboxId, LineageId, MessageId, SessionId, SessionKey, TurnId
    from hermes_hookspecs.inbox import EntranceServer, InboxItem
    from hermes_hookspecs.messages import Message, ToolCall
    from hermes_hookspecs.outbox import Delivery
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import Lineage, Route, Session, SessionSummary, StoreStats
    from hermes_hookspecs.source import Entrance
    from hermes_hookspecs.state import Change, StateEntry
    from hermes_hookspecs.turns import Lease, RecordedUsage, Turn

__all__ = ["MemoryReader"]

Door = tuple[str, str]
"""Platform and account: what messages of an entrance have in common, whichever terminal they came from."""

_LOWER_ASCII = str.maketrans(ascii_uppercase, ascii_lowercase)


class MemoryReader(MemoryRecordReader):
    """The reads of the port, on ``tables``; the instance's name stands in its cursors."""

    def __init__(self, tables: Tables, instance: str) -> None:
        self._tables = tables
        self._instance = instance

    # routes
    def route(self, key: SessionKey) -> Route | None:
        """Return the route of exactly this key."""
        return self._tables.routes.get(key)

    def routes(self, *, lineage_id: LineageId | None = None, limit: int | None = None) -> Sequence[Route]:
        """Return routes, last used first."""
        found = [r for r in self._tables.routes.values() if lineage_id is None or r.lineage_id == lineage_id]
        return tuple(sorted(found, key=lambda route: (-route.updated_at, route.key))[:limit])

    # lineages and sessions
    def lineage(self, lineage_id: LineageId, principal: Principal) -> Lineage | None:
        """Return a lineage that the principal may see."""
        found = self._tables.lineages.get(lineage_id)
        if found is None or not may_read(principal, found.owner, found.room):
            return None
        return found

    def _visible(self, principal: Principal) -> list[Lineage]:
        return [found for found in self._tables.lineages.values() if self.lineage(found.id, principal) is not None]

    def session(self, session_id: SessionId, principal: Principal) -> Session | None:
        """Return a session by its exact id."""
        found = self._tables.sessions.get(session_id)
        return None if found is None or self.lineage(found.lineage_id, principal) is None else found

    def segments(self, lineage_id: LineageId, principal: Principal) -> Sequence[Session]:
        """Return the sessions of a lineage, oldest first."""
        if self.lineage(lineage_id, principal) is None:
            return ()
        return tuple(found for found in self._tables.sessions.values() if found.lineage_id == lineage_id)

    def lineages_by_title(self, title: str, principal: Principal) -> Sequence[Lineage]:
        """Return the lineages with exactly this title, last active first."""
        wanted = clean_text(title)
        return by_activity([found for found in self._visible(principal) if found.title == wanted])

    def sessions_by_prefix(self, prefix: str, principal: Principal, *, limit: int = 20) -> Sequence[Session]:
        """Return sessions whose id begins with ``prefix``, newest id first."""
        ids = sorted((each for each in self._tables.sessions if each.startswith(prefix)), reverse=True)
        found = [self.session(each, principal) for each in ids]
        return tuple(session for session in found if session is not None)[:limit]

    def summaries(
        self, principal: Principal, *, where: SessionFilter | None = None, limit: int | None = 20
    ) -> Sequence[SessionSummary]:
        """Return lineages shown as their tips, last active first."""
        wanted = SessionFilter() if where is None else where
        found = by_activity([lineage for lineage in self._visible(principal) if fits(lineage, wanted)])
        return tuple(summary_of(self._tables, lineage) for lineage in found[:limit])

    def summary(self, lineage_id: LineageId, principal: Principal) -> SessionSummary | None:
        """Return one lineage as :meth:`summaries` shows it."""
        found = self.lineage(lineage_id, principal)
        return None if found is None else summary_of(self._tables, found)

    def stats(self) -> StoreStats:
        """Return counts over the whole store."""
        return count_everything(self._tables)

    # transcripts
    def messages(
        self,
        lineage_id: LineageId,
        principal: Principal,
        *,
        session_id: SessionId | None = None,
        after: MessageId | None = None,
        limit: int | None = None,
        hidden: bool = False,
    ) -> Sequence[Message]:
        """Return rows of a lineage in order of storing."""
        if self.lineage(lineage_id, principal) is None:
            return ()
        found = [
            row
            for row in self._tables.transcripts[lineage_id]
            if (hidden or not row.hidden)
            and (session_id is None or row.session_id == session_id)
            and (after is None or row.id > after)
        ]
        return tuple(found[:limit])

    def last_messages(
        self, lineage_id: LineageId, principal: Principal, *, count: int, session_id: SessionId | None = None
    ) -> Sequence[Message]:
        """Return the last ``count`` rows, in order of storing."""
        rows = self.messages(lineage_id, principal, session_id=session_id)
        return rows[-count:] if count > 0 else ()

    def scan(
        self,
        needles: Sequence[str],
        principal: Principal,
        *,
        exclude: LineageId | None = None,
        limit: int = 20,
    ) -> Sequence[Message]:
        """Return user and assistant rows that hold every needle, newest first."""
        wanted = [clean_text(needle).translate(_LOWER_ASCII) for needle in needles if needle]
        if not wanted:
            return ()
        rows = [
            row
            for lineage in self._visible(principal)
            if lineage.id != exclude
            for row in self._tables.transcripts[lineage.id]
            if row.role in {USER, ASSISTANT} and not row.hidden
        ]
        hits = [row for row in rows if all(needle in row.content.translate(_LOWER_ASCII) for needle in wanted)]
        return tuple(sorted(hits, key=lambda row: row.id, reverse=True)[:limit])

    # turns and leases
    def turn(self, turn_id: TurnId) -> Turn | None:
        """Return a turn."""
        return self._tables.turns.get(turn_id)

    def turns(self, lineage_id: LineageId, principal: Principal) -> Sequence[Turn]:
        """Return the turns of a lineage, oldest first."""
        if self.lineage(lineage_id, principal) is None:
            return ()
        return tuple(turn for turn in self._tables.turns.values() if turn.lineage_id == lineage_id)

    def active_turn(self, lineage_id: LineageId) -> Turn | None:
        """Return the turn that runs in a lineage, or that nobody has ended yet."""
        return active_turn(self._tables, lineage_id)

    def open_calls(self, lineage_id: LineageId) -> Sequence[ToolCall]:
        """Return the calls of the active turn that have no result yet, in order."""
        turn = self.active_turn(lineage_id)
        return () if turn is None else tuple(open_calls(self._tables.transcripts[lineage_id], turn.id).values())

    def usage(self, turn_id: TurnId) -> Sequence[RecordedUsage]:
        """Return what was recorded of a turn, in order."""
        return tuple(row.recorded for row in self._tables.usage if row.turn_id == turn_id)

    def lease(self, lineage_id: LineageId) -> Lease | None:
        """Return the lease of a lineage."""
        return self._tables.leases.get(lineage_id)

    def leases(self) -> Sequence[Lease]:
        """Return the leases that are held, longest held first."""
        held = [lease for lease in self._tables.leases.values() if lease.holder is not None]
        return tuple(sorted(held, key=lambda lease: (lease.acquired_at or 0, lease.lineage_id)))

    # inbox
    def inbox_item(self, inbox_id: InboxId) -> InboxItem | None:
        """Return one row."""
        return self._tables.inbox.get(inbox_id)

    def waiting(self, lineage_id: LineageId, *, limit: int = 50) -> Sequence[InboxItem]:
        """Return the pending messages of a lineage, oldest first."""
        return tuple(self._tables.pending(lineage_id=lineage_id)[:limit])

    def waiting_of_key(self, key: SessionKey, *, limit: int = 50) -> Sequence[InboxItem]:
        """Return the pending messages of a key, oldest first."""
        return tuple(self._tables.pending(key=key)[:limit])

    def work(self, entrances: Sequence[Entrance], *, limit: int = 100) -> Sequence[LineageId]:
        """Return lineages with pending messages of these entrances that nobody waits for, longest waiting first."""
        found = [item.lineage_id for item in self._unattended(entrances) if item.lineage_id is not None]
        return tuple(dict.fromkeys(found))[:limit]

    def unrouted(self, entrances: Sequence[Entrance], *, limit: int = 100) -> Sequence[InboxItem]:
        """Return pending messages of these entrances without a lineage, oldest first."""
        return tuple(item for item in self._unattended(entrances) if item.lineage_id is None)[:limit]

    def _unattended(self, entrances: Sequence[Entrance]) -> list[InboxItem]:
        doors = _doors(entrances)
        return [item for item in self._tables.pending() if item.waiter is None and _door(item.entrance) in doors]

    def controls(self, entrances: Sequence[Entrance], *, limit: int = 100) -> Sequence[InboxItem]:
        """Return control rows of these entrances that nobody waits for and that are not done, oldest first."""
        doors = _doors(entrances)
        found = [
            item
            for item in self._tables.inbox.values()
            if item.kind == CONTROL
            and item.status in {PENDING, APPLIED}
            and item.waiter is None
            and _door(item.entrance) in doors
        ]
        oldest = {(_door(item.entrance), item.session_key): item for item in reversed(found)}
        return tuple(sorted(oldest.values(), key=lambda item: item.id)[:limit])

    def controls_of_key(self, key: SessionKey, *, limit: int = 50) -> Sequence[InboxItem]:
        """Return control rows of a key that nobody waits for and that are not done, oldest first."""
        found = [item for item in self._tables.inbox.values() if item.session_key == key and item.kind == CONTROL]
        return tuple(item for item in found if item.status in {PENDING, APPLIED} and item.waiter is None)[:limit]

    def attended(self, *, limit: int = 1000) -> Sequence[InboxItem]:
        """Return pending rows whose sender waits in the same call, by key, those of one key oldest first."""
        found = [item for item in self._tables.inbox.values() if item.status == PENDING and item.waiter is not None]
        return tuple(sorted(found, key=lambda item: (item.session_key.encode(), item.id))[:limit])

    def quarantined(self, *, limit: int = 100) -> Sequence[InboxItem]:
        """Return the rows that could not be read, newest first."""
        found = [item for item in self._tables.inbox.values() if item.status == QUARANTINED]
        return tuple(found[::-1][:limit])

    def servers(self) -> Sequence[EntranceServer]:
        """Return who serves which entrance, in order of entrance and beginning."""
        return tuple(sorted(self._tables.servers.values(), key=lambda server: (str(server.entrance), server.since)))

    # outbox
    def delivery(self, delivery_id: DeliveryId) -> Delivery | None:
        """Return one delivery."""
        return self._tables.deliveries.get(delivery_id)

    def delivery_by_key(self, key: str) -> Delivery | None:
        """Return the delivery with an idempotency key."""
        wanted = clean_text(key)
        return next((row for row in self._tables.deliveries.values() if row.key == wanted), None)

    def deliveries(self, *, statuses: Sequence[str] = (), limit: int = 100) -> Sequence[Delivery]:
        """Return deliveries with one of these statuses (all when empty), newest first."""
        found = [row for row in self._tables.deliveries.values() if not statuses or row.status in statuses]
        return tuple(found[::-1][:limit])

    def next_deliveries(self, entrances: Sequence[Entrance], *, limit: int = 100) -> Sequence[Delivery]:
        """Return the oldest open delivery of each address of these entrances, longest waiting first."""
        doors = _doors(entrances)
        found = [row for row in heads(self._tables) if (row.target.platform, row.target.account_id) in doors]
        return tuple(found[:limit])

    # state and feed
    def state(self, namespace: str, key: str, *, now: int) -> StateEntry | None:
        """Return one entry that has not expired."""
        found = self._tables.state.get((namespace, key))
        if found is None or (found.expires_at is not None and found.expires_at <= now):
            return None
        return found

    def states(self, namespace: str, *, now: int, prefix: str = "") -> Sequence[StateEntry]:
        """Return the entries of a namespace whose key begins with ``prefix``, in order of their keys."""
        keys = sorted(key for space, key in self._tables.state if space == namespace and key.startswith(prefix))
        found = [self.state(namespace, key, now=now) for key in keys]
        return tuple(entry for entry in found if entry is not None)

    def changes(self, after: str | None, *, limit: int = 1000) -> tuple[Sequence[Change], str]:
        """Return changes behind an opaque cursor, and the cursor behind them."""
        begin = self._tables.feed_begin
        start = begin if after is None else self._position(after)
        found = tuple(self._tables.feed[start - begin : start - begin + limit])
        return found, f"{self._instance}.{start + len(found)}"

    def _position(self, cursor: str) -> int:
        instance, _, number = cursor.rpartition(".")
        if instance != self._instance or not (number.isascii() and number.isdigit()):
            raise ValueError(f"{cursor!r} is no cursor of this store; begin again with None")
        position = int(number)
        if position > self._tables.feed_begin + len(self._tables.feed):
            raise ValueError(f"{cursor!r} stands behind the newest change of this store; begin again with None")
        if position < self._tables.feed_begin:
            raise ValueError(f"changes behind {cursor!r} are gone; read the rows anew and begin again with None")
        return position


def _door(entrance: Entrance) -> Door:
    return entrance.platform, entrance.account_id


def _doors(entrances: Sequence[Entrance]) -> frozenset[Door]:
    return frozenset(map(_door, entrances))
