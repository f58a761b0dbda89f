"""Turns, their usage, and leases."""

# ruff: noqa: S608 - statements are put together from constants of this package, values are always bound

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.queries.access import visible
from hermes_core.storage.sqlite.rows import read_calls, read_holder, read_ids, read_open_calls
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.turns import Lease, RecordedUsage, Turn, Usage

if TYPE_CHECKING:
    from hermes_core.storage.sqlite.transaction import Reader, SQLiteValue
    from hermes_hookspecs.ids import LineageId, SessionId, SessionKey, TurnId
    from hermes_hookspecs.messages import ToolCall
    from hermes_hookspecs.principal import Principal

    Text = str | None
    Number = int | None
    TurnRow = tuple[
        TurnId, LineageId, SessionId, int, str, str, Text, SessionKey | None, Text, Text, str, int, Number, str, str,
        int,
    ]  # fmt: skip
    LeaseRow = tuple[LineageId, int, int, Text, Number, Number, Number]

__all__ = ["LEASE", "active_turn", "lease", "leases", "open_calls", "read_lease", "turn", "turns", "usage"]

TURN = """
    SELECT t.id, t.lineage_id, t.session_id, t.token, t.platform, t.account_id, t.terminal, t.session_key, t.user_id,
        t.user_name, t.inbox_ids, t.started_at, t.ended_at, t.outcome, t.reason, t.attempt
    FROM turns AS t
"""
LEASE = "l.id, l.lease_token, l.lease_renewals, l.lease_holder, l.lease_acquired_at, l.lease_expires_at, l.lease_ttl_ms"
# Whoever holds a lease runs a turn, and active turns have an index of their own.
LEASES = f"""
    SELECT {LEASE} FROM turns AS t CROSS JOIN lineages AS l ON l.id = t.lineage_id
    WHERE t.outcome = 'active' AND l.lease_holder IS NOT NULL ORDER BY l.lease_acquired_at, l.id
"""
OPEN_CALLS = """
    SELECT l.open_calls, (
        SELECT m.tool_calls FROM messages AS m
        WHERE m.lineage_no = l.no AND m.tool_calls IS NOT NULL ORDER BY m.id DESC LIMIT 1
    )
    FROM lineages AS l WHERE l.id = ? AND l.turn_no IS NOT NULL AND l.open_calls IS NOT NULL
"""
USAGE = """
    SELECT at, late, model, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, estimated_cost_usd
    FROM usage WHERE turn_id = ? ORDER BY id
"""


def _turn(row: tuple[SQLiteValue, ...]) -> Turn:
    (
        turn_id, lineage_id, session_id, token, platform, account, terminal, key, user, name, inbox_ids, started,
        ended, outcome, reason, attempt,
    ) = cast("TurnRow", row)  # columns of TURN  # fmt: skip
    return Turn(
        id=turn_id,
        lineage_id=lineage_id,
        session_id=session_id,
        token=token,
        entrance=Entrance(platform, account, terminal),
        session_key=key,
        user_id=user,
        user_name=name,
        inbox_ids=read_ids(inbox_ids),
        started_at=started,
        ended_at=ended,
        outcome=outcome,
        reason=reason,
        attempt=attempt,
    )


def turn(reader: Reader, turn_id: TurnId) -> Turn | None:
    """A turn by its id."""
    row = reader.one(f"{TURN} WHERE t.id = ?", (turn_id,))
    return None if row is None else _turn(row)


def turns(reader: Reader, lineage_id: LineageId, principal: Principal) -> tuple[Turn, ...]:
    """Turns of a lineage, oldest first."""
    condition, owners = visible(principal)
    rows = reader.all(
        f"{TURN} JOIN lineages AS l ON l.id = t.lineage_id WHERE t.lineage_id = ? AND {condition} ORDER BY t.no",
        (lineage_id, *owners),
    )
    return tuple(map(_turn, rows))


def active_turn(reader: Reader, lineage_id: LineageId) -> Turn | None:
    """The turn of a lineage that has not ended."""
    row = reader.one(f"{TURN} WHERE t.lineage_id = ? AND t.outcome = 'active'", (lineage_id,))
    return None if row is None else _turn(row)


def open_calls(reader: Reader, lineage_id: LineageId) -> tuple[ToolCall, ...]:
    """The calls of the active turn that have no result yet, in order."""
    row = reader.one(OPEN_CALLS, (lineage_id,))
    if row is None:
        return ()
    waiting, calls = cast("tuple[Text, Text]", row)  # columns of OPEN_CALLS
    open_ids = {call_id for call_id, _ in read_open_calls(waiting)}
    # Calls are open only behind the newest row with calls.
    return tuple(call for call in read_calls(calls) if call.id in open_ids)


def usage(reader: Reader, turn_id: TurnId) -> tuple[RecordedUsage, ...]:
    """What was recorded of a turn, in order."""
    return tuple(_usage(row) for row in reader.all(USAGE, (turn_id,)))


def _usage(row: tuple[SQLiteValue, ...]) -> RecordedUsage:
    at, late, model, tokens_in, tokens_out, cache_read, cache_write, cost = cast(
        "tuple[int, int, Text, Number, Number, Number, Number, float | None]", row
    )  # columns of USAGE
    usage_of_call = Usage(
        model=model,
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_write,
        estimated_cost_usd=cost,
    )
    return RecordedUsage(usage=usage_of_call, at=at, late=bool(late))


def read_lease(row: tuple[SQLiteValue, ...]) -> Lease:
    """The lease of a row of :data:`LEASE`."""
    lineage_id, token, renewals, holder, acquired, expires, ttl = cast("LeaseRow", row)  # columns of LEASE
    return Lease(
        lineage_id=lineage_id,
        token=token,
        renewals=renewals,
        holder=None if holder is None else read_holder(holder),
        acquired_at=acquired,
        expires_at=expires,
        ttl_ms=ttl,
    )


def lease(reader: Reader, lineage_id: LineageId) -> Lease | None:
    """The lease of a lineage."""
    row = reader.one(f"SELECT {LEASE} FROM lineages AS l WHERE l.id = ?", (lineage_id,))
    return None if row is None else read_lease(row)


def leases(reader: Reader) -> tuple[Lease, ...]:
    """Leases that are held, longest held first."""
    return tuple(map(read_lease, reader.all(LEASES)))
