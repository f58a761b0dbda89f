"""Counts over the whole store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

from hermes_hookspecs.sessions import StoreStats

if TYPE_CHECKING:
    from hermes_core.storage.sqlite.transaction import Reader

__all__ = ["size_of", "stats"]

LINEAGES = """
    SELECT count(*), coalesce(sum(archived), 0), coalesce(sum(message_count = 0), 0), coalesce(sum(message_count), 0)
    FROM lineages
"""
OTHERS = """
    SELECT (SELECT count(*) FROM sessions), (SELECT count(*) FROM messages WHERE hidden = 1),
        (SELECT count(*) FROM turns), (SELECT count(*) FROM routes WHERE lineage_id IS NOT NULL),
        (SELECT count(*) FROM inbox WHERE status = 'pending' AND kind <> 'control')
"""
PLATFORMS = """
    SELECT platform, count(*), sum(message_count) AS messages FROM lineages
    GROUP BY platform ORDER BY messages DESC, platform
"""


def stats(reader: Reader, size: int | None) -> StoreStats:
    """Counts of everything; ``size`` is what the caller knows of the files."""
    lineages, archived, empty, messages = cast("tuple[int, int, int, int]", reader.one(LINEAGES))  # aggregates
    sessions, hidden, turns, routes, waiting = cast("tuple[int, int, int, int, int]", reader.one(OTHERS))  # counts
    return StoreStats(
        lineages=lineages,
        listed=lineages - archived,
        archived=archived,
        empty=empty,
        sessions=sessions,
        messages=messages,
        hidden=hidden,
        turns=turns,
        routes=routes,
        waiting=waiting,
        per_platform=tuple(cast("list[tuple[str, int, int]]", reader.all(PLATFORMS))),  # the three columns
        size=size,
    )


def size_of(path: str) -> int:
    """Bytes of a database file and its log. Looks at names only: opening them is SQLite's business."""
    size = 0
    for name in (path, f"{path}-wal"):
        try:
            size += os.stat(name).st_size
        except FileNotFoundError:
            continue
    return size
