"""Rows of transcripts, in order of storing."""

# ruff: noqa: S608 - statements are put together from constants of this package, values are always bound

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.cleaning import clean_text
from hermes_core.storage.sqlite.queries.access import visible
from hermes_core.storage.sqlite.queries.lineages import lineage_number
from hermes_core.storage.sqlite.rows import read_attachments, read_calls
from hermes_hookspecs.messages import Message

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_core.storage.sqlite.transaction import Reader, SQLiteValue
    from hermes_hookspecs.ids import InboxId, LineageId, MessageId, SessionId, TurnId
    from hermes_hookspecs.principal import Principal

    Text = str | None
    MessageRow = tuple[
        MessageId, SessionId, int | None, str, str, int, Text, Text, Text, Text, int | None, Text, Text, Text,
        InboxId | None, Text, int,
    ]  # fmt: skip

__all__ = ["last_messages", "messages", "newest_of_kind", "scan", "user_rows"]

COLUMNS = """m.id, m.session_id, m.turn_no, m.role, m.content, m.timestamp, m.sent, m.tool_calls, m.tool_call_id,
    m.tool_name, m.token_count, m.finish_reason, m.reasoning, m.kind, m.inbox_id, m.attachments, m.hidden"""
MESSAGES = f"SELECT {COLUMNS} FROM messages AS m WHERE m.lineage_no = ?"
TURN_NAME = "SELECT id FROM turns WHERE no = ?"
TURN_NAMES = "SELECT no, id FROM turns WHERE lineage_id = ?"
FEW_TURNS = 30
"""Up to so many, the turns of some rows are looked up one by one."""


class _Unpacked:
    """A row on its way to a :class:`Message`, which it then is.

    Filling a frozen value field by field takes five times as long, and loading a long session is little else. So the
    cells go into fields of the same layout that are not frozen yet, and the object changes its class at the end.
    """

    __slots__ = Message.__slots__  # type: ignore[attr-defined]  # attrs makes it, mypy does not know

    def __init__(self, row: tuple[SQLiteValue, ...], lineage_id: LineageId, turns: dict[int, TurnId]) -> None:
        (
            self.id, self.session_id, turn_no, self.role, self.content, self.timestamp, self.sent, calls,
            self.tool_call_id, self.tool_name, self.token_count, self.finish_reason, self.reasoning, kind,
            self.inbox_id, attachments, hidden,
        ) = cast("MessageRow", row)  # columns of COLUMNS  # fmt: skip
        self.lineage_id = lineage_id
        self.turn_id = None if turn_no is None else turns.get(turn_no)
        self.tool_calls = () if calls is None else read_calls(calls)
        self.kind = kind or ""
        self.attachments = () if attachments is None else read_attachments(attachments)
        self.hidden = hidden != 0
        self.__class__ = Message  # type: ignore[assignment]  # what this class is for


def _messages(
    rows: Iterable[tuple[SQLiteValue, ...]], lineage_id: LineageId, turns: dict[int, TurnId]
) -> tuple[Message, ...]:
    return cast("tuple[Message, ...]", tuple([_Unpacked(row, lineage_id, turns) for row in rows]))  # by now they are


def _in_lineage(reader: Reader, rows: Sequence[tuple[SQLiteValue, ...]], lineage_id: LineageId) -> tuple[Message, ...]:
    numbers = {cast("int", row[2]) for row in rows if row[2] is not None}  # turn_no, declared so
    if len(numbers) > FEW_TURNS:
        # One read of all names is cheaper than a join for every row.
        turns = dict(cast("list[tuple[int, TurnId]]", reader.all(TURN_NAMES, (lineage_id,))))  # the two columns
    else:
        named = [(number, reader.one(TURN_NAME, (number,))) for number in numbers]
        turns = {number: cast("tuple[TurnId]", row)[0] for number, row in named if row is not None}  # the column
    return _messages(rows, lineage_id, turns)


