"""A damaged, newer or absent index never costs a message, and is put right."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import apsw
import pytest

from hermes_fts5.cleaning import Cleaner
from hermes_fts5.indexer import Indexer
from hermes_hookspecs.errors import StoreFull, StoreRefused
from hermes_hookspecs.operations import Delete
from hermes_hookspecs.ports.search import SearchQuery
from hermes_hookspecs.testing.scene import ALL

DAMAGES = {
    "data": "DELETE FROM messages_fts_data",
    "structure": "UPDATE messages_fts_data SET block = x'00' WHERE id = 10",
    "segments": "DROP TABLE messages_fts_idx",
    "settings": "UPDATE messages_fts_config SET v = 99 WHERE k = 'version'",
    "marks": "DELETE FROM fts5_marks_data",
    "terms": "DROP TABLE fts5_terms",
    "state": "DROP TABLE fts5_state",
    "forgotten state": "DELETE FROM fts5_state",
    "lost words": "DELETE FROM fts5_terms",
    "changed words": "UPDATE fts5_terms SET term = 'x' || id",
    "register": "DELETE FROM plugin_schema",
    "no register": "DROP TABLE plugin_schema",
    "no list of tables": "UPDATE plugin_schema SET tables = '', watermark = 99999999",
}


@pytest.fixture
def damage(path):
    """Return a function that breaks tables behind SQLite's back."""

    def damage(sql):
        breaker = apsw.Connection(str(path))
        breaker.set_busy_timeout(5000)
        breaker.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
        breaker.execute(sql)
        breaker.close()

    return damage


def _search(index, text):
    return index.search(SearchQuery(text=text, limit=100, budget_s=30.0), ALL)


def _queries(index):
    return [[hit.message_id for hit in _search(index, text).hits] for text in ("needle", "部", "部署", "eedl")]


@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_is_noticed_searched_around_and_mended(
    store, open_store, say, damage, open_index, index, caught_up, kind
):
    """B11, B12 · NousResearch/hermes-agent#33865, #97794."""
    _, (row,) = say("one", "the needle 部署")
    caught_up()
    right = _queries(index)

    damage(DAMAGES[kind])
    _, (later,) = say("two", "stored all the same")
    next_program = open_store()
    fresh = open_index(next_program)
    around = _queries(fresh)
    fresh_found = _search(fresh, "stored").hits[0].message_id
    caught_up(fresh)

    assert right == around == _queries(fresh) == [[row]] * 4
    assert fresh_found == later
    assert list(fresh.verify()) == []
    assert next_program.integrity() == []


def test_a_search_says_that_the_index_is_damaged(store, say, damage, index, caught_up):
    say("one", "needle")
    caught_up()
    damage(DAMAGES["data"])

    found = _search(index, "needle")

    assert "damaged" in found.note
    assert len(found.hits) == 1
    caught_up()
    assert _search(index, "needle").note == ""


def test_the_examination_tells_damage_of_the_index_from_that_of_the_messages(say, damage, index, caught_up):
    say("one", "needle")
    caught_up()
    damage(DAMAGES["data"])

    (finding,) = index.verify()

    assert "index is damaged, messages are not" in finding.text
    assert finding.fixable
    assert index.rebuild() > 0
    assert list(index.verify()) == []


def test_rows_that_the_index_has_lost_are_counted(store, say, index, caught_up):
    _, rows = say("one", "needle", "other")
    caught_up()
    store.sqlite_access().apply(lambda writer: writer.run("DELETE FROM messages_fts WHERE rowid = ?", (rows[0],)))

    (finding,) = index.verify()

    assert finding.text.startswith("1 row is not found")


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("DELETE FROM fts5_terms WHERE term = 'needle'", "damaged"),
        ("UPDATE fts5_terms SET term = 'noodle' WHERE term = 'needle'", "damaged"),
        ("DELETE FROM fts5_state", "does not know how far it is"),
        ("UPDATE fts5_state SET value = 1 WHERE name = 'damaged'", "marked as damaged"),
        ("UPDATE plugin_schema SET watermark = 99999999", "does not know how far it is"),
    ],
)
def test_the_examination_finds_what_would_hide_rows(say, damage, index, caught_up, sql, said):
    """It once called an index sound that had lost words, and rows that hold them as a part were not found."""
    say("one", "needle", "other")
    caught_up()
    damage(sql)

    (finding,) = index.verify()

    assert said in finding.text
    assert index.rebuild() > 0
    assert list(index.verify()) == []
    assert len(_search(index, "eedl").hits) == 1


def test_words_that_were_never_listed_are_counted(say, damage, index, caught_up):
    say("one", "needle", "other")
    caught_up()
    damage("INSERT INTO messages_fts_trigram (messages_fts_trigram) VALUES ('delete-all')")
    damage("DELETE FROM fts5_terms")

    (finding,) = index.verify()

    assert finding.text.startswith("2 words are missing")


def test_rows_that_are_gone_but_indexed_are_counted(store, say, index, caught_up):
    say("one", "needle")
    caught_up()
    put = "INSERT INTO messages_fts (rowid, text, place) VALUES (9999, 'needle', 'l1')"
    store.sqlite_access().apply(lambda writer: writer.run(put))

    (finding,) = index.verify()

    assert "gone or hidden" in finding.text
    assert [hit.message_id for hit in _search(index, "needle").hits] != [9999]


