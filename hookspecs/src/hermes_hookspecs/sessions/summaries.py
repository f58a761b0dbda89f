"""What lists and counts are made of: nothing here needs the values that turns are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from hermes_hookspecs.ids import LineageId, SessionId

__all__ = ["Left", "SessionFilter", "SessionSummary", "StoreStats"]


@attrs.frozen(kw_only=True)
class SessionSummary:
    """One line of a list: a lineage shown as its tip. Times are UTC milliseconds.

    Attributes:
        started_at: of the first segment. message_count, token numbers: over all segments.
        locked_by: description of the live lease's holder, ``None`` when free.
    """

    session_id: SessionId
    lineage_id: LineageId
    source: str
    account_id: str
    user_id: str | None
    title: str | None
    preview: str
    started_at: int
    last_activity: int
    ended_at: int | None
    end_reason: str | None
    message_count: int
    segments: int
    model: str | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    estimated_cost_usd: float | None
    pinned: bool
    archived: bool
    locked_by: str | None = None


@attrs.frozen(kw_only=True)
class SessionFilter:
    """Which lineages a list holds; every condition that is set must be met.

    Attributes:
        archived: ``False`` only live ones, ``True`` only archived ones, ``None`` both.
        empty: ``None`` both, ``False`` only lineages with at least one message.
        before: continue behind this ``(last_activity, lineage id)``, as the last row of the page before.
    """

    source: str | None = None
    archived: bool | None = False
    empty: bool | None = None
    title: str | None = None
    before: tuple[int, LineageId] | None = None


@attrs.frozen(kw_only=True)
class StoreStats:
    """Counts that add up: ``lineages == listed + archived`` and ``sessions`` counts every segment.

    Attributes:
        messages: rows that are not hidden. hidden: rows taken back.
        per_platform: ``(platform, lineages, messages)``, most messages first.
        size: bytes on disk, ``None`` where it has no meaning.
    """

    lineages: int
    listed: int
    archived: int
    empty: int
    sessions: int
    messages: int
    hidden: int
    turns: int
    routes: int
    waiting: int
    per_platform: tuple[tuple[str, int, int], ...]
    size: int | None


@attrs.frozen(kw_only=True)
class Left:
    """What a key let go of.

    Attributes:
        summary: the session, ``None`` where only messages waited that had none yet.
        superseded: waiting messages that were settled with it. stopped: a turn was running and was ended.
    """

    summary: SessionSummary | None
    superseded: int
    stopped: bool
