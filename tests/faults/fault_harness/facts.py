"""What is known after a run: rows of the database as they stand, and what was written down while it ran."""

from __future__ import annotations

import json

import apsw
import attrs

__all__ = [
    "Ack",
    "Ask",
    "DeliveryRow",
    "Effect",
    "Event",
    "Facts",
    "InboxRow",
    "LineageRow",
    "MessageRow",
    "PartRow",
    "Sending",
    "SessionRow",
    "TurnRow",
    "Window",
    "gather",
]


@attrs.frozen(kw_only=True)
class InboxRow:
    """A message as it was accepted. ``waits_here``: its sender waited in the process that accepted it."""

    id: int
    key: str = "key"
    lineage: str | None = "L1"
    kind: str = "message"
    status: str = "done"
    entrance: str = "chatA"
    names: tuple[str, ...] = ()
    text: str = ""
    waits_here: bool = False
    waiter_pid: int | None = None


@attrs.frozen(kw_only=True)
class TurnRow:
    """A turn. ``number`` is its place among all turns. ``session``: the segment that it ended in."""

    number: int
    id: str
    lineage: str = "L1"
    session: str = "S1"
    token: int
    inbox_ids: tuple[int, ...] = ()
    outcome: str = "done"


@attrs.frozen(kw_only=True)
class MessageRow:
    """A row of a transcript. ``calls``: ``(id, effect)`` of each call it asks for."""

    id: int
    lineage: str = "L1"
    session: str = "S1"
    turn: int | None
    role: str
    kind: str = ""
    inbox_id: int | None = None
    content: str = ""
    calls: tuple[tuple[str, str], ...] = ()
    call_id: str | None = None


@attrs.frozen(kw_only=True)
class PartRow:
    """One part of a delivery."""

    index: int
    key: str
    is_sent: bool = True
    is_marked: bool = False


@attrs.frozen(kw_only=True)
class DeliveryRow:
    """One answer, notice or reply."""

    id: int
    key: str
    address: str = "chatA:a"
    inbox_id: int | None = None
    turn: str | None = None
    kind: str = "answer"
    status: str = "sent"
    text: str = ""
    parts: tuple[PartRow, ...] = ()


@attrs.frozen(kw_only=True)
class LineageRow:
    """A lineage and its lease. ``tip``: the session that goes on. ``rows``: as many as it counts."""

    id: str
    token: int
    tip: str = "S1"
    rows: int | None = None
    is_held: bool = False
    active_turn: str | None = None


@attrs.frozen(kw_only=True)
class SessionRow:
    """A segment of a lineage. ``parent``: what it was made of. ``kept_from``: with which row its context begins.

    ``rows``: as many as were counted when it was closed.
    """

    id: str
    lineage: str = "L1"
    parent: str | None = None
    kept_from: int | None = None
    is_ended: bool = False
    end_reason: str | None = None
    rows: int | None = None


@attrs.frozen(kw_only=True)
class Ack:
    """A message whose platform was told that we have it."""

    name: str


@attrs.frozen(kw_only=True)
class Ask:
    """What somebody at a terminal said and got: the turn and its answer."""

    name: str
    turn: str
    text: str


@attrs.frozen(kw_only=True)
class Sending:
    """A part that the platform received, in order of receiving."""

    pid: int
    key: str
    address: str
    index: int = 0
    is_marked: bool = False


@attrs.frozen(kw_only=True)
class Effect:
    """Something that a tool did. ``call`` is unique within its turn."""

    turn: str
    lineage: str = "L1"
    token: int
    call: str


@attrs.frozen(kw_only=True)
class Window:
    """What a turn's agent was sent: one digest a message."""

    turn: str
    lineage: str = "L1"
    token: int
    digests: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Event:
    """A turn's start or end, as a plugin heard it."""

    pid: int
    name: str
    turn: str


@attrs.frozen(kw_only=True)
class Facts:
    """All of it.

    Attributes:
        cursors: what feeders stored together with their batches: ``(slot, last number)``.
        dead: processes that were killed, or stood still for longer than a lease lives. frozen: the latter alone.
        damage: what SQLite finds wrong.
    """

    inbox: tuple[InboxRow, ...] = ()
    turns: tuple[TurnRow, ...] = ()
    messages: tuple[MessageRow, ...] = ()
    deliveries: tuple[DeliveryRow, ...] = ()
    lineages: tuple[LineageRow, ...] = ()
    sessions: tuple[SessionRow, ...] = ()
    acks: tuple[Ack, ...] = ()
    asks: tuple[Ask, ...] = ()
    cursors: tuple[tuple[int, int], ...] = ()
    sendings: tuple[Sending, ...] = ()
    effects: tuple[Effect, ...] = ()
    windows: tuple[Window, ...] = ()
    events: tuple[Event, ...] = ()
    dead: frozenset[int] = frozenset()
    frozen: frozenset[int] = frozenset()
    damage: tuple[str, ...] = ()


