"""Sums of what was used: each report counts where its turn belongs."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.cleaning import clean
from hermes_core.storage.sqlite.queries.access import visible
from hermes_hookspecs.turns import Usage
from hermes_hookspecs.usage import UsageGroup, UsageSum

if TYPE_CHECKING:
    from hermes_core.storage.sqlite.transaction import Reader, SQLiteValue
    from hermes_hookspecs.ids import LineageId, SessionId
    from hermes_hookspecs.principal import Owner, Principal

    Number = int | None
    SumRow = tuple[str, int, int, int, str | None, Number, Number, Number, Number, int, float | None]

__all__ = ["usage_sums"]

GROUPS = {
    None: "''",
    "session": "t.session_id",
    "lineage": "t.lineage_id",
    "owner": "l.owner",
    "model": "coalesce(u.model, '')",
    "platform": "t.platform",
    "day": "strftime('%Y-%m-%d', u.at / 1000, 'unixepoch')",
}
SUMS = """
    count(*), count(DISTINCT u.turn_id), count(DISTINCT coalesce(u.model, '')), max(u.model), sum(u.input_tokens),
    sum(u.output_tokens), sum(u.cache_read_tokens), sum(u.cache_write_tokens),
    count(*) - count(u.estimated_cost_usd), sum(u.estimated_cost_usd)
"""
FROM = "FROM usage AS u JOIN turns AS t ON t.id = u.turn_id JOIN lineages AS l ON l.id = t.lineage_id"
# From the few turns of one lineage to their reports, never through all reports.
FROM_LINEAGE = """
    FROM turns AS t CROSS JOIN usage AS u ON u.turn_id = t.id CROSS JOIN lineages AS l ON l.id = t.lineage_id
"""
OF_SESSION = "SELECT lineage_id FROM sessions WHERE id = ?"


def usage_sums(
    reader: Reader,
    principal: Principal,
    *,
    by: str | None,
    session_id: SessionId | None,
    lineage_id: LineageId | None,
    owner: Owner | None,
    since: int | None,
) -> tuple[UsageGroup, ...]:
    """Sums in order of name; one of nothing where nothing is grouped.

    :raises ValueError: there is no such grouping.
    """
    if by not in GROUPS:
        raise ValueError(f"usage is not summed by {by!r}")
    condition, owners = visible(principal)
    conditions, values = [f"({condition})"], list["SQLiteValue"](owners)
    if session_id is not None:
        conditions.append(f"t.lineage_id = ({OF_SESSION}) AND t.session_id = ?")
        values += [clean(session_id), clean(session_id)]
    for text, value in (
        ("t.lineage_id = ?", clean(lineage_id)),
        ("l.owner = ?", None if owner is None else str(owner)),
        ("u.at >= ?", since),
    ):
        if value is not None:
            conditions.append(text)
            values.append(value)
    source = FROM if session_id is None and lineage_id is None else FROM_LINEAGE
    sql = f"SELECT {GROUPS[by]} AS name, {SUMS} {source} WHERE {' AND '.join(conditions)} GROUP BY name ORDER BY name"
    found = tuple(map(_group, reader.all(sql, values)))
    return found if by is not None or found else (UsageGroup(name="", sum=UsageSum()),)


def _group(row: tuple[SQLiteValue, ...]) -> UsageGroup:
    (
        name, calls, turns, models, model, tokens_in, tokens_out, cache_read, cache_write, unpriced, cost,
    ) = cast("SumRow", row)  # name and SUMS  # fmt: skip
    usage = Usage(
        model=model if models == 1 else None,
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_write,
        estimated_cost_usd=None if unpriced else cost,
    )
    total = UsageSum(calls=calls, turns=turns, usage=usage, unpriced=unpriced, known_cost_usd=cost or 0.0)
    return UsageGroup(name=name, sum=total)
