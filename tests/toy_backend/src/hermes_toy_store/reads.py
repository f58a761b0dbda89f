"""The reads of the port, over a book that stands still meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.messages import ASSISTANT, USER
from hermes_hookspecs.principal import may_read
from hermes_hookspecs.sessions import SessionFilter, SessionSummary, StoreStats
from hermes_toy_store import post
from hermes_toy_store.talk import active, open_calls

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_hookspecs.ids import DeliveryId, InboxId, LineageId, MessageId, SessionId, SessionKey, TurnId
    from hermes_hookspecs.inbox import EntranceServer, InboxItem
    from hermes_hookspecs.jobs import Job
    from hermes_hookspecs.messages import Message, ToolCall
    from hermes_hookspecs.outbox import Delivery
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import Lineage, Route, Session
    from hermes_hookspecs.source import Entrance
    from hermes_hookspecs.state import Change, StateEntry
    from hermes_hookspecs.turns import Lease, RecordedUsage, Turn
    from hermes_toy_store.book import Book

__all__ = ["Reads"]

_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def _rank(lineage: Lineage) -> tuple[int, str]:
    return lineage.last_activity, lineage.id


def _sum(numbers: Iterable[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None


class Reads:
    """Reads of ``book``; cursors begin with ``name``, which is the store's own."""

    def __init__(self, book: Book, name: str) -> None:
        self.book = book
        self.name = name

    def route(self, key: SessionKey) -> Route | None:
        return self.book.routes.get(key)

    def routes(self, *, lineage_id: LineageId | None = None, limit: int | None = None) -> Sequence[Route]:
        found = [r for r in self.book.routes.values() if lineage_id in {None, r.lineage_id}]
        return tuple(sorted(found, key=lambda route: (-route.updated_at, route.key))[:limit])

    def lineage(self, lineage_id: LineageId, principal: Principal) -> Lineage | None:
        found = self.book.lineages.get(lineage_id)
        return found if found is not None and may_read(principal, found.owner, found.room) else None

    def _seen(self, principal: Principal) -> list[Lineage]:
        found = [self.lineage(lineage_id, principal) for lineage_id in self.book.lineages]
        return sorted((each for each in found if each is not None), key=_rank, reverse=True)

    def session(self, session_id: SessionId, principal: Principal) -> Session | None:
        found = self.book.sessions.get(session_id)
        return found if found is not None and self.lineage(found.lineage_id, principal) is not None else None

    def segments(self, lineage_id: LineageId, principal: Principal) -> Sequence[Session]:
        found = [each for each in self.book.sessions.values() if each.lineage_id == lineage_id]
        return tuple(found) if self.lineage(lineage_id, principal) is not None else ()

    def lineages_by_title(self, title: str, principal: Principal) -> Sequence[Lineage]:
        return tuple(each for each in self._seen(principal) if each.title == title)

    def sessions_by_prefix(self, prefix: str, principal: Principal, *, limit: int = 20) -> Sequence[Session]:
        ids = sorted((each for each in self.book.sessions if each.startswith(prefix)), reverse=True)
        return tuple(found for found in (self.session(each, principal) for each in ids) if found is not None)[:limit]

    def summaries(
        self, principal: Principal, *, where: SessionFilter | None = None, limit: int | None = 20
    ) -> Sequence[SessionSummary]:
        wanted = where or SessionFilter()
        found = [
            each
            for each in self._seen(principal)
            if wanted.source in {None, each.source.platform}
            and wanted.archived in {None, each.archived}
            and wanted.empty in {None, not each.message_count}
            and wanted.title in {None, each.title}
            and (wanted.before is None or _rank(each) < wanted.before)
        ]
        return tuple(self._summary(each) for each in found[:limit])

    def _summary(self, lineage: Lineage) -> SessionSummary:
        tip, holder = self.book.sessions[lineage.tip], self.book.leases[lineage.id].holder
        segments = [each for each in self.book.sessions.values() if each.lineage_id == lineage.id]
        counted = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "estimated_cost_usd")
        return SessionSummary(
            session_id=tip.id,
            lineage_id=lineage.id,
            source=tip.source,
            account_id=tip.account_id,
            user_id=tip.user_id,
            title=lineage.title,
            preview=lineage.preview,
            started_at=segments[0].started_at,
            last_activity=lineage.last_activity,
            ended_at=tip.ended_at,
            end_reason=tip.end_reason,
            message_count=lineage.message_count,
            segments=lineage.segments,
            model=tip.model,
            pinned=lineage.pinned,
            archived=lineage.archived,
            locked_by=None if holder is None else holder.describe(),
            **{name: _sum(getattr(each, name) for each in segments) for name in counted},  # type: ignore[arg-type]
        )

    def summary(self, lineage_id: LineageId, principal: Principal) -> SessionSummary | None:
        found = self.lineage(lineage_id, principal)
        return None if found is None else self._summary(found)

    def stats(self) -> StoreStats:
        lineages, rows = list(self.book.lineages.values()), [row for some in self.book.rows.values() for row in some]
        archived, hidden = sum(each.archived for each in lineages), sum(row.hidden for row in rows)
        platforms: dict[str, tuple[int, int]] = {}
        for each in lineages:
            number, messages = platforms.get(each.source.platform, (0, 0))
            platforms[each.source.platform] = (number + 1, messages + each.message_count)
        return StoreStats(
            lineages=len(lineages),
            listed=len(lineages) - archived,
            archived=archived,
            empty=sum(not each.message_count for each in lineages),
            sessions=len(self.book.sessions),
            messages=len(rows) - hidden,
            hidden=hidden,
            turns=len(self.book.turns),
            routes=sum(route.lineage_id is not None for route in self.book.routes.values()),
            waiting=len(self.book.waiting()),
            per_platform=tuple(sorted(((p, *n) for p, n in platforms.items()), key=lambda row: (-row[2], row[0]))),
            size=None,
        )

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
        rows = self.book.rows[lineage_id] if self.lineage(lineage_id, principal) is not None else []
        found = [row for row in rows if (hidden or not row.hidden) and session_id in {None, row.session_id}]
        return tuple([row for row in found if after is None or row.id > after][:limit])

    def last_messages(
        self, lineage_id: LineageId, principal: Principal, *, count: int, session_id: SessionId | None = None
    ) -> Sequence[Message]:
        rows = self.messages(lineage_id, principal, session_id=session_id)
        return rows[max(0, len(rows) - count) :]

    def scan(
        self, needles: Sequence[str], principal: Principal, *, exclude: LineageId | None = None, limit: int = 20
    ) -> Sequence[Message]:
        wanted = [needle.translate(_LOWER) for needle in needles if needle]
        rows = [
            row for each in self._seen(principal) if each.id != exclude for row in self.messages(each.id, principal)
        ]
        hits = [
            row
            for row in rows
            if wanted and row.role in {USER, ASSISTANT}
            if all(needle in row.content.translate(_LOWER) for needle in wanted)
        ]
        return tuple(sorted(hits, key=lambda row: -row.id)[:limit])

    def turn(self, turn_id: TurnId) -> Turn | None:
        return self.book.turns.get(turn_id)

    def turns(self, lineage_id: LineageId, principal: Principal) -> Sequence[Turn]:
        found = [turn for turn in self.book.turns.values() if turn.lineage_id == lineage_id]
        return tuple(found) if self.lineage(lineage_id, principal) is not None else ()

    def active_turn(self, lineage_id: LineageId) -> Turn | None:
        return active(self.book, lineage_id)

    def open_calls(self, lineage_id: LineageId) -> Sequence[ToolCall]:
        turn = active(self.book, lineage_id)
        return () if turn is None else tuple(open_calls(self.book, turn).values())

    def usage(self, turn_id: TurnId) -> Sequence[RecordedUsage]:
        return tuple(self.book.usage.get(turn_id, ()))

    def lease(self, lineage_id: LineageId) -> Lease | None:
        return self.book.leases.get(lineage_id)

    def leases(self) -> Sequence[Lease]:
        held = [lease for lease in self.book.leases.values() if lease.holder is not None]
        return tuple(sorted(held, key=lambda lease: (lease.acquired_at or 0, lease.lineage_id)))

    def inbox_item(self, inbox_id: InboxId) -> InboxItem | None:
        return self.book.inbox.get(inbox_id)

    def waiting(self, lineage_id: LineageId, *, limit: int = 50) -> Sequence[InboxItem]:
        return tuple(self.book.waiting(lineage_id=lineage_id)[:limit])

    def waiting_of_key(self, key: SessionKey, *, limit: int = 50) -> Sequence[InboxItem]:
        return tuple(self.book.waiting(key=key)[:limit])

    def _unattended(self, entrances: Sequence[Entrance]) -> list[InboxItem]:
        doors = {(door.platform, door.account_id) for door in entrances}
        found = [item for item in self.book.inbox.values() if item.waiter is None]
        return [item for item in found if (item.entrance.platform, item.entrance.account_id) in doors]

    def _messages(self, entrances: Sequence[Entrance]) -> list[InboxItem]:
        return [i for i in self._unattended(entrances) if i.status == "pending" and i.kind != "control"]

    def work(self, entrances: Sequence[Entrance], *, limit: int = 100) -> Sequence[LineageId]:
        found = [item.lineage_id for item in self._messages(entrances) if item.lineage_id is not None]
        return tuple(dict.fromkeys(found))[:limit]

    def unrouted(self, entrances: Sequence[Entrance], *, limit: int = 100) -> Sequence[InboxItem]:
        return tuple(item for item in self._messages(entrances) if item.lineage_id is None)[:limit]

    def controls(self, entrances: Sequence[Entrance], *, limit: int = 100) -> Sequence[InboxItem]:
        found = [item for item in self._unattended(entrances) if item.kind == "control"]
        open_ones = [item for item in found if item.status in {"pending", "applied"}]
        oldest = {(i.entrance.platform, i.entrance.account_id, i.session_key): i for i in reversed(open_ones)}
        return tuple(item for item in open_ones if item in oldest.values())[:limit]

    def controls_of_key(self, key: SessionKey, *, limit: int = 50) -> Sequence[InboxItem]:
        found = [item for item in self.book.inbox.values() if item.session_key == key and item.kind == "control"]
        return tuple(i for i in found if i.status in {"pending", "applied"} and i.waiter is None)[:limit]

    def attended(self, *, limit: int = 1000) -> Sequence[InboxItem]:
        found = [item for item in self.book.inbox.values() if item.status == "pending" and item.waiter is not None]
        return tuple(sorted(found, key=lambda item: (item.session_key.encode(), item.id)))[:limit]

    def quarantined(self, *, limit: int = 100) -> Sequence[InboxItem]:
        return tuple(item for item in reversed(self.book.inbox.values()) if item.status == "quarantined")[:limit]

    def servers(self) -> Sequence[EntranceServer]:
        return tuple(sorted(self.book.servers.values(), key=lambda each: (str(each.entrance), each.since)))

    def delivery(self, delivery_id: DeliveryId) -> Delivery | None:
        return self.book.deliveries.get(delivery_id)

    def delivery_by_key(self, key: str) -> Delivery | None:
        return next((row for row in self.book.deliveries.values() if row.key == key), None)

    def deliveries(self, *, statuses: Sequence[str] = (), limit: int = 100) -> Sequence[Delivery]:
        rows = reversed(self.book.deliveries.values())
        return tuple(row for row in rows if row.status in statuses or not statuses)[:limit]

    def next_deliveries(self, entrances: Sequence[Entrance], *, limit: int = 100) -> Sequence[Delivery]:
        doors = {(door.platform, door.account_id) for door in entrances}
        return tuple(r for r in post.heads(self.book) if (r.target.platform, r.target.account_id) in doors)[:limit]

    def state(self, namespace: str, key: str, *, now: int) -> StateEntry | None:
        found = self.book.state.get((namespace, key))
        return None if found is None or (found.expires_at is not None and found.expires_at <= now) else found

    def states(self, namespace: str, *, now: int, prefix: str = "") -> Sequence[StateEntry]:
        keys = sorted(key for space, key in self.book.state if space == namespace and key.startswith(prefix))
        return tuple(found for found in (self.state(namespace, key, now=now) for key in keys) if found is not None)

    def jobs(
        self, principal: Principal, *, lineage_id: LineageId | None = None, running: bool = False, limit: int = 100
    ) -> Sequence[Job]:
        return ()  # it keeps none

    def untold_jobs(self, lineage_id: LineageId, *, limit: int = 20) -> Sequence[Job]:
        return ()

    def changes(self, after: str | None, *, limit: int = 1000) -> tuple[Sequence[Change], str]:
        begin = self.book.feed_begin
        name, _, place = (f"{self.name}@{begin}" if after is None else after).partition("@")
        if name != self.name or not place.isascii() or not place.isdigit() or int(place) - begin > len(self.book.feed):
            raise ValueError(f"{after!r} is no cursor of this store")
        if int(place) < begin:
            raise ValueError(f"changes behind {after!r} are gone")
        found = tuple(self.book.feed[int(place) - begin :][:limit])
        return found, f"{self.name}@{int(place) + len(found)}"
