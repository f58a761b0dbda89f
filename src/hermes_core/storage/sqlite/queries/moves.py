"""The journal of routes."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.rows import read_owner
from hermes_hookspecs.sessions import RouteMove
from hermes_hookspecs.source import KeyPolicy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_core.storage.sqlite.transaction import Reader, SQLiteValue
    from hermes_hookspecs.ids import LineageId, SessionKey

    MoveRow = tuple[int, str, str | None, SessionKey, SessionKey, LineageId, int, str, int, int, int, str, int]

__all__ = ["moves_by_id", "route_moves"]

MOVES = """
    SELECT id, kind, batch, key, new_key, lineage_id, at, reason, key_version, group_sessions_per_user,
        thread_sessions_per_user, owner, shared
    FROM route_moves
"""
BY_ID = f"{MOVES} WHERE id = ?"


def _move(row: tuple[SQLiteValue, ...]) -> RouteMove:
    move_id, kind, batch, key, new, lineage, at, reason, version, group, thread, owner, shared = cast(
        "MoveRow", row
    )  # columns of MOVES
    return RouteMove(
        id=move_id,
        kind=kind,
        batch=batch,
        key=key,
        new_key=new,
        lineage_id=lineage,
        at=at,
        reason=reason,
        key_version=version,
        policy=KeyPolicy(group_sessions_per_user=bool(group), thread_sessions_per_user=bool(thread)),
        owner=read_owner(owner),
        shared=bool(shared),
    )


def moves_by_id(reader: Reader, ids: Sequence[int]) -> tuple[RouteMove, ...]:
    """Lines with these ids, in this order; those that are gone are left out."""
    rows = (reader.one(BY_ID, (move_id,)) for move_id in ids)
    return tuple(_move(row) for row in rows if row is not None)


def route_moves(reader: Reader, batch: str | None, kinds: Sequence[str], limit: int | None) -> tuple[RouteMove, ...]:
    """Lines, newest first: of one batch or all, of some kinds or every kind."""
    conditions, values = ["TRUE"], list[str]()
    if batch is not None:
        conditions.append("batch = ?")
        values.append(batch)
    if kinds:
        conditions.append(f"kind IN ({', '.join('?' * len(kinds))})")
        values.extend(kinds)
    most = -1 if limit is None else max(limit, 0)
    sql = f"{MOVES} WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT ?"
    return tuple(map(_move, reader.all(sql, (*values, most))))
