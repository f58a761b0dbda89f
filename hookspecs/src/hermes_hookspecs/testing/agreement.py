"""Two stores side by side: the same operations, and everything that can be read, made comparable.

Numbers that a store gives itself (rows, inbox rows) may differ between stores in value, never in order: each is
replaced by its place in the order in which it was seen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.errors import HermesError
from hermes_hookspecs.ids import InboxId
from hermes_hookspecs.messages import Message
from hermes_hookspecs.operations import Begun, Deliver, Finished
from hermes_hookspecs.outbox import SENT, WAITING, Delivery
from hermes_hookspecs.principal import Principal, principal_of
from hermes_hookspecs.sessions import SessionFilter
from hermes_hookspecs.state import CONVERSATION, Change
from hermes_hookspecs.testing.scene import ALL, source_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes_hookspecs.ids import DeliveryId, LineageId, MessageId, SessionId, SessionKey, TurnId
    from hermes_hookspecs.operations import Operation
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.source import Entrance

__all__ = ["Known", "Side"]

_TAKING_TURNS = 3


@attrs.define
class Known:
    """What a machine has mentioned so far: ids that it made itself, the same on both sides.

    Attributes:
        now: the machine's time, UTC milliseconds.
        records: whether the stores keep a journal of routes.
        looks: how often everything was read so far; chooses whose eyes are used next beside the operator's.
    """

    keys: Sequence[SessionKey]
    users: Sequence[str]
    lineages: list[LineageId] = attrs.field(factory=list)
    sessions: list[SessionId] = attrs.field(factory=list)
    turns: list[TurnId] = attrs.field(factory=list)
    titles: Sequence[str] = ()
    needles: Sequence[str] = ()
    delivery_keys: Sequence[str] = ("d1", "d2")
    entrances: Sequence[Entrance] = ()
    namespace: str = "p"
    records: bool = True
    now: int = 1_700_000_000_000
    looks: int = 0

    def principals(self) -> Iterator[Principal]:
        """Return the operator, a nobody, a shared room, and each person in private and in that room."""
        yield ALL
        yield Principal()
        yield principal_of(source_at(chat_type="group"), shared=True)
        for user in self.users:
            yield principal_of(source_at(user=user), shared=False)
            yield principal_of(source_at(user=user, chat_type="group"), shared=False)


class Side:
    """One of the two stores.

    :param store: open and empty.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self._inbox: list[InboxId] = []
        self._outbox: list[DeliveryId] = []
        self._rows: dict[int, int] = {}
        self._names: dict[type, tuple[str, ...]] = {}
        self._cursor: str | None = None

    def inbox_id(self, number: int) -> InboxId:
        """Return the id of the inbox row that was accepted as the ``number``-th, or one that is not there."""
        return self._inbox[number] if number < len(self._inbox) else InboxId(1_000_000_000 + number)

    def delivery_id(self, place: int) -> DeliveryId:
        """Return the id of the delivery that was stored as the ``place``-th."""
        return self._outbox[place]

    def delivery_place(self, delivery_id: DeliveryId) -> int:
        """Return the place of a delivery in the order of storing."""
        return self._outbox.index(delivery_id)

    def accepted(self) -> int:
        """Return how many inbox rows were accepted."""
        return len(self._inbox)

    def run(self, operation: Operation[object]) -> object:
        """Run an operation; return its comparable result, or the name of the error that it raised."""
        try:
            result = self.store.apply(operation)
        except HermesError as error:
            return f"raised {type(error).__name__}"
        finally:
            self._see_new_rows()
            self._see_new_deliveries()
        if isinstance(operation, Deliver):
            return [self.delivery_place(each) for each in result]  # type: ignore[attr-defined]  # ids, by its type
        return self.comparable(result)

    def _see_new_rows(self) -> None:
        """Learn from the feed which rows were stored, in order; each must stand behind all that were seen."""
        while True:
            page, self._cursor = self.store.changes(self._cursor)
            if not page:
                return
            for row_id in [each.message_id for each in page if each.kind == "insert"]:
                assert row_id is not None, "the feed tells of a stored row without its id"
                assert row_id > max(self._rows, default=0), f"row {row_id} was told behind rows with greater ids"
                self._rows[row_id] = len(self._rows)

    def _see_new_deliveries(self) -> None:
        """Learn which deliveries were stored, in order; none is ever stored behind a younger one."""
        there = [row.id for row in self.store.deliveries(limit=1000)][::-1]
        assert there == sorted(there), "deliveries are not listed newest first"
        newest = max(self._outbox, default=0)
        fresh = [each for each in there if each not in self._outbox]
        assert all(each > newest for each in fresh), f"one of the deliveries {fresh} was stored behind greater ones"
        self._outbox += fresh

    # what is comparable
    def comparable(self, value: object) -> object:
        """Return a value with every number of a row replaced by its place."""
        if value is None or isinstance(value, str | int):
            return value
        if isinstance(value, tuple | list):
            return [self.comparable(part) for part in value]
        if isinstance(value, Message):
            fields = self._fields(value)
            return fields | {"id": self._place(value.id), "inbox_id": self._inbox_place(value.inbox_id)}
        if isinstance(value, Delivery):
            fields = self._fields(value)
            return fields | {"id": self.delivery_place(value.id), "inbox_id": self._inbox_place(value.inbox_id)}
        if isinstance(value, Change):
            message = None if value.message_id is None else self._place(value.message_id)
            session = value.session_id if value.kind == "insert" else None
            return (value.kind, value.lineage_id, session, message, value.at)
        if isinstance(value, Finished):
            return (len(value.message_ids), value.version)
        if attrs.has(type(value)):
            return self._numbered(value)
        return value

    def _numbered(self, value: object) -> object:
        fields = self._fields(value)
        kind = type(value).__name__
        if kind == "RouteMove":
            fields["id"] = 0  # lines are never named; in what order they were written the journal shows
        if kind in {"InboxItem", "AcceptResult"}:
            fields["id"] = self._inbox_place(getattr(value, "id"))  # noqa: B009 (two kinds of value have it)
        if kind == "Session":
            kept: MessageId | None = getattr(value, "kept_from")  # noqa: B009 (the kind is known by its name)
            fields["kept_from"] = None if kept is None else self._place(kept)
        if kind == "Turn":
            fields["inbox_ids"] = [self._inbox_place(each) for each in getattr(value, "inbox_ids")]  # noqa: B009
        return (kind, fields)

    def _fields(self, value: object) -> dict[str, object]:
        kind = type(value)
        names = self._names.get(kind)
        if names is None:
            fields = attrs.fields(kind)  # type: ignore[arg-type]  # callers saw attrs
            names = self._names[kind] = tuple(field.name for field in fields)
        return {name: self.comparable(getattr(value, name)) for name in names}

    def _place(self, row_id: int) -> int:
        """Return the place of a message in the order of storing."""
        assert row_id in self._rows, f"row {row_id} is there, but the feed has not told of it"
        return self._rows[row_id]

    def _inbox_place(self, inbox_id: InboxId | None) -> int | None:
        if inbox_id is None:
            return None
        if inbox_id not in self._inbox:
            assert inbox_id > max(self._inbox, default=0), f"inbox row {inbox_id} was stored behind greater ones"
            self._inbox.append(inbox_id)
        return self._inbox.index(inbox_id)

    # everything that can be read
    def everything(self, known: Known) -> dict[str, object]:
        """Return all reads of the port over what is known, comparable.

        A list for each person at each step would take longer than all the rest, so those who are not the operator
        take turns.
        """
        reads: dict[str, object] = {}
        for lineage_id in known.lineages:
            reads[f"rows of {lineage_id}"] = self._lineage_reads(lineage_id, known)
        for number, principal in enumerate(known.principals()):
            if number and number % _TAKING_TURNS != known.looks % _TAKING_TURNS:
                continue
            reads[f"as {number}"] = self._principal_reads(principal, known)
        reads["keys"] = [
            (self.store.route(key), self.store.waiting_of_key(key), self.store.waiting_of_key(key, limit=1))
            for key in known.keys
        ]
        reads["inbox"] = [self.store.inbox_item(inbox_id) for inbox_id in self._inbox]
        reads["turns"] = [(self.store.turn(turn_id), self.store.usage(turn_id)) for turn_id in known.turns]
        reads["work"] = self._work_reads(known)
        reads["outbox"] = self._outbox_reads(known)
        reads["leases"] = sorted(self.store.leases(), key=lambda lease: (lease.acquired_at or 0, lease.lineage_id))
        reads["routes"] = (self.store.routes(), self.store.routes(limit=1))
        reads["journal"] = self._journal() if known.records else ()
        reads["stats"] = attrs.evolve(self.store.stats(), size=None)
        reads["states"] = (
            self.store.states(known.namespace, now=known.now),
            self.store.states(CONVERSATION, now=known.now),
            self.store.states(known.namespace, now=known.now, prefix="a"),
            self.store.state(known.namespace, "a1", now=known.now),
        )
        reads["feed"] = self._feed()
        return {name: self.comparable(value) for name, value in reads.items()}

    def _lineage_reads(self, lineage_id: LineageId, known: Known) -> object:
        store = self.store
        return self.comparable(
            (
                store.messages(lineage_id, ALL),
                store.messages(lineage_id, ALL, limit=2),
                store.last_messages(lineage_id, ALL, count=3),
                store.turns(lineage_id, ALL),
                store.segments(lineage_id, ALL),
                store.active_turn(lineage_id),
                store.open_calls(lineage_id),
                store.lease(lineage_id),
                store.waiting(lineage_id),
                sorted(store.routes(lineage_id=lineage_id), key=lambda route: route.key),
                [store.lineage(lineage_id, principal) for principal in known.principals()],
                store.summary(lineage_id, ALL),
            )
        )

    def _work_reads(self, known: Known) -> object:
        store, one = self.store, known.entrances[:1]
        return (
            [(store.work(doors), store.unrouted(doors), store.controls(doors)) for doors in (known.entrances, one, ())],
            (store.work(one, limit=1), store.unrouted(one, limit=1), store.controls(one, limit=1)),
            store.quarantined(),
            store.quarantined(limit=1),
            [store.controls_of_key(key) for key in known.keys],
            store.attended(),
            sorted(store.servers(), key=lambda each: (str(each.entrance), each.since, each.holder.pid)),
        )

    def _outbox_reads(self, known: Known) -> object:
        store = self.store
        return (
            store.deliveries(),
            store.deliveries(statuses=(WAITING, SENT), limit=2),
            [store.delivery_by_key(key) for key in known.delivery_keys],
            [store.delivery(each) for each in self._outbox[:3]],
            [store.next_deliveries(doors) for doors in (known.entrances, known.entrances[:1], ())],
            store.next_deliveries(known.entrances, limit=1),
        )

    def _principal_reads(self, principal: Principal, known: Known) -> object:
        store = self.store
        filters = (
            None,
            SessionFilter(archived=None),
            SessionFilter(archived=True),
            SessionFilter(empty=False),
            SessionFilter(source="feishu", empty=True),
        )
        return (
            [store.summaries(principal, where=where) for where in filters],
            store.summaries(principal, limit=2),
            [store.session(session_id, principal) for session_id in known.sessions],
            store.sessions_by_prefix("2026", principal, limit=3),
            [store.lineages_by_title(title, principal) for title in known.titles],
            [store.scan([needle], principal, limit=5) for needle in known.needles],
        )

    def _journal(self) -> object:
        """Return the lines of the journal, newest first, without their numbers."""
        lines = self.store.route_moves(limit=None)
        ids = [line.id for line in lines]
        assert ids == sorted(set(ids), reverse=True), "the journal is not read newest first"
        return [attrs.evolve(line, id=0) for line in lines]

    def _feed(self) -> Sequence[Change]:
        changes: list[Change] = []
        cursor: str | None = None
        while True:
            page, cursor = self.store.changes(cursor, limit=50)
            if not page:
                return changes
            changes += page


def without_interruption(result: object) -> object:
    """Return what a begin answered without the dead turn: a repetition need not know it any more."""
    if isinstance(result, tuple) and len(result) == 2 and result[0] == Begun.__name__ and isinstance(result[1], dict):
        return {name: value for name, value in result[1].items() if name != "interrupted"}
    return result
