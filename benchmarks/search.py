"""Search with the full-text index: what it costs to keep, and what it answers how quickly.

The corpus is that of :mod:`benchmarks.searchcorpus`. ``raw`` is a scan of the whole file with ``LIKE``, which is what
is left without an index; where writing is measured it is the same store without the plugin. The original has the same
rows and answers with as many of them as we do with conversations. Search reads warm pages unless the row says *cold*.
``python -m benchmarks.search --messages 1000000`` runs this part alone on a larger corpus, with ``--peer`` against the
original.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.measuring import OURS, PEER, RAW, Bounds, alternate, clocked, fact, row
from benchmarks.peer import hire
from benchmarks.reads import viewer
from benchmarks.report import table
from benchmarks.searchcorpus import QUERIES, store_corpus, written
from benchmarks.stage import ALL, append, begin_turn, enter, open_store
from hermes_core.storage.sqlite.janitor import Janitor
from hermes_fts5.config import Fts5Config
from hermes_fts5.source import Fts5Source
from hermes_hookspecs.ports.search import NEWEST, SearchQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import apsw

    from benchmarks.measuring import Row, Size, Timing
    from benchmarks.peer import Peer
    from hermes_core.storage.sqlite.store import SqliteStore
    from hermes_fts5.index import Fts5Index
    from hermes_hookspecs.ports.sqlite import SqliteWriter

__all__ = ["main", "run"]

APPENDS = 2000
WRITERS = 3
SHORT_CJK, LONGER, COMMON = Bounds(80, 250), Bounds(0.5, 1), Bounds(2, 4)
AHEAD = {
    **dict.fromkeys(("zh 1 char", "zh 2 chars, common", "zh 2 chars, mid", "zh 2 chars, rare"), SHORT_CJK),
    **dict.fromkeys(("zh 3 chars", "zh 4+ chars", "ja 3 chars", "en phrase", "en two words"), LONGER),
    "en word common": COMMON,
}
"""How many times quicker than the original at a million messages, for half of the queries."""
A_MILLION = 1_000_000
SCAN = """
    SELECT id, content FROM messages WHERE content LIKE '%' || ? || '%' AND hidden = 0 ORDER BY timestamp DESC LIMIT 20
