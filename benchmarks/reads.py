"""Loading transcripts, their ends, and lists."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from benchmarks.measuring import OURS, PEER, RAW, Bounds, alternate, clocked, row
from benchmarks.stage import ALL, NOW, fill, open_store, wanted
from hermes_core.storage.sqlite.queries.transcripts import COLUMNS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.measuring import Row, Size, Timing
    from benchmarks.peer import Peer
    from hermes_core.storage.sqlite.store import SqliteStore
    from hermes_hookspecs.ids import LineageId

__all__ = ["SESSIONS", "fill_sessions", "run", "viewer"]

SESSIONS = 10_000
_LOAD = f"SELECT {COLUMNS} FROM messages AS m WHERE m.lineage_no = ? AND m.hidden = 0 ORDER BY m.id"  # noqa: S608 - a constant
_LAST = f"{_LOAD} DESC LIMIT 50"
_LIST = """
    SELECT l.tip, l.id, t.source, t.account_id, t.user_id, l.title, l.preview, l.created_at, l.last_activity,
        t.ended_at, t.end_reason, l.message_count, l.segments, t.model, t.input_tokens, t.output_tokens,
        t.cache_read_tokens, t.cache_write_tokens, t.estimated_cost_usd, l.pinned, l.archived, l.lease_label
    FROM lineages AS l CROSS JOIN sessions AS t ON t.id = l.tip WHERE l.archived = 0
    ORDER BY l.last_activity DESC, l.id DESC LIMIT 20
"""


def viewer(folder: str) -> apsw.Connection:
    """Plain SQLite on our own file, so that both read the same pages."""
    return apsw.Connection(str(Path(folder) / "state.db"), flags=apsw.SQLITE_OPEN_READWRITE)


def run(size: Size, peer: Peer | None) -> Iterator[Row]:
    """Yield the rows of transcripts, then the one of the list."""
    yield from _transcripts(size, peer)
    yield from _list(size, peer)


def _transcripts(size: Size, peer: Peer | None) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(folder, "normal")
        if peer is not None:
            peer.ask("fill", name="load", sessions={"k1": 1000, "k10": 10_000})
        plain = viewer(folder)
        numbers = {"k1": 1, "k10": 2}
        lineages = {name: fill(store, name, count) for name, count in (("k1", 1000), ("k10", 10_000))}
        for name, label, count in (("k1", "1k", 10), ("k10", "10k", 3)):
            load = _loading(store, plain, lineages[name], numbers[name], count)
            if peer is not None:
                load[PEER] = partial(peer.timing, "load", session=name, count=count)
            bounds = Bounds(3, 6) if name == "k10" else Bounds()
            yield row(f"load {label} messages", alternate(size.rounds, load), "p50", peer_bounds=bounds, unit="ms")
        contestants = {
            OURS: lambda: clocked(lambda _: store.last_messages(lineages["k10"], ALL, count=50), 100),
            RAW: lambda: clocked(lambda _: plain.execute(_LAST, (numbers["k10"],)).fetchall(), 100),
        }
        if peer is not None:
            contestants[PEER] = lambda: peer.timing("last", session="k10", count=10)
        yield row("last 50 of 10k messages", alternate(size.rounds, contestants), "p50")
        plain.close()
        store.close()


def _loading(
    store: SqliteStore, plain: apsw.Connection, lineage_id: LineageId, lineage_no: int, count: int
) -> dict[str, Callable[[], Timing]]:
    return {
        OURS: lambda: clocked(lambda _: store.messages(lineage_id, ALL), count),
        RAW: lambda: clocked(lambda _: plain.execute(_LOAD, (lineage_no,)).fetchall(), count),
    }


def fill_sessions(store: SqliteStore, count: int) -> None:
    """Make so many sessions, the later ones active later, each with its route; empty ones, which lists do not mind."""
    waiting = [store.submit(wanted(f"s{number}", now=NOW + number * 2000)) for number in range(count)]
    for future in waiting:
        future.result()


def _list(size: Size, peer: Peer | None) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(folder, "normal")
        fill_sessions(store, SESSIONS)
        plain = viewer(folder)
        contestants = {
            OURS: lambda: clocked(lambda _: store.summaries(ALL, limit=20), 100),
            RAW: lambda: clocked(lambda _: plain.execute(_LIST).fetchall(), 100),
        }
        bounds = Bounds()
        if peer is not None:
            peer.ask("fill", name="list", sessions={f"s{number}": 10 for number in range(SESSIONS)})
            contestants[PEER] = lambda: peer.timing("list", count=3)
            bounds = Bounds(300, 3000)
        seen = alternate(size.rounds, contestants)
        yield row(f"list 20 of {SESSIONS // 1000}k sessions by activity", seen, "p50", peer_bounds=bounds)
        plain.close()
        store.close()
