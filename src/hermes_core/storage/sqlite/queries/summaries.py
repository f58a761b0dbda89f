"""Lists: lineages shown as their tips, last active first. The quickest command there is reads through here."""

# ruff: noqa: S608 - statements are put together from constants of this package, values are always bound

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.cleaning import clean_text
from hermes_core.storage.sqlite.queries.access import visible
from hermes_hookspecs.sessions import SessionFilter, SessionSummary

if TYPE_CHECKING:
    from hermes_core.storage.sqlite.transaction import Reader, SQLiteValue
    from hermes_hookspecs.ids import LineageId, SessionId
    from hermes_hookspecs.principal import Principal

    Number = int | None
    SummaryRow = tuple[
        SessionId, LineageId, str, str, str | None, str | None, str, int, int, Number, str | None, int, int,
        str | None, Number, Number, Number, Number, float | None, int, int, str | None,
    ]  # fmt: skip

__all__ = ["summaries", "summary"]

_SUMS = ", ".join(
    f"iif(l.segments = 1, t.{name}, (SELECT sum({name}) FROM sessions WHERE lineage_id = l.id))"
    for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
)
# Tokens without a cost: nobody knows what the whole has cost.
_COST = """
    iif(l.segments = 1, t.estimated_cost_usd, (
        SELECT iif(
            max(estimated_cost_usd IS NULL AND coalesce(
                input_tokens, output_tokens, cache_read_tokens, cache_write_tokens
            ) IS NOT NULL), NULL, sum(estimated_cost_usd)
        ) FROM sessions WHERE lineage_id = l.id
    ))
"""
SUMMARY = f"""
    SELECT l.tip, l.id, t.source, t.account_id, t.user_id, l.title, coalesce(l.preview, ''), l.created_at,
        l.last_activity, t.ended_at, t.end_reason, l.message_count, l.segments, t.model, {_SUMS}, {_COST},
        l.pinned, l.archived, l.lease_label
    FROM lineages AS l CROSS JOIN sessions AS t ON t.id = l.tip
"""


def summaries(
    reader: Reader, principal: Principal, where: SessionFilter | None, limit: int | None
) -> tuple[SessionSummary, ...]:
    """Lineages that meet every condition of ``where``, at most ``limit``, ties by lineage id descending."""
    wanted = where or SessionFilter()
    condition, values = _condition(principal, wanted)
    most = -1 if limit is None else max(limit, 0)
    # With the flag fixed, the index gives the order; both together are two such lists, merged by SQLite.
    flags = (0, 1) if wanted.archived is None else (int(wanted.archived),)
    parts = [f"{SUMMARY} WHERE l.archived = {flag} AND {condition}" for flag in flags]
    sql = f"{' UNION ALL '.join(parts)} ORDER BY l.last_activity DESC, l.id DESC LIMIT ?"
    if len(flags) > 1:
        # Columns of a compound are named by their place: last activity, lineage id.
        sql = f"{' UNION ALL '.join(parts)} ORDER BY 9 DESC, 2 DESC LIMIT ?"
    return tuple(map(_summary, reader.all(sql, (*(values * len(flags)), most))))


def summary(reader: Reader, lineage_id: LineageId, principal: Principal) -> SessionSummary | None:
    """One lineage, archived or not."""
    condition, owners = visible(principal)
    row = reader.one(f"{SUMMARY} WHERE l.id = ? AND {condition}", (lineage_id, *owners))
    return None if row is None else _summary(row)


def _condition(principal: Principal, wanted: SessionFilter) -> tuple[str, tuple[SQLiteValue, ...]]:
    condition, owners = visible(principal)
    values: list[SQLiteValue] = list(owners)
    if wanted.source is not None:
        condition += " AND l.platform = ?"
        values.append(clean_text(wanted.source))
    if wanted.empty is not None:
        condition += " AND l.message_count = 0" if wanted.empty else " AND l.message_count > 0"
    if wanted.title is not None:
        condition += " AND l.title = ?"
        values.append(clean_text(wanted.title))
    if wanted.before is not None:
        condition += " AND (l.last_activity, l.id) < (?, ?)"
        values.extend((wanted.before[0], clean_text(wanted.before[1])))
    return condition, tuple(values)


def _summary(row: tuple[SQLiteValue, ...]) -> SessionSummary:
    (
        tip, lineage_id, source, account, user, title, preview, started, activity, ended, reason, messages, segments,
        model, tokens_in, tokens_out, cache_read, cache_write, cost, pinned, archived, locked_by,
    ) = cast("SummaryRow", row)  # columns of SUMMARY  # fmt: skip
    return SessionSummary(
        session_id=tip,
        lineage_id=lineage_id,
        source=source,
        account_id=account,
        user_id=user,
        title=title,
        preview=preview,
        started_at=started,
        last_activity=activity,
        ended_at=ended,
        end_reason=reason,
        message_count=messages,
        segments=segments,
        model=model,
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_write,
        estimated_cost_usd=cost,
        pinned=bool(pinned),
        archived=bool(archived),
        locked_by=locked_by,
    )