def messages(
    reader: Reader,
    lineage_id: LineageId,
    principal: Principal,
    *,
    session_id: SessionId | None,
    after: MessageId | None,
    limit: int | None,
    hidden: bool,
) -> tuple[Message, ...]:
    """Rows of a lineage or of one of its sessions behind ``after``."""
    number = lineage_number(reader, lineage_id, principal)
    if number is None:
        return ()
    sql = MESSAGES
    bindings: list[SQLiteValue] = [number]
    if after is not None:
        sql += " AND m.id > ?"
        bindings.append(after)
    if session_id is not None:
        sql += " AND m.session_id = ?"
        bindings.append(session_id)
    if not hidden:
        sql += " AND m.hidden = 0"
    sql += " ORDER BY m.id"
    if limit is not None:
        sql += " LIMIT ?"
        bindings.append(max(limit, 0))
    return _in_lineage(reader, reader.all(sql, bindings), lineage_id)


def last_messages(
    reader: Reader, lineage_id: LineageId, principal: Principal, *, count: int, session_id: SessionId | None
) -> tuple[Message, ...]:
    """The last ``count`` rows that are not hidden."""
    number = lineage_number(reader, lineage_id, principal)
    if number is None:
        return ()
    bindings: list[SQLiteValue] = [number]
    sql = MESSAGES
    if session_id is not None:
        sql += " AND m.session_id = ?"
        bindings.append(session_id)
    sql += " AND m.hidden = 0 ORDER BY m.id DESC LIMIT ?"
    bindings.append(max(count, 0))
    rows = reader.all(sql, bindings)
    rows.reverse()
    return _in_lineage(reader, rows, lineage_id)


def user_rows(reader: Reader, lineage_no: int, lineage_id: LineageId, inbox_ids: Sequence[int]) -> tuple[Message, ...]:
    """The rows that hold these accepted messages, in the order of ``inbox_ids``: for operations."""
    marks = ", ".join("?" * len(inbox_ids))
    rows = reader.all(f"{MESSAGES} AND m.inbox_id IN ({marks})", (lineage_no, *inbox_ids))
    places = {inbox_id: place for place, inbox_id in enumerate(inbox_ids)}
    found = _in_lineage(reader, rows, lineage_id)
    return tuple(sorted(found, key=lambda row: places.get(cast("int", row.inbox_id), 0)))  # the condition says so


def newest_of_kind(reader: Reader, lineage_no: int, lineage_id: LineageId, kind: str) -> tuple[Message, ...]:
    """The newest row of a kind in a lineage, if there is one: for operations that know that it is near the end."""
    rows = reader.all(f"{MESSAGES} AND m.kind = ? ORDER BY m.id DESC LIMIT 1", (lineage_no, kind))
    return _in_lineage(reader, rows, lineage_id)


def scan(
    reader: Reader, needles: Sequence[str], principal: Principal, *, exclude: LineageId | None, limit: int
) -> tuple[Message, ...]:
    """User and assistant rows that hold every needle, newest first; reads every row there is."""
    wanted = [clean_text(needle) for needle in needles if needle]
    if not wanted:
        return ()
    condition, owners = visible(principal)
    # lower() folds ASCII only, which is what the contract says. CROSS JOIN keeps the newest rows first, so that the
    # limit ends the reading.
    holds = " AND ".join(["instr(lower(m.content), lower(?)) > 0"] * len(wanted))
    rows = reader.all(
        f"""
        SELECT {COLUMNS}, l.id, t.id FROM messages AS m
        CROSS JOIN lineages AS l ON l.no = m.lineage_no LEFT JOIN turns AS t ON t.no = m.turn_no
        WHERE m.role IN ('user', 'assistant') AND m.hidden = 0 AND {condition} AND l.id IS NOT ? AND {holds}
        ORDER BY m.id DESC LIMIT ?
        """,
        (*owners, exclude, *wanted, max(limit, 0)),
    )
    found: list[Message] = []
    for *columns, lineage_id, turn_id in rows:
        turns = {cast("int", columns[2]): cast("TurnId", turn_id)} if turn_id is not None else {}
        found += _messages([tuple(columns)], cast("LineageId", lineage_id), turns)  # declared so
    return tuple(found)