def gather(database, ledgers):
    """Return the facts of a run that is over.

    :param database: path of the store; opened read-only, beside the product.
    """
    connection = apsw.Connection(str(database), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(10_000)
    with connection:  # one view of everything
        return Facts(
            inbox=tuple(_inbox(connection)),
            turns=tuple(
                TurnRow(
                    number=no,
                    id=turn,
                    lineage=lineage,
                    session=session,
                    token=token,
                    inbox_ids=tuple(map(int, ids.split())),
                    outcome=how,
                )
                for no, turn, lineage, session, token, ids, how in connection.execute(
                    "SELECT no, id, lineage_id, session_id, token, inbox_ids, outcome FROM turns ORDER BY no"
                )
            ),
            messages=tuple(_messages(connection)),
            deliveries=tuple(_deliveries(connection)),
            lineages=tuple(
                LineageRow(id=lineage, token=token, tip=tip, rows=rows, is_held=held is not None, active_turn=turn)
                for lineage, token, tip, rows, held, turn in connection.execute(
                    "SELECT id, lease_token, tip, message_count, lease_holder, turn_id FROM lineages ORDER BY no"
                )
            ),
            sessions=tuple(
                SessionRow(
                    id=session,
                    lineage=lineage,
                    parent=parent,
                    kept_from=kept_from,
                    is_ended=ended is not None,
                    end_reason=reason,
                    rows=rows,
                )
                for session, lineage, parent, kept_from, ended, reason, rows in connection.execute(
                    "SELECT id, lineage_id, parent_session_id, kept_from, ended_at, end_reason, message_count "
                    "FROM sessions ORDER BY no"
                )
            ),
            acks=tuple(Ack(name=row["name"]) for row in ledgers.acks.rows()),
            asks=tuple(Ask(**row) for row in ledgers.asks.rows() if "turn" in row),
            cursors=tuple(
                (int(key.rpartition("-")[2]), int(value))
                for key, value in connection.execute("SELECT key, value FROM plugin_state WHERE namespace = 'harness'")
            ),
            sendings=tuple(
                Sending(
                    pid=row["pid"],
                    key=row["key"],
                    address=row["address"],
                    index=row["index"],
                    is_marked=row["possible_repeat"],
                )
                for row in ledgers.sends.rows()
            ),
            effects=tuple(Effect(**row) for row in ledgers.effects.rows()),
            windows=tuple(Window(**{**row, "digests": tuple(row["digests"])}) for row in ledgers.windows.rows()),
            events=tuple(Event(pid=row["pid"], name=row["name"], turn=row["turn"]) for row in ledgers.events.rows()),
            dead=frozenset(row["pid"] for row in ledgers.deaths.rows()),
            frozen=frozenset(row["pid"] for row in ledgers.deaths.rows() if row["how"] == "frozen"),
            damage=tuple(
                line
                for (line,) in [*connection.execute("PRAGMA integrity_check(5)"), *_dangling(connection)]
                if line != "ok"
            ),
        )


def _inbox(connection):
    sql = """
        SELECT id, session_key, lineage_id, kind, status, platform, identities, text, waiter FROM inbox ORDER BY id
    """
    for inbox_id, key, lineage, kind, status, entrance, names, text, waiter in connection.execute(sql):
        yield InboxRow(
            id=inbox_id,
            key=key,
            lineage=lineage,
            kind=kind,
            status=status,
            entrance=entrance,
            # The core puts platform and account in front of what the platform calls a message.
            names=tuple(name.split(":", 2)[-1] for name in json.loads(names)) if names else (),
            text=text,
            waits_here=waiter is not None,
            waiter_pid=None if waiter is None else json.loads(waiter)["pid"],
        )


def _messages(connection):
    sql = """
        SELECT m.id, l.id, m.session_id, m.turn_no, m.role, m.kind, m.inbox_id, m.content, m.tool_calls, m.tool_call_id
        FROM messages AS m JOIN lineages AS l ON l.no = m.lineage_no ORDER BY m.id
    """
    for message, lineage, session, turn, role, kind, inbox_id, content, calls, call_id in connection.execute(sql):
        asked = json.loads(calls) if calls else ()
        yield MessageRow(
            id=message,
            lineage=lineage,
            session=session,
            turn=turn,
            role=role,
            kind=kind or "",
            inbox_id=inbox_id,
            content=content,
            calls=tuple((one["id"], one["effect"]) for one in asked),
            call_id=call_id,
        )


def _deliveries(connection):
    parts = {}
    sql = "SELECT delivery_id, part, key, sent_at, possible_repeat FROM outbox_parts ORDER BY delivery_id, part"
    for delivery, index, key, sent_at, marked in connection.execute(sql):
        part = PartRow(index=index, key=key, is_sent=sent_at is not None, is_marked=bool(marked))
        parts.setdefault(delivery, []).append(part)
    sql = "SELECT id, key, address, inbox_id, turn_id, kind, status, text FROM outbox ORDER BY id"
    for delivery, key, address, inbox_id, turn, kind, status, text in connection.execute(sql):
        yield DeliveryRow(
            id=delivery,
            key=key,
            address=address,
            inbox_id=inbox_id,
            turn=turn,
            kind=kind,
            status=status,
            text=text,
            parts=tuple(parts.get(delivery, ())),
        )


def _dangling(connection):
    return [(f"{table} row {row} leads nowhere",) for table, row, *_ in connection.execute("PRAGMA foreign_key_check")]