"""
PAGES = "SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'messages_fts%' OR name LIKE '%fts5\\_%' ESCAPE '\\'"
TEXTS = "SELECT sum(length(CAST(content AS BLOB))) FROM messages"


def run(size: Size, peer: Peer | None) -> Iterator[Row]:
    """Yield the rows of writing, of building, then of every class of queries."""
    yield from _appending(size)
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(folder, "normal")
        store_corpus(store, size.messages_on_disk)
        if peer is not None:
            _tell(peer, Path(folder) / "corpus.jsonl", size.messages_on_disk)
        yield from _building(store, folder, size.messages_on_disk)
        index = _open(store)
        yield from _asking(store, index, folder, size, peer)
        yield from _beside_writers(index, folder, size)
        store.close()
        yield from _in_new_processes(folder, size.slow_rounds)


def _tell(peer: Peer, path: Path, count: int) -> None:
    with path.open("w", encoding="utf-8") as file:
        for row in written(count):
            file.write(json.dumps((f"c{row.conversation}", row.role, row.text, row.at / 1000)) + "\n")
    peer.ask("corpus", path=str(path))
    path.unlink()


def _open(store: SqliteStore) -> Fts5Index:
    return Fts5Source(Fts5Config()).open(store)


def _appending(size: Size) -> Iterator[Row]:
    seen = alternate(size.slow_rounds, {OURS: partial(_append, indexed=True), RAW: partial(_append, indexed=False)})
    yield row("append beside the index: rate", seen, "per_s", unit="1/s")
    yield row("append beside the index: p50", seen, "p50")
    yield row("append beside the index: p99", seen, "p99")
    longest = {who: max(each.longest for each in timings) / 1000 for who, timings in seen.items()}
    yield fact(
        "append beside the index: longest", longest[OURS], longest[RAW], unit="ms", bounds=Bounds(250, 20),
        judged="ours", rounds=size.slow_rounds,
    )  # fmt: skip


def _append(*, indexed: bool) -> Timing:
    """Append from a thread; with the index, until everything is indexed, too."""
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(folder)
        enter(store, "a")
        fence = begin_turn(store, "a")
        index = _open(store)
        janitor = Janitor(store.path, store.change_mark, [lambda budget_s: index.catch_up(budget_s=budget_s)])
        if indexed:
            index.catch_up(budget_s=1.0)
            janitor.start()
        found = _off_main(lambda: clocked(lambda number: store.apply(append(fence, number)), APPENDS))
        janitor.close()
        store.close()
    return found


def _off_main(work: Callable[[], Timing]) -> Timing:
    found: list[Timing] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def _building(store: SqliteStore, folder: str, count: int) -> Iterator[Row]:
    index = _open(store)
    longest = longest_work = 0.0
    began = time.perf_counter()
    worked = time.process_time()
    index.catch_up(budget_s=0.0)
    access = store.sqlite_access()
    advance = access.advance

    def timed(plugin: str, work: Callable[[SqliteWriter], object], **named: int) -> bool:
        nonlocal longest
        before = time.perf_counter()
        done = advance(plugin, partial(measured, work), **named)
        longest = max(longest, time.perf_counter() - before)
        return done

    def measured(work: Callable[[SqliteWriter], object], writer: SqliteWriter) -> None:
        nonlocal longest_work
        before = time.thread_time()
        work(writer)
        longest_work = max(longest_work, time.thread_time() - before)

    access.advance = timed  # type: ignore[method-assign]  # looked at, not changed
    while index.catch_up(budget_s=5.0):
        continue
    access.advance = advance  # type: ignore[method-assign]
    yield fact("index: build, per message", (time.perf_counter() - began) / count * 1e6, None, unit="us")
    yield fact(
        "index: build, processor time per message", (time.process_time() - worked) / count * 1e6, None, unit="us"
    )
    yield fact("index: longest step", longest * 1000, None, unit="ms", bounds=Bounds(250, 10), judged="ours")
    yield fact("index: longest step, processor time of its transaction", longest_work * 1000, None, unit="ms")
    plain = viewer(folder)
    (used,), (texts,) = (plain.execute(sql).fetchall()[0] for sql in (PAGES, TEXTS))
    plain.close()
    yield fact("index: bytes per message, beside its text", int(str(used)) / count, int(str(texts)) / count, unit="B")


def _asking(store: SqliteStore, index: Fts5Index, folder: str, size: Size, peer: Peer | None) -> Iterator[Row]:
    plain = viewer(folder)
    for name, queries in QUERIES:
        yield from _class(name, [SearchQuery(text=text) for text in queries], index, plain, size=size, peer=peer)
    with store.sqlite_access().read() as reader:
        middle = reader.one("SELECT timestamp FROM messages WHERE id >= (SELECT max(id) / 2 FROM messages) LIMIT 1")
    since = int(str(middle[0])) if middle else 0
    for name, query in (
        ("newest first", SearchQuery(text="kwcommon", sort=NEWEST)),
        ("one half of the year", SearchQuery(text="kwcommon", until=since)),
        ("tools only", SearchQuery(text="kwcommon", roles=("tool",))),
        ("20 hits", SearchQuery(text="kwcommon", limit=20)),
    ):
        yield from _class(f"en word common, {name}", [query], index, plain, size=size)
    plain.close()


def _class(
    name: str,
    queries: Sequence[SearchQuery],
    index: Fts5Index,
    plain: apsw.Connection,
    *,
    size: Size,
    peer: Peer | None = None,
) -> Iterator[Row]:
    count = len(queries) * (4 if size.is_quick else 10)

    def ours() -> Timing:
        return clocked(lambda number: index.search(queries[number % len(queries)], ALL), count)

    def scan() -> Timing:
        words = [query.text.replace('"', "").split(" OR ")[0] for query in queries]
        return clocked(lambda number: plain.execute(SCAN, (words[number % len(words)],)).fetchall(), len(words))

    contestants = {OURS: ours, RAW: scan}
    if peer is not None:
        texts, most = [query.text for query in queries], queries[0].limit
        contestants[PEER] = lambda: peer.timing("search", queries=texts, limit=most, count=4 * len(texts))
    seen = alternate(size.slow_rounds, contestants)
    ahead = AHEAD.get(name, Bounds()) if size.messages_on_disk >= A_MILLION else Bounds()
    yield row(f"search {name}: p50", seen, "p50", peer_bounds=ahead, unit="ms")
    yield row(f"search {name}: p99", seen, "p99", unit="ms")


WRITING = """
import sys
from benchmarks.stage import append, begin_turn, enter, open_store
store = open_store(sys.argv[1])
name = "w" + sys.argv[2]
enter(store, name)
fence = begin_turn(store, name)
print("ready", flush=True)
number = 0
while True:
    store.apply(append(fence, number))
    number += 1
