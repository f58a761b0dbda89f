"""Lineages and their sessions."""

# ruff: noqa: S608 - statements are put together from constants of this package, values are always bound

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.queries.access import visible
from hermes_core.storage.sqlite.rows import read_owner, read_source
from hermes_hookspecs.sessions import Lineage, Session

if TYPE_CHECKING:
    from hermes_core.storage.sqlite.transaction import Reader, SQLiteValue
    from hermes_hookspecs.ids import LineageId, MessageId, SessionId
    from hermes_hookspecs.principal import Principal

    LineageRow = tuple[
        LineageId,
        SessionId,
        str,
        str,
        int,
        str | None,
        str | None,
        int,
        int,
        int,
        int,
        int,
        int,
        int,
        str,
        int,
        str | None,
        SessionId | None,
    ]
    Number = int | None
    SessionRow = tuple[
        SessionId, LineageId, str, str, str | None, str | None, str | None, str | None, SessionId | None,
        MessageId | None, str | None, int, Number, str | None, int, int, Number, Number, Number, Number, float | None,
    ]  # fmt: skip

__all__ = ["by_prefix", "by_title", "lineage", "lineage_number", "lineage_of", "segments", "session", "session_of"]

LINEAGE = """
    SELECT l.id, l.tip, l.owner, l.source, l.shared, l.title, l.title_origin, l.pinned, l.archived, l.created_at,
        l.last_activity, l.message_count, l.turn_count, l.segments, coalesce(l.preview, ''), l.version, l.room,
        l.branched_from
    FROM lineages AS l
"""
SESSION = """
    SELECT s.id, s.lineage_id, s.source, s.account_id, s.user_id, s.model, s.model_config, s.system_prompt,
        s.parent_session_id, s.kept_from, s.title, s.started_at, s.ended_at, s.end_reason,
        coalesce(s.message_count, l.message_count - l.closed_message_count),
        coalesce(s.tool_call_count, l.tool_call_count - l.closed_tool_call_count),
        s.input_tokens, s.output_tokens, s.cache_read_tokens, s.cache_write_tokens, s.estimated_cost_usd
    FROM sessions AS s JOIN lineages AS l ON l.id = s.lineage_id
"""


def _lineage(row: tuple[SQLiteValue, ...]) -> Lineage:
    (
        lineage_id, tip, owner, source, shared, title, origin, pinned, archived, created, activity, messages, turns,
        parts, preview, version, room, branched_from,
    ) = cast("LineageRow", row)  # columns of LINEAGE  # fmt: skip
    return Lineage(
        id=lineage_id,
        tip=tip,
        owner=read_owner(owner),
        source=read_source(source),
        shared=bool(shared),
        title=title,
        title_origin=origin,
        pinned=bool(pinned),
        archived=bool(archived),
        created_at=created,
        last_activity=activity,
        message_count=messages,
        turn_count=turns,
        segments=parts,
        preview=preview,
        version=version,
        room=None if room is None else read_owner(room),
        branched_from=branched_from,
    )


def _session(row: tuple[SQLiteValue, ...]) -> Session:
    (
        session_id, lineage_id, source, account, user, model, config, prompt, parent, kept, title, started, ended,
        reason, messages, calls, tokens_in, tokens_out, cache_read, cache_write, cost,
    ) = cast("SessionRow", row)  # columns of SESSION  # fmt: skip
    return Session(
        id=session_id,
        lineage_id=lineage_id,
        source=source,
        account_id=account,
        user_id=user,
        model=model,
        model_config=config,
        system_prompt=prompt,
        parent_session_id=parent,
        kept_from=kept,
        title=title,
        started_at=started,
        ended_at=ended,
        end_reason=reason,
        message_count=messages,
        tool_call_count=calls,
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_write,
        estimated_cost_usd=cost,
    )


def lineage(reader: Reader, lineage_id: LineageId, principal: Principal) -> Lineage | None:
    """A lineage that the principal may see."""
    condition, owners = visible(principal)
    row = reader.one(f"{LINEAGE} WHERE l.id = ? AND {condition}", (lineage_id, *owners))
    return None if row is None else _lineage(row)


def lineage_of(reader: Reader, lineage_id: LineageId) -> Lineage | None:
    """A lineage, whoever owns it: for operations."""
    row = reader.one(f"{LINEAGE} WHERE l.id = ?", (lineage_id,))
    return None if row is None else _lineage(row)


def lineage_number(reader: Reader, lineage_id: LineageId, principal: Principal) -> int | None:
    """The number by which messages name a lineage that the principal may see."""
    condition, owners = visible(principal)
    row = reader.one(f"SELECT l.no FROM lineages AS l WHERE l.id = ? AND {condition}", (lineage_id, *owners))
    return None if row is None else cast("tuple[int]", row)[0]  # the one column


def session(reader: Reader, session_id: SessionId, principal: Principal) -> Session | None:
    """A session by its exact id."""
    condition, owners = visible(principal)
    row = reader.one(f"{SESSION} WHERE s.id = ? AND {condition}", (session_id, *owners))
    return None if row is None else _session(row)


def session_of(reader: Reader, session_id: SessionId) -> Session | None:
    """A session by its exact id, whoever owns it: for operations."""
    row = reader.one(f"{SESSION} WHERE s.id = ?", (session_id,))
    return None if row is None else _session(row)


def segments(reader: Reader, lineage_id: LineageId, principal: Principal) -> tuple[Session, ...]:
    """Sessions of a lineage, oldest first."""
    condition, owners = visible(principal)
    rows = reader.all(f"{SESSION} WHERE s.lineage_id = ? AND {condition} ORDER BY s.no", (lineage_id, *owners))
    return tuple(map(_session, rows))


def by_title(reader: Reader, title: str, principal: Principal) -> tuple[Lineage, ...]:
    """Lineages with exactly this title, last active first."""
    condition, owners = visible(principal)
    rows = reader.all(
        f"{LINEAGE} WHERE l.title = ? AND {condition} ORDER BY l.last_activity DESC, l.id DESC", (title, *owners)
    )
    return tuple(map(_lineage, rows))


def by_prefix(reader: Reader, prefix: str, principal: Principal, limit: int) -> tuple[Session, ...]:
    """Sessions whose id begins with ``prefix``, newest id first."""
    condition, owners = visible(principal)
    # The greatest code point stands behind everything an id goes on with; a range needs no pattern and no escaping.
    rows = reader.all(
        f"{SESSION} WHERE s.id >= ? AND s.id < ? AND {condition} ORDER BY s.id DESC LIMIT ?",
        (prefix, f"{prefix}\U0010ffff", *owners, max(limit, 0)),
    )
    return tuple(map(_session, rows))