def test_an_interrupted_rebuild_is_gone_on_with(store, say, open_index, index):
    say("one", *(f"needle {number}" for number in range(500)))

    index.catch_up(budget_s=0.0)
    with store.sqlite_access().read() as reader:
        assert reader.one("SELECT value FROM fts5_state WHERE name = 'backfill'")[0] > 0
    told = []
    rows = open_index(store).rebuild(progress=lambda done, total: told.append((done, total)))

    assert rows == 500
    assert told[-1] == (rows, rows)


def test_a_newer_index_is_refused_and_not_touched(store, say, open_index, index, caught_up):
    say("one", "needle")
    caught_up()
    access = store.sqlite_access()
    access.apply(lambda writer: writer.run("UPDATE plugin_schema SET version = 99"))

    with pytest.raises(StoreRefused, match="version 99, this plugin knows 2"):
        open_index(store)

    assert access.version("fts5") == 99


def test_without_the_plugin_the_store_works_and_its_tables_can_go(store, scene, say, open_index, index, caught_up):
    lineage_id, _ = say("one", "needle")
    caught_up()

    store.sqlite_access().drop("fts5")
    say("two", "needle")
    scene.run(Delete(lineage_id=lineage_id, now=scene.now))

    assert [one.preview for one in store.summaries(ALL)] == [""]
    assert len(_search(open_index(store), "needle").hits) == 1


@pytest.mark.parametrize(("days", "is_gone"), [(0, False), (2, True)])
def test_words_that_were_removed_are_gone_for_good_a_day_later(store, say, redact, index, caught_up, days, is_gone):
    _, rows = say("one", "password hunterzwei", *(f"common words {number}" for number in range(50)))
    caught_up()
    redact(store, rows[0], "password [redacted]")
    caught_up()
    access = store.sqlite_access()
    cleaner = Cleaner(access, Indexer(access), clock=lambda: time.time() + days * 86_400)

    while cleaner.clean(time.monotonic() + 10):
        continue

    with store.sqlite_access().read() as reader:
        blocks = b"".join(row[0] for row in reader.all("SELECT block FROM messages_fts_data"))
        terms = {row[0] for row in reader.all("SELECT term FROM fts5_terms")}
        state = dict(reader.all("SELECT name, value FROM fts5_state"))
    assert state.get("cleaning", 0) == 0
    assert (b"hunterzwei" not in blocks, "hunterzwei" not in terms) == (is_gone, is_gone)
    assert {"password", "redacted", "common"} <= terms
    assert [hit.message_id for hit in _search(index, "ommo").hits] != []


def test_with_a_full_disk_a_search_goes_on_with_the_index_as_it_is(store, say, open_index, index, caught_up):
    say("one", "needle 部署")
    caught_up()
    _, rows = say("two", *(f"needle {number} " + "filling " * 100 for number in range(300)))
    impatient = open_index(store, tail_limit=0)
    access = store.sqlite_access()
    pages = access.apply(lambda writer: writer.one("PRAGMA page_count"))[0]
    access.apply(lambda writer: writer.all(f"PRAGMA max_page_count = {pages}"))
    with pytest.raises(StoreFull):
        access.apply(lambda writer: writer.run("INSERT INTO fts5_terms (term) VALUES (hex(zeroblob(9000000)))"))

    found = _search(impatient, "needle")

    assert len(found.hits) == 2
    assert found.note == ""
    assert [hit.message_id for hit in _search(impatient, '"needle 299"').hits] == [rows[-1]]
    access.apply(lambda writer: writer.all("PRAGMA max_page_count = 1000000"))
    caught_up()
    assert list(index.verify()) == []


def test_the_status_says_what_there_is(store, say, index, caught_up):
    before = dict(index.status())
    say("one", "needle 部署")
    caught_up()
    say("two", "more")

    after = dict(index.status())

    assert "not made yet" in before["index"]
    assert after["index"] == "fts5, version 2"
    assert after["state"] == "complete"
    assert after["rows"] == 1
    assert after["changes waiting"] > 0


REBUILDING = """
import sys
from hermes_core.storage.sqlite.backend import SqliteBackend
from hermes_fts5.config import Fts5Config
from hermes_fts5.source import Fts5Source
from hermes_hookspecs.ports.store import StoreOptions

index = Fts5Source(Fts5Config()).open(SqliteBackend().open(StoreOptions(path=sys.argv[1], durability="normal")))
for _ in range(5):
    index.rebuild()
"""


def test_a_rebuild_by_another_process_is_no_damage(path, say, index, found, caught_up, caplog):
    for number in range(20):
        say(f"c{number}", f"needle {number}", "鲸鱼座")
    caught_up()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    rebuilding = subprocess.Popen([sys.executable, "-c", REBUILDING, str(path)], env=environment)

    searches = 0
    while rebuilding.poll() is None:
        searches += 1
        assert len(found("needle")) == len(found("鱼座", sort="newest")) == 20
        index.catch_up(budget_s=0.01)

    assert rebuilding.returncode == 0
    assert searches
    assert "damaged" not in caplog.text
    caught_up()
    assert list(index.verify()) == []


def test_who_died_over_dropping_the_index_is_replaced_after_a_while(say, damage, index, found, caught_up, monkeypatch):
    _, (row,) = say("one", "needle")
    caught_up()
    damage("PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'messages_fts'")
    damage("PRAGMA schema_version = 9999")

    result = _search(index, "needle")

    assert [hit.message_id for hit in result.hits] == [row]
    assert "is being made anew" in result.note
    assert "damaged" not in result.note
    assert index.catch_up(budget_s=1.0) == 0
    monkeypatch.setattr("hermes_fts5.index.PATIENCE_S", 0.0)
    assert "damaged" in _search(index, "needle").note
    caught_up()
    assert list(index.verify()) == []
    assert found("needle") == [row]