"""


def _beside_writers(index: Fts5Index, folder: str, size: Size) -> Iterator[Row]:
    """Search while processes append as fast as they can; nobody but the searches indexes meanwhile."""
    seen = [_search_beside_writers(index, folder, size) for _ in range(size.slow_rounds)]
    for name, values in (("p50", [each.p50 for each in seen]), ("p99", [each.p99 for each in seen])):
        taken = median(values) / 1000
        yield fact(f"search beside {WRITERS} writers: {name}", taken, None, unit="ms", rounds=len(seen))


def _search_beside_writers(index: Fts5Index, folder: str, size: Size) -> Timing:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITING, folder, str(number)], stdout=subprocess.PIPE, env=_environment()
        )
        for number in range(WRITERS)
    ]
    try:
        for writer in writers:
            if writer.stdout is not None:
                writer.stdout.readline()
        queries = [SearchQuery(text=text) for text in ("kwmid", "鲸鱼", "kwcommon kwtenth")]
        return clocked(lambda number: index.search(queries[number % 3], ALL), 20 if size.is_quick else 60)
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()


ASKING = """
import json, os, sys, time
from benchmarks.stage import ALL, open_store
from hermes_fts5.config import Fts5Config
from hermes_fts5.source import Fts5Source
from hermes_hookspecs.ports.search import SearchQuery
folder, text, cold, indexing = sys.argv[1], sys.argv[2], sys.argv[3] == "cold", sys.argv[4] == "indexing"
if cold:
    # Before SQLite has the file open: closing it later would drop SQLite's locks.
    for name in ("state.db", "state.db-wal"):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)
def peak():
    if not os.path.exists("/proc/self/status"):
        return 0
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
store = open_store(folder, "normal")
index = Fts5Source(Fts5Config()).open(store)
before = peak()
began = time.perf_counter()
if indexing:
    index.catch_up(budget_s=5.0)
else:
    index.search(SearchQuery(text=text), ALL)
taken = (time.perf_counter() - began) * 1000
after = peak()
print(json.dumps({"ms": taken, "kb": after - before}))
store.close()
"""


def _in_new_processes(folder: str, rounds: int) -> Iterator[Row]:
    """First searches of a process, on an emptied page cache where the system has one, and the memory they take."""
    for name, text in (("zh 2 chars", "鲸鱼"), ("en word", "kwmid"), ("en word in a tenth", "kwtenth")):
        if hasattr(os, "posix_fadvise"):
            cold = median(_ask(folder, text, "cold")["ms"] for _ in range(rounds))
            yield fact(f"search cold, {name}", cold, None, unit="ms", rounds=rounds)
        warm = [_ask(folder, text, "warm") for _ in range(rounds)]
        yield fact(
            f"search in a new process, {name}", median(each["ms"] for each in warm), None, unit="ms", rounds=rounds
        )
        memory = median(each["kb"] for each in warm) / 1024
        yield fact(f"memory of a search, {name}", memory, None, unit="MiB", rounds=rounds)
    yield fact("memory of the indexer", _ask(folder, "", "warm", "indexing")["kb"] / 1024, None, unit="MiB")


def _ask(folder: str, text: str, cold: str, indexing: str = "") -> dict[str, float]:
    command = [sys.executable, "-c", ASKING, folder, text, cold, indexing]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=_environment())
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def _environment() -> dict[str, str]:
    root = str(Path(__file__).resolve().parent.parent)
    return {**os.environ, "PYTHONPATH": os.pathsep.join((root, *filter(None, sys.path)))}


def main() -> int:
    """Run this part alone."""
    from benchmarks.measuring import Size

    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--messages", type=int, default=100_000, help="size of the corpus (default: 100000)")
    parser.add_argument("--peer", action="store_true", help="against the original, installed where it is not")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each row (default: 5)")
    options = parser.parse_args()
    size = Size(options.rounds, options.rounds, options.messages, 1.5, options.rounds < 5)
    peer = hire() if options.peer else None
    try:
        print("\n".join(table(list(run(size, peer)))))
    finally:
        if peer is not None:
            peer.leave()
    return 0


if __name__ == "__main__":
    sys.exit(main())
