"""Lineages as lists show them, and counts over all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from hermes_hookspecs.sessions import SessionSummary, StoreStats

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_core.storage.memory.tables import Tables
    from hermes_hookspecs.sessions import Lineage, Session, SessionFilter

__all__ = ["by_activity", "count_everything", "fits", "summary_of"]

Number = TypeVar("Number", int, float)


def by_activity(lineages: Iterable[Lineage]) -> tuple[Lineage, ...]:
    """Return lineages last active first, ties by id descending."""
    return tuple(sorted(lineages, key=_rank, reverse=True))


def _rank(lineage: Lineage) -> tuple[int, str]:
    return lineage.last_activity, lineage.id


def fits(lineage: Lineage, where: SessionFilter) -> bool:
    """Return whether a lineage meets every condition that is set."""
    return (
        (where.source is None or lineage.source.platform == where.source)
        and (where.archived is None or lineage.archived == where.archived)
        and (where.empty is None or (lineage.message_count == 0) == where.empty)
        and (where.title is None or lineage.title == where.title)
        and (where.before is None or _rank(lineage) < where.before)
    )


def summary_of(tables: Tables, lineage: Lineage) -> SessionSummary:
    """Return one line of a list."""
    segments = [session for session in tables.sessions.values() if session.lineage_id == lineage.id]
    tip, holder = tables.sessions[lineage.tip], tables.leases[lineage.id].holder
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
        input_tokens=_sum(session.input_tokens for session in segments),
        output_tokens=_sum(session.output_tokens for session in segments),
        cache_read_tokens=_sum(session.cache_read_tokens for session in segments),
        cache_write_tokens=_sum(session.cache_write_tokens for session in segments),
        estimated_cost_usd=_cost(segments),
        pinned=lineage.pinned,
        archived=lineage.archived,
        locked_by=None if holder is None else holder.describe(),
    )


def _cost(segments: Sequence[Session]) -> float | None:
    """Return what all segments have cost: unknown where one has used tokens of unknown cost."""
    for one in segments:
        counters = (one.input_tokens, one.output_tokens, one.cache_read_tokens, one.cache_write_tokens)
        if one.estimated_cost_usd is None and any(counter is not None for counter in counters):
            return None
    return _sum(one.estimated_cost_usd for one in segments)


def _sum(numbers: Iterable[Number | None]) -> Number | None:
    """Return the sum of the known numbers, ``None`` when all are unknown."""
    known = [number for number in numbers if number is not None]
    return sum(known[1:], known[0]) if known else None


def count_everything(tables: Tables) -> StoreStats:
    """Return counts that add up."""
    lineages = list(tables.lineages.values())
    archived = sum(lineage.archived for lineage in lineages)
    rows = [row for transcript in tables.transcripts.values() for row in transcript]
    hidden = sum(row.hidden for row in rows)
    return StoreStats(
        lineages=len(lineages),
        listed=len(lineages) - archived,
        archived=archived,
        empty=sum(lineage.message_count == 0 for lineage in lineages),
        sessions=len(tables.sessions),
        messages=len(rows) - hidden,
        hidden=hidden,
        turns=len(tables.turns),
        routes=sum(route.lineage_id is not None for route in tables.routes.values()),
        waiting=len(tables.pending()),
        per_platform=_per_platform(lineages),
        size=None,
    )


def _per_platform(lineages: Iterable[Lineage]) -> tuple[tuple[str, int, int], ...]:
    """Return ``(platform, lineages, messages)``, most messages first, ties by name."""
    counts: dict[str, tuple[int, int]] = {}
    for lineage in lineages:
        number, messages = counts.get(lineage.source.platform, (0, 0))
        counts[lineage.source.platform] = (number + 1, messages + lineage.message_count)
    rows = [(platform, number, messages) for platform, (number, messages) in counts.items()]
    return tuple(sorted(rows, key=lambda row: (-row[2], row[0])))
