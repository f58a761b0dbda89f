"""How good the order of hits is: nDCG on the judged set (``judged/README.md``), in English and Chinese."""

from __future__ import annotations

import tempfile
import tomllib
from math import log2
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.measuring import Bounds, fact
from benchmarks.stage import ALL, open_store, wanted
from hermes_fts5.config import Fts5Config
from hermes_fts5.source import Fts5Source
from hermes_hookspecs.ports.search import NEWEST, RELEVANCE, SearchQuery

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from benchmarks.measuring import Row, Size
    from benchmarks.peer import Peer
    from hermes_core.storage.sqlite.store import SqliteStore
    from hermes_fts5.index import Fts5Index

__all__ = ["Topic", "judged", "ndcg", "run"]

SERIES = ("english", "chinese", "english-fresh", "chinese-fresh")
"""Nothing was chosen by the fresh ones."""
PLACES = 5
DAY_MS = 86_400_000
NOW = 1_795_000_000_000
"""From when ages are counted; what matters is that rows differ in age."""
PLAIN = Fts5Config(recency_weight=0.0, user_weight=1.0, tool_weight=1.0, nearness_weight=0.0)
PUT = "INSERT INTO messages (lineage_no, session_id, role, content, timestamp) VALUES (?, ?, ?, ?, ?)"
NUMBER = "SELECT no FROM lineages WHERE id = ?"


class Topic(NamedTuple):
    """One query with its messages: ``(grade, age in days, role, text)``."""

    query: str
    documents: Sequence[tuple[int, int, str, str]]


def judged(series: str) -> list[Topic]:
    """The topics of a series, in the order of the file."""
    file = Path(__file__).parent / "judged" / f"{series}.toml"
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    return [Topic(each["query"], [tuple(row) for row in each["documents"]]) for each in table["topic"]]


def ndcg(grades: Sequence[int], best: Sequence[int]) -> float:
    """Normalised discounted cumulative gain of the first places.

    :param grades: of the hits in their order. best: all grades there are.
    """

    def gain(ordered: Sequence[int]) -> float:
        return sum((2**grade - 1) / log2(place + 2) for place, grade in enumerate(ordered[:PLACES]))

    return gain(grades) / gain(sorted(best, reverse=True))


def _store(store: SqliteStore, topics: Sequence[Topic]) -> dict[int, tuple[str, int]]:
    """Store every message, oldest first; return query and grade of each by its id."""
    every = sorted(
        ((topic.query, *document) for topic in topics for document in topic.documents), key=lambda one: -one[2]
    )
    access = store.sqlite_access()
    for number, (_, _, age, role, text) in enumerate(every):
        entry = store.apply(wanted(f"j{number}", now=NOW - age * DAY_MS))
        with access.read() as reader:
            (lineage_no,) = reader.one(NUMBER, (entry.lineage_id,)) or (0,)
        row = (lineage_no, entry.session_id, role, text, NOW - age * DAY_MS)
        access.apply(lambda writer, row=row: writer.run(PUT, row))  # type: ignore[misc]  # a default binds the row
    with access.read() as reader:
        ids = [int(str(row[0])) for row in reader.all("SELECT id FROM messages ORDER BY id")]
    return {message_id: (one[0], one[1]) for message_id, one in zip(ids, every, strict=True)}


def _mean(index: Fts5Index, topics: Sequence[Topic], known: Mapping[int, tuple[str, int]], sort: str) -> float:
    total = 0.0
    for topic in topics:
        found = index.search(SearchQuery(text=_any_of(topic.query), limit=PLACES, sort=sort, budget_s=30.0), ALL)
        grades = [known[hit.message_id][1] if known[hit.message_id][0] == topic.query else 0 for hit in found.hits]
        total += ndcg(grades, [document[0] for document in topic.documents])
    return total / len(topics)


def _any_of(query: str) -> str:
    """The query with OR between its words: with AND most topics would leave nothing to be ordered."""
    return query if '"' in query else " OR ".join(query.split())


def run(_size: Size, _peer: Peer | None) -> Iterator[Row]:
    """Yield one row for each series and way of ordering; more is better."""
    for series in SERIES:
        topics = judged(series)
        with tempfile.TemporaryDirectory() as folder:
            store = open_store(folder, "normal")
            known = _store(store, topics)
            plain, ours = Fts5Source(PLAIN).open(store), Fts5Source(Fts5Config()).open(store)
            while plain.catch_up(budget_s=1.0):
                continue
            exact = _mean(plain, topics, known, RELEVANCE)
            ways = (("as it is", ours, RELEVANCE), ("newest first", ours, NEWEST))
            yield _row(f"nDCG@5 {series}: exact bm25", exact, None)
            for name, index, sort in ways:
                yield _row(f"nDCG@5 {series}: {name}", _mean(index, topics, known, sort), exact)
            store.close()


def _row(name: str, value: float, reference: float | None) -> Row:
    is_ours = name.endswith("as it is")
    bounds = Bounds(0.97, 1.0) if is_ours else Bounds()
    return fact(name, round(value, 4), reference, unit="nDCG", bounds=bounds)._replace(better="higher")
