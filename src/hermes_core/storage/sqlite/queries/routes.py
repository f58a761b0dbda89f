"""Routes: which lineage a key leads to, and what made it so."""

# ruff: noqa: S608 - statements are put together from constants of this package, values are always bound

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.rows import read_source
from hermes_hookspecs.sessions import Route, SessionEntry
from hermes_hookspecs.source import KeyPolicy

if TYPE_CHECKING:
    from hermes_core.storage.sqlite.transaction import Reader, SQLiteValue
    from hermes_hookspecs.ids import LineageId, SessionId, SessionKey

    RouteRow = tuple[SessionKey, str, LineageId | None, int, int, int, int, int, str | None]
    EntryRow = tuple[LineageId, SessionId, str, int, int, int, str | None, int]

__all__ = ["entry_of_key", "entry_of_lineage", "route", "routes"]

COLUMNS = """key, source, lineage_id, key_version, group_sessions_per_user, thread_sessions_per_user,
    created_at, updated_at, pending_title"""
ROUTE = f"SELECT {COLUMNS} FROM routes WHERE key = ?"
ROUTES = f"SELECT {COLUMNS} FROM routes ORDER BY updated_at DESC, key LIMIT ?"
ROUTES_OF_LINEAGE = f"SELECT {COLUMNS} FROM routes WHERE lineage_id = ? ORDER BY updated_at DESC, key LIMIT ?"

ENTRY = "SELECT l.id, l.tip, l.source, l.created_at, l.last_activity, l.version, l.title, l.shared"
ENTRY_OF_KEY = f"{ENTRY} FROM routes AS r JOIN lineages AS l ON l.id = r.lineage_id WHERE r.key = ?"
ENTRY_OF_LINEAGE = f"{ENTRY} FROM lineages AS l WHERE l.id = ?"


def _route(row: tuple[SQLiteValue, ...]) -> Route:
    key, source, lineage_id, version, group, thread, created, updated, title = cast("RouteRow", row)  # columns above
    return Route(
        key=key,
        source=read_source(source),
        lineage_id=lineage_id,
        key_version=version,
        policy=KeyPolicy(group_sessions_per_user=bool(group), thread_sessions_per_user=bool(thread)),
        created_at=created,
        updated_at=updated,
        pending_title=title,
    )


def route(reader: Reader, key: SessionKey) -> Route | None:
    """The route of exactly this key."""
    row = reader.one(ROUTE, (key,))
    return None if row is None else _route(row)


def routes(reader: Reader, lineage_id: LineageId | None, limit: int | None) -> tuple[Route, ...]:
    """Routes, last used first, of one lineage or of all."""
    most = -1 if limit is None else max(limit, 0)
    if lineage_id is None:
        return tuple(map(_route, reader.all(ROUTES, (most,))))
    return tuple(map(_route, reader.all(ROUTES_OF_LINEAGE, (lineage_id, most))))


def _entry(key: SessionKey, row: tuple[SQLiteValue, ...]) -> SessionEntry:
    lineage_id, tip, source, created, activity, version, title, shared = cast("EntryRow", row)  # columns above
    return SessionEntry(
        session_key=key,
        session_id=tip,
        lineage_id=lineage_id,
        source=read_source(source),
        created_at=created,
        updated_at=activity,
        version=version,
        title=title,
        shared=bool(shared),
    )


def entry_of_key(reader: Reader, key: SessionKey) -> SessionEntry | None:
    """What the key leads to, ``None`` where it leads nowhere: two look-ups by primary key."""
    row = reader.one(ENTRY_OF_KEY, (key,))
    return None if row is None else _entry(key, row)


def entry_of_lineage(reader: Reader, key: SessionKey, lineage_id: LineageId) -> SessionEntry | None:
    """The lineage as it looks behind ``key``, ``None`` for no such lineage."""
    row = reader.one(ENTRY_OF_LINEAGE, (lineage_id,))
    return None if row is None else _entry(key, row)
