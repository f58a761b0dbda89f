"""Search with the full-text index: what it costs to keep, and what it answers how quickly.

The corpus is that of :mod:`benchmarks.searchcorpus`. ``raw`` is a scan of the whole file with ``LIKE``, which is what
is left without an index; where writing is measured it is the same store without the plugin. Search reads warm pages
unless the row says *cold*. ``python -m benchmarks.search --messages 1000000`` runs this part alone on a larger corpus.
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
from typing import TYPE_CHECKING

from benchmarks.measuring import OURS, RAW, Bounds, alternate, clocked, fact, row
from benchmarks.reads import viewer
from benchmarks.report import table
from benchmarks.searchcorpus import QUERIES, store_corpus
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

__all__ = ["main", "run"]

APPENDS = 2000
WRITERS = 3
SCAN = """
    SELECT id, content FROM messages WHERE content LIKE '%' || ? || '%' AND hidden = 0 ORDER BY timestamp DESC LIMIT 20
"""
PAGES = "SELECT sum(pgsize) FROM dbstat WHERE name LIKE 'messages_fts%' OR name LIKE '%fts5\\_%' ESCAPE '\\'"
TEXTS = "SELECT sum(length(CAST(content AS BLOB))) FROM messages"


def run(size: Size, _peer: Peer | None) -> Iterator[Row]:
    """Yield the rows of writing, of building, then of every class of queries."""
    yield from _appending(size)
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(folder, "normal")
        store_corpus(store, size.messages_on_disk)
        yield from _building(store, folder, size.messages_on_disk)
        index = _open(store)
        yield from _asking(store, index, folder, size)
        yield from _beside_writers(index, folder, size)
        store.close()
        yield from _in_new_processes(folder)


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
    longest = 0.0
    began = time.perf_counter()
    worked = time.process_time()
    index.catch_up(budget_s=0.0)
    access = store.sqlite_access()
    advance = access.advance

    def timed(*arguments: object, **named: object) -> bool:
        nonlocal longest
        before = time.perf_counter()
        done = advance(*arguments, **named)  # type: ignore[arg-type]  # as they came
        longest = max(longest, time.perf_counter() - before)
        return done

    access.advance = timed  # type: ignore[method-assign]  # looked at, not changed
    while index.catch_up(budget_s=5.0):
        continue
    access.advance = advance  # type: ignore[method-assign]
    yield fact("index: build, per message", (time.perf_counter() - began) / count * 1e6, None, unit="us")
    yield fact(
        "index: build, processor time per message", (time.process_time() - worked) / count * 1e6, None, unit="us"
    )
    yield fact("index: longest step", longest * 1000, None, unit="ms", bounds=Bounds(250, 10), judged="ours")
    plain = viewer(folder)
    (used,), (texts,) = (plain.execute(sql).fetchall()[0] for sql in (PAGES, TEXTS))
    plain.close()
    yield fact("index: bytes per message, beside its text", int(str(used)) / count, int(str(texts)) / count, unit="B")


def _asking(store: SqliteStore, index: Fts5Index, folder: str, size: Size) -> Iterator[Row]:
    plain = viewer(folder)
    for name, queries in QUERIES:
        yield from _class(name, [SearchQuery(text=text) for text in queries], index, plain, size)
    with store.sqlite_access().read() as reader:
        middle = reader.one("SELECT timestamp FROM messages WHERE id >= (SELECT max(id) / 2 FROM messages) LIMIT 1")
    since = int(str(middle[0])) if middle else 0
    for name, query in (
        ("newest first", SearchQuery(text="kwcommon", sort=NEWEST)),
        ("one half of the year", SearchQuery(text="kwcommon", until=since)),
        ("tools only", SearchQuery(text="kwcommon", roles=("tool",))),
        ("20 hits", SearchQuery(text="kwcommon", limit=20)),
    ):
        yield from _class(f"en word common, {name}", [query], index, plain, size)
    plain.close()


def _class(
    name: str, queries: Sequence[SearchQuery], index: Fts5Index, plain: apsw.Connection, size: Size
) -> Iterator[Row]:
    count = len(queries) * (4 if size.is_quick else 10)

    def ours() -> Timing:
        return clocked(lambda number: index.search(queries[number % len(queries)], ALL), count)

    def scan() -> Timing:
        words = [query.text.replace('"', "").split(" OR ")[0] for query in queries]
        return clocked(lambda number: plain.execute(SCAN, (words[number % len(words)],)).fetchall(), len(words))

    seen = alternate(size.slow_rounds, {OURS: ours, RAW: scan})
    yield row(f"search {name}: p50", seen, "p50", unit="ms")
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
        seen = clocked(lambda number: index.search(queries[number % 3], ALL), 20 if size.is_quick else 60)
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    yield fact(f"search beside {WRITERS} writers: p50", seen.p50 / 1000, None, unit="ms")
    yield fact(f"search beside {WRITERS} writers: p99", seen.p99 / 1000, None, unit="ms")


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


def _in_new_processes(folder: str) -> Iterator[Row]:
    """First searches of a process, on an emptied page cache where the system has one, and the memory they take."""
    for name, text in (("zh 2 chars", "鲸鱼"), ("en word", "kwmid"), ("en word in a tenth", "kwtenth")):
        if hasattr(os, "posix_fadvise"):
            yield fact(f"search cold, {name}", _ask(folder, text, "cold")["ms"], None, unit="ms")
        warm = _ask(folder, text, "warm")
        yield fact(f"search in a new process, {name}", warm["ms"], None, unit="ms")
        yield fact(f"memory of a search, {name}", warm["kb"] / 1024, None, unit="MiB")
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
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each row (default: 5)")
    options = parser.parse_args()
    size = Size(options.rounds, options.rounds, options.messages, 1.5, options.rounds < 5)
    print("\n".join(table(list(run(size, None)))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
