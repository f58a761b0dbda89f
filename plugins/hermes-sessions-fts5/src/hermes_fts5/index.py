"""The search index of one store: what the core and an agent's search hold."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from hermes_fts5.cleaning import Cleaner
from hermes_fts5.documents import PARTS_FROM
from hermes_fts5.finding import Finder
from hermes_fts5.health import Damaged, examine, guarding, is_being_dropped, probe
from hermes_fts5.indexer import Indexer, waiting
from hermes_fts5.rows import LiveRows
from hermes_fts5.schema import NAME, STEPS
from hermes_fts5.steps import number, setting, state
from hermes_fts5.titles import lift_titles
from hermes_hookspecs.errors import StoreBusy, StoreFull, StoreRefused, StoreStopped
from hermes_hookspecs.ports.search import SORTS, SearchHit, SearchResult
from hermes_hookspecs.text.parsing import parse
from hermes_hookspecs.text.snippets import snippet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_fts5.config import Fts5Config
    from hermes_hookspecs.ports.care import Finding
    from hermes_hookspecs.ports.search import SearchQuery
    from hermes_hookspecs.ports.sqlite import SqliteAccess
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.text.query import Node

__all__ = ["Fts5Index"]

SHARE_OF_BUDGET = 0.15
"""What a search spends on indexing first, at most, where much waits and nobody else does it."""
S_OF_WAITING = 4e-6
"""What a row that waits costs a search: it spends as much again on indexing, so that the next one reads less."""
BYTES_IN_TIME = 700_000
"""A longer row, for each second of the budget, is not begun by a search: its parts go in one after the other."""
STEP_S = 0.25
COUNT_INDEXED = f"SELECT count(*) FROM messages_fts_docsize WHERE id < {PARTS_FROM}"  # noqa: S608 - a constant
COUNT_TERMS = "SELECT count(*) FROM fts5_terms"
COUNT_ROWS = "SELECT count(*) FROM messages WHERE hidden = 0"
BOUNDED = "very many rows match: the newest of them and those that are full of it were compared"
SCANNED = "the index {was_damaged}is being made anew; rows were read one by one"
SHAPE = "SELECT schema_version FROM pragma_schema_version"
MOST_TRIES = 20
"""Of somebody who finds the index exchanged by others again and again."""
PAUSE_S = 0.005
PATIENCE_S = 10.0
"""Who drops an index takes milliseconds for it; after this he has died over it."""


class Fts5Index:
    """Full-text search over one store (:class:`~hermes_hookspecs.ports.search.SearchIndex`). Thread-safe.

    The tables are made by the first call that finds none. Damage is noticed where it shows and marked; until the index
    is made anew, in the background by :meth:`catch_up`, rows are read one by one. What somebody else exchanges or drops
    meanwhile is no damage.

    :param store: the open store. access: its tables. config: weights and limits.
    :raises StoreRefused: the index is of a newer version; nothing was touched.
    """

    name: str = NAME

    def __init__(self, store: Store, access: SqliteAccess, config: Fts5Config) -> None:
        self._store = store
        self._access = access
        self._config = config
        self._indexer = Indexer(access)
        self._cleaner = Cleaner(access, self._indexer)
        self._rebuilding = threading.Lock()
        self._is_probed = False
        self._is_made = False
        found = access.version(NAME)
        if found > len(STEPS):
            raise StoreRefused(
                f"it is of version {found}, this plugin knows {len(STEPS)}, and it was not touched. Install the newer "
                "hermes-sessions-fts5 again; or, while no other program has the store open, let `hermes search index "
                f"drop {NAME}` delete it, and it is made anew"
            )
        self._is_damaged = False
        self._half_gone_since: float | None = None

    # --- searching

    def search(self, query: SearchQuery, principal: Principal) -> SearchResult:
        """Return the best row of each lineage that the principal may see."""
        parsed = parse(query.text)
        if query.sort not in SORTS:
            raise ValueError(f"results are sorted by {', '.join(SORTS)}, not {query.sort!r}")
        began = time.monotonic()
        is_fresh = False
        for _ in range(0 if self._is_damaged else MOST_TRIES):
            shape = self._shape()
            try:
                with guarding():
                    return self._find(query, principal, parsed, began, self._prepare(query))
            except Damaged:
                if self._is_being_dropped():
                    break
                if is_fresh and self._shape() == shape:
                    self._mark_damaged()
                    break
                # It may have been exchanged for a new one while it was read, or since the last search.
                self._is_made = self._is_probed = False
                is_fresh = True
        return self._find(query, principal, parsed, began, None)

    def _shape(self) -> int:
        """Return a number that differs when anybody has made or dropped tables."""
        with self._access.read() as reader:
            return number(reader, SHAPE)

    def _is_being_dropped(self) -> bool:
        """Whether the index is being made anew by somebody else, as far as can be seen."""
        with self._access.read() as reader:
            is_half_gone = is_being_dropped(reader)
        now = time.monotonic()
        self._half_gone_since = (self._half_gone_since or now) if is_half_gone else None
        return is_half_gone and now - (self._half_gone_since or now) < PATIENCE_S

    def _prepare(self, query: SearchQuery) -> int:
        """Make the tables, look once whether they answer, and index some if much waits; return the watermark.

        It is read before the rows are: what is indexed meanwhile is looked at twice, never missed.

        :raises Damaged: the tables do not answer as they should.
        """
        watermark = self._access.watermark(NAME) if self._is_made else 0
        if not watermark:
            # Not made yet, or dropped by somebody who took the plugin for gone.
            self._indexer.open()
            self._is_made = True
            watermark = self._access.watermark(NAME)
        with self._access.read() as reader:
            if state(reader, "damaged") or not (self._is_probed or probe(reader, watermark)):
                raise Damaged("the index does not find what it holds")
            lag = waiting(reader, watermark)
            is_unfinished = state(reader, "backfill") > 0
        self._is_probed = True
        if is_unfinished or lag > self._config.tail_limit:
            # What cannot be taken in now, with a full disk or a busy writer, is read.
            share_s = query.budget_s * SHARE_OF_BUDGET
            with suppress(StoreBusy, StoreFull):
                own_s = share_s if is_unfinished else min(share_s, lag * S_OF_WAITING)
                self._indexer.catch_up(own_s, most_bytes=query.budget_s * BYTES_IN_TIME)
            return self._access.watermark(NAME)
        return watermark

    def _find(
        self, query: SearchQuery, principal: Principal, parsed: Node, began: float, watermark: int | None
    ) -> SearchResult:
        """Search; without a watermark by reading every row."""
        indexed = watermark is not None
        left_s = max(0.01, query.budget_s - (time.monotonic() - began))
        with self._access.read(budget_s=left_s) as reader:
            now = time.time_ns() // 1_000_000
            until = began + query.budget_s
            rows = LiveRows(reader, self._access, query, principal, until=until)
            finder = Finder(reader, rows, self._config, query, parsed, watermark=watermark, now=now, until=until)
            # Asked before the time may be over.
            backfill = state(reader, "backfill") if indexed else 0
            top = state(reader, "backfill_top") if indexed else 0
            finder.run()
            lift_titles(finder, reader, query, parsed, rows, weight=self._config.title_weight)
        titles = finder.best.titles
        hits = tuple(
            SearchHit(
                lineage_id=row.lineage_id,
                session_id=row.session_id,
                message_id=row.id,
                score=round(score, 6),
                snippet=snippet(titles.get(row.lineage_id, row.text), parsed),
                by_title=row.lineage_id in titles,
            )
            for score, row in finder.best.rows()
        )
        notes: list[str] = []
        if not indexed:
            notes.append(SCANNED.format(was_damaged="was damaged and " if self._is_damaged else ""))
        elif backfill:
            notes.append(
                f"the index is being made ({100 * (top - backfill) // max(top, 1)} %): older rows were read one by one"
            )
        if finder.is_bounded and query.sort == SORTS[0]:
            notes.append(BOUNDED)
        if not finder.is_complete:
            notes.append(f"{query.budget_s:g} s were over before everything was looked at")
        return SearchResult(hits=hits, complete=finder.is_complete, note="; ".join(notes))

    # --- keeping it

    def catch_up(self, *, budget_s: float) -> int:
        """Index what the change feed brought, then what is older; make a damaged index anew. Return what is left."""
        until = time.monotonic() + budget_s
        shape = self._shape()
        try:
            with guarding():
                if not self._is_damaged:
                    self._indexer.open()
                if self._needs_rebuild():
                    self._start_anew()
                    shape = self._shape()
                left = self._indexer.catch_up(until - time.monotonic())
                if not left:
                    self._cleaner.clean(until)
                    self._access.clear_dropped(budget_s=until - time.monotonic())
                return left
        except Damaged:
            if self._is_damaged:
                raise  # the new tables fail like the old ones: it is not the index that is damaged
            if self._is_being_dropped() or self._shape() != shape:
                return 0  # somebody else makes it anew, or has just done so
            self._mark_damaged()
            self._start_anew()
            return self._indexer.catch_up(until - time.monotonic())

    def rebuild(self, *, progress: Callable[[int, int], None] | None = None) -> int:
        """Make the index anew; return how many rows it holds."""
        is_begun = self._access.version(NAME) > 0 and self._is_being_made()
        tried = 0
        while True:
            shape = -1
            try:
                with guarding():
                    if not is_begun:
                        self._start_anew()
                        is_begun = True
                    self._indexer.open()
                    shape = self._shape()
                    return self._made(progress)
            except Damaged:
                # Somebody else may begin anew at the same time: both go on with what the later one has made.
                if self._is_being_dropped():
                    time.sleep(PAUSE_S)
                    continue
                tried += 1
                if tried == MOST_TRIES or self._shape() == shape:
                    raise

    def _made(self, progress: Callable[[int, int], None] | None) -> int:
        while left := self._indexer.catch_up(STEP_S):
            if progress is not None:
                total = self._count(COUNT_ROWS)
                progress(max(0, total - left), total)
        self._merge_all()
        while self._access.clear_dropped(budget_s=STEP_S):
            continue
        done = self._count(COUNT_INDEXED)
        if progress is not None:
            progress(done, done)
        return done

    def _is_being_made(self) -> bool:
        """Whether an earlier rebuild, or the first build, was left unfinished and can be gone on with."""
        try:
            with guarding(), self._access.read() as reader:
                return state(reader, "backfill") > 0 and not state(reader, "damaged")
        except Damaged:
            return False

    def _merge_all(self) -> None:
        """Bring the tables into few segments, in steps; what was removed is gone from the file after it."""
        self._indexer.merge(all_levels=True)
        while self._indexer.merge():
            continue

    def _needs_rebuild(self) -> bool:
        if self._is_damaged:
            return True
        with self._access.read() as reader:
            return state(reader, "damaged") > 0

    def _mark_damaged(self) -> None:
        from logging import getLogger

        getLogger(__name__).warning("the search index of %s is damaged and will be made anew", self._store.location)
        self._is_damaged = True
        try:
            self._access.apply(setting("damaged", 1))
        except (StoreBusy, StoreStopped):
            return
        except Exception:  # noqa: BLE001 - the table of marks may be what is damaged
            return

    def _start_anew(self) -> None:
        with self._rebuilding:
            self._access.drop(NAME)  # what it held is deleted once the new index stands
            self._indexer.open()
            self._is_damaged = False
            self._is_probed = False

    def _count(self, sql: str) -> int:
        with self._access.read() as reader:
            return number(reader, sql)

    # --- telling about it

    def verify(self) -> Sequence[Finding]:
        """Return what is wrong with the index; reads all of it, changes nothing."""
        return examine(self._access)

    def status(self) -> Sequence[tuple[str, str | int]]:
        """Return facts for people."""
        version = self._access.version(NAME)
        if not version:
            return (("index", "fts5, not made yet: the first search or `maintain` makes it"),)
        try:
            with guarding(), self._access.read() as reader:
                backfill, top = state(reader, "backfill"), state(reader, "backfill_top")
                damaged = self._is_damaged or state(reader, "damaged") > 0
                rows, terms = number(reader, COUNT_INDEXED), number(reader, COUNT_TERMS)
                removed = state(reader, "removed")
            left = self._indexer.left() - backfill
        except Damaged as damage:
            return (("index", f"fts5, damaged: {damage}"),)
        share = "complete" if not backfill else f"{100 * (top - backfill) // max(top, 1)} % of the older rows"
        return (
            ("index", f"fts5, version {version}"),
            ("state", "damaged, to be made anew" if damaged else share),
            ("rows", rows),
            ("changes waiting", left),
            ("distinct words", terms),
            ("removed since it was made", removed),
        )
