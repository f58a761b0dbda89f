"""Get or create: a hit, a miss, and what ten thousand routes change about them."""

from __future__ import annotations

import tempfile
from itertools import count
from typing import TYPE_CHECKING

from benchmarks.appends import off_main
from benchmarks.measuring import OURS, PEER, RAW, Bounds, alternate, clocked, row
from benchmarks.raw import Raw
from benchmarks.reads import fill_sessions, viewer
from benchmarks.stage import NOW, open_store, wanted

if TYPE_CHECKING:
    from collections.abc import Iterator

    import apsw

    from benchmarks.measuring import Row, Size, Timing
    from benchmarks.peer import Peer
    from hermes_core.storage.sqlite.store import SqliteStore

__all__ = ["run"]

_HITS, _MISSES = 200, 50
_ROUTES = (100, 10_000)
_PEER_ROUTES = 1000
_FIND = """
    SELECT l.id, l.tip, l.source, l.created_at, l.last_activity, l.version, l.title, l.shared
    FROM routes AS r JOIN lineages AS l ON l.id = r.lineage_id WHERE r.key = ?
"""
_LINEAGE = """
    INSERT INTO lineages (id, tip, owner, shared, platform, created_at, last_activity, written_at, source)
    VALUES (?, ?, 'person', 0, 'feishu', ?, ?, ?, ?)
"""
_SESSION = """
    INSERT INTO sessions (id, lineage_id, source, account_id, user_id, started_at)
    VALUES (?, ?, 'feishu', 'default', ?, ?)
"""
_ROUTE = """
    INSERT INTO routes (key, lineage_id, profile, platform, account_id, chat_type, chat_id, user_id, key_version,
        group_sessions_per_user, thread_sessions_per_user, created_at, updated_at, source)
    VALUES (?, ?, 'main', 'feishu', 'default', 'dm', ?, ?, 1, 1, 0, ?, ?, ?)
"""


def run(size: Size, peer: Peer | None) -> Iterator[Row]:
    """Yield the hit and the miss for each number of routes, then how the two grow between them."""
    with tempfile.TemporaryDirectory() as few, tempfile.TemporaryDirectory() as many:
        folders = dict(zip(_ROUTES, (few, many), strict=True))
        for routes, folder in folders.items():
            filling = open_store(folder, "normal")
            fill_sessions(filling, routes)
            filling.close()
        stores = {routes: open_store(folder) for routes, folder in folders.items()}
        plain = {routes: viewer(folder) for routes, folder in folders.items()}
        raws = {routes: Raw(folder) for routes, folder in folders.items()}
        fresh = count(1_000_000)
        for routes in _ROUTES:
            _copy_routes(plain[routes], raws[routes])
            yield from _hit(size, routes, stores[routes], plain[routes])
            yield from _miss(size, routes, stores[routes], raws[routes], fresh)
        yield from _growth(size, stores, fresh)
        if peer is not None:
            yield from _against_peer(size, peer, stores[_ROUTES[-1]])
        for routes in _ROUTES:
            stores[routes].close()
            plain[routes].close()
            raws[routes].close()


def _copy_routes(plain: apsw.Connection, raw: Raw) -> None:
    """Give plain SQLite the rows that we have, so that its indexes are as deep as ours."""
    execute = raw.connection.execute
    execute("ATTACH ? AS ours", (plain.db_filename("main"),)).fetchall()
    for table in ("lineages", "sessions", "routes"):
        execute(f"INSERT INTO main.{table} SELECT * FROM ours.{table}").fetchall()  # noqa: S608 - names of tables
    execute("DETACH ours").fetchall()


def _hits(store: SqliteStore, routes: int) -> Timing:
    # The clock stands still: within a second nothing is to be noted.
    known = [wanted(f"s{number % routes}", now=NOW + (number % routes) * 2000) for number in range(0, _HITS * 7, 7)]
    return off_main(lambda: clocked(lambda number: store.apply(known[number]), _HITS))


def _misses(store: SqliteStore, fresh: Iterator[int]) -> Timing:
    unknown = [wanted(f"s{next(fresh)}") for _ in range(_MISSES)]
    return off_main(lambda: clocked(lambda number: store.apply(unknown[number]), _MISSES))


def _hit(size: Size, routes: int, store: SqliteStore, plain: apsw.Connection) -> Iterator[Row]:
    keys = [wanted(f"s{number % routes}").key for number in range(0, _HITS * 7, 7)]

    def find() -> Timing:
        return off_main(lambda: clocked(lambda number: plain.execute(_FIND, (keys[number],)).fetchall(), _HITS))

    seen = alternate(size.rounds, {OURS: lambda: _hits(store, routes), RAW: find})
    yield row(f"get-or-create hit, {routes} routes", seen, "p50")


def _miss(size: Size, routes: int, store: SqliteStore, raw: Raw, fresh: Iterator[int]) -> Iterator[Row]:
    def insert() -> Timing:
        return off_main(lambda: clocked(lambda _: _insert(raw, next(fresh)), _MISSES))

    seen = alternate(size.rounds, {OURS: lambda: _misses(store, fresh), RAW: insert})
    yield row(f"get-or-create miss, {routes} routes", seen, "p50")


def _insert(raw: Raw, number: int) -> None:
    name, source = f"s{number}", '{"platform":"feishu"}'
    raw.write(
        (_LINEAGE, (f"L{name}", f"S{name}", NOW, NOW, NOW, source)),
        (_SESSION, (f"S{name}", f"L{name}", name, NOW)),
        (_ROUTE, (f"agent:main:feishu:dm:chat=oc_{name}", f"L{name}", name, name, NOW, NOW, source)),
    )


def _growth(size: Size, stores: dict[int, SqliteStore], fresh: Iterator[int]) -> Iterator[Row]:
    few, many = _ROUTES
    seen = alternate(size.rounds, {OURS: lambda: _hits(stores[many], many), RAW: lambda: _hits(stores[few], few)})
    yield row("get-or-create hit: 10 000 routes against 100", seen, "p50", Bounds(1.5, 1.2))
    seen = alternate(
        size.rounds, {OURS: lambda: _misses(stores[many], fresh), RAW: lambda: _misses(stores[few], fresh)}
    )
    yield row("get-or-create miss: 10 000 routes against 100", seen, "p50", Bounds(1.5, 1.2))


def _against_peer(size: Size, peer: Peer, store: SqliteStore) -> Iterator[Row]:
    """The original writes its whole index at every call; it gets a tenth of our routes."""
    peer.ask("routes", count=_PEER_ROUTES)
    contestants = {OURS: lambda: _hits(store, _ROUTES[-1]), PEER: lambda: peer.timing("hit", count=5)}
    seen = alternate(size.slow_rounds, contestants)
    yield row("get-or-create hit (original: 1000 routes)", seen, "p50", peer_bounds=Bounds(500, 4000))
