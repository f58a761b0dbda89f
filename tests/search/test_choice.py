"""Which index answers, and that its failure costs time, never an answer or a message."""

from __future__ import annotations

from threading import Barrier, Thread

import pytest

from hermes_core.search.choice import choose_index
from hermes_core.search.desk import SearchDesk
from hermes_core.search.scan import ScanIndex
from hermes_hookspecs.errors import StoreBusy, StoreFull, StoreOutcomeUnknown, StoreRefused, StoreStopped
from hermes_hookspecs.ports.search import SearchQuery
from hermes_hookspecs.testing.scene import ALL, KEY, saying
from hermes_hookspecs.text.parsing import QueryError


class Broken(ScanIndex):
    """An index that fails until it is built anew."""

    name = "broken"

    def __init__(self, store):
        super().__init__(store)
        self.sound = False
        self.rebuilt = 0

    def _check(self):
        if not self.sound:
            raise RuntimeError("malformed\nindex \x1b[31m")

    def search(self, query, principal):
        self._check()
        return super().search(query, principal)

    def catch_up(self, *, budget_s):
        self._check()
        return 0

    def rebuild(self, *, progress=None):
        self.rebuilt += 1
        self.sound = True
        return 7

    def verify(self):
        self._check()
        return ()

    def status(self):
        self._check()
        return (("index", "fine"),)


class Source:
    def __init__(self, name="toy", backends=(), opened=ScanIndex):
        self.name, self.backends, self._opened = name, backends, opened

    def open(self, store):
        return self._opened(store)


def refuse(store):
    raise StoreRefused("this index is of a newer program")


def test_without_a_source_search_scans_and_says_so(store, scene):
    scene.talk(scene.enter(), "the needle")

    index, notices = choose_index(store, [])
    found = index.search(SearchQuery(text="needle"), ALL)

    assert notices == []
    assert len(found.hits) == 1
    assert "without an index" in found.note
    assert dict(index.status())["index"].startswith("none")


def test_the_first_source_that_works_on_the_store_is_taken(store):
    sources = [Source("other", ("elsewhere",)), Source("refusing", (), refuse), Source("mine", (store.name,), Broken)]

    index, notices = choose_index(store, sources)

    assert index.name == "broken"
    assert len(notices) == 1
    assert notices[0].endswith(
        "'refusing' cannot be used, so that rows are read one by one: this index is of a newer program"
    )


def test_an_index_that_fails_costs_a_notice_and_is_built_anew(store, scene, caplog):
    scene.talk(scene.enter(), "the needle")
    index, _notices = choose_index(store, [Source(opened=Broken)])

    failed = index.search(SearchQuery(text="needle"), ALL)
    state = dict(index.status())
    (finding,) = index.verify()
    left = index.catch_up(budget_s=1.0)
    after = index.search(SearchQuery(text="needle"), ALL)

    assert len(failed.hits) == len(after.hits) == 1
    assert "'broken' failed (RuntimeError: malformed index" in failed.note
    assert "row by row" in failed.note
    assert "malformed" in state["failure"]
    assert (finding.severity, finding.fixable) == ("error", True)
    assert left == 0
    assert "failed" not in after.note
    assert "failure" not in dict(index.status())
    assert "broken" in caplog.text


@pytest.mark.parametrize("trouble", [StoreBusy, StoreFull, StoreOutcomeUnknown, StoreStopped])
def test_trouble_of_the_store_is_no_reason_to_build_the_index_anew(store, scene, trouble):
    """With the disk full, a sound index was dropped, and could not be made again."""
    scene.talk(scene.enter(), "the needle")

    class Troubled(Broken):
        def _check(self):
            raise trouble("no space left")

    opened = []
    index, _notices = choose_index(store, [Source(opened=lambda store: opened.append(Troubled(store)) or opened[0])])

    found = index.search(SearchQuery(text="needle"), ALL)

    assert len(found.hits) == 1
    assert "no space left" in found.note
    assert "rebuild" not in found.note
    assert index.catch_up(budget_s=1.0) == 0
    assert opened[0].rebuilt == 0


def test_messages_are_stored_while_the_index_fails(store, scene):
    index, _notices = choose_index(store, [Source(opened=Broken)])
    entry = scene.enter()

    index.search(SearchQuery(text="x"), ALL)
    scene.talk(entry, "the needle")

    assert len(index.search(SearchQuery(text="needle"), ALL).hits) == 1


def test_a_mistake_of_the_query_is_no_failure_of_the_index(store):
    index, _notices = choose_index(store, [Source()])

    with pytest.raises(QueryError):
        index.search(SearchQuery(text='"open'), ALL)

    assert "failure" not in dict(index.status())


def test_a_scan_that_has_no_time_says_how_far_it_came(store, scene):
    for number in range(3):
        scene.talk(scene.enter(key=KEY + str(number)), "the needle")
    ticks = iter(range(100))
    index = ScanIndex(store, monotonic=lambda: float(next(ticks)))

    found = index.search(SearchQuery(text="needle", budget_s=3.0), ALL)

    assert not found.complete
    assert "3 s were over after 2 of 3 conversations" in found.note
    assert len(found.hits) == 2


def test_a_scan_shows_what_it_found_of_the_conversation_in_which_its_time_was_over(store, scene):
    """It dropped that; where all there is is one long conversation it showed nothing."""
    begun = scene.ask(scene.enter(), "hello")
    rows = scene.append(begun, saying("the needle"), *(saying("long " * 20_000) for _ in range(20)))
    ticks = iter(range(100))
    index = ScanIndex(store, monotonic=lambda: float(next(ticks)))

    found = index.search(SearchQuery(text="needle", budget_s=5.0), ALL)

    assert [hit.message_id for hit in found.hits] == [rows[0]]
    assert not found.complete
    assert next(ticks) == 6


def test_a_scan_reads_few_of_very_long_rows_at_a_time(store, scene, monkeypatch):
    begun = scene.ask(scene.enter(), "hello")
    scene.append(begun, *(saying("long " * 20_000) for _ in range(200)))
    limits = []
    messages = store.messages
    monkeypatch.setattr(
        store, "messages", lambda *a, limit, **k: limits.append(limit) or messages(*a, limit=limit, **k)
    )

    found = ScanIndex(store).search(SearchQuery(text="needle", budget_s=60.0), ALL)

    assert found.complete
    assert limits[1] == 10
    assert max(limits) == 50


def test_the_index_is_opened_once_whoever_comes_first(store):
    opened, told = [], []
    barrier = Barrier(4)

    def open_index(store):
        opened.append(store)
        return ScanIndex(store)

    desk = SearchDesk(lambda: store, lambda: [Source("bad", (), refuse), Source(opened=open_index)], told.append)

    def ask():
        barrier.wait(10)
        desk.session_search("x")

    threads = [Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)

    assert len(opened) == len(told) == 1
