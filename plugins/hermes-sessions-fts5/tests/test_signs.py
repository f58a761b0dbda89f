"""Punctuation is looked up, too: what is nowhere is known to be nowhere without reading the rows."""

from __future__ import annotations

import pytest

from hermes_fts5 import documents
from hermes_fts5.rows import LiveRows


@pytest.fixture
def no_reading(monkeypatch):
    """Make reading rows one by one a failure."""

    def between(*_, **__):
        raise AssertionError("rows were read one by one")

    monkeypatch.setattr(LiveRows, "between", between)


def _marks(store, mark):
    with store.sqlite_access().read() as reader:
        return [row[0] for row in reader.all("SELECT rowid FROM fts5_marks WHERE fts5_marks MATCH ?", (f'"{mark}"',))]


def test_punctuation_is_found_by_the_index_alone(say, found, caught_up, no_reading):
    _, (arrow, _) = say("one", "f = a => b", "f = a > b")
    _, (wide,) = say("two", "值＝＞数")
    _, (only,) = say("three", "???")
    caught_up()

    assert set(found("=>")) == {arrow, wide}
    assert found("=>>") == []
    assert found("??") == [only]
    assert set(found("=> OR ??", sort="oldest")) == {arrow, wide, only}


def test_words_that_are_many_are_looked_up_by_their_punctuation_that_is_rare(say, found, caught_up, no_reading):
    for number in range(30):
        say(f"c{number}", f"the path is long, {number} times")
    _, (wanted,) = say("wanted", "the $PATHS of old")
    caught_up()

    assert found("$path") == found("$path", sort="newest") == [wanted]
    assert found("$times") == []
    assert found('"the $PATHS"') == [wanted]


def test_a_row_of_very_many_signs_is_found_by_each(say, found, caught_up, no_reading, monkeypatch):
    monkeypatch.setattr(documents, "MOST_SIGNS", 20)
    _, (row,) = say("one", "".join(map(chr, range(0x2500, 0x2600))) + " ==>")
    caught_up()

    assert found("=>") == found("\u2510\u2511") == [row]
    assert found("=<") == []


def test_a_redacted_row_loses_its_marks(store, say, redact, found, caught_up):
    _, (row,) = say("one", "hunter2!!")
    caught_up()
    assert _marks(store, "shunter2") == _marks(store, "p21x21") == [row]

    redact(store, row, " ".join(f"w{number}" for number in range(200)))
    caught_up()

    assert _marks(store, "shunter2") == _marks(store, "p21x21") == []
    assert found("!!") == []


def test_an_index_of_the_first_version_is_filled_anew_and_misses_nothing_meanwhile(
    store, say, open_index, found, caught_up
):
    _, (row,) = say("one", "a => b")
    caught_up()

    def age(writer):
        writer.run("DELETE FROM fts5_marks WHERE rowid = ?", (row,))
        writer.run("UPDATE plugin_schema SET version = 1")

    store.sqlite_access().apply(age)
    index = open_index(store)

    assert found("=>", of=index) == [row]
    caught_up(index)
    assert _marks(store, "p3dx3e") == [row]
    assert found("=>", of=index) == [row]
    assert list(index.verify()) == []


def test_a_row_whose_marks_are_lost_is_told(store, say, index, caught_up):
    _, (row,) = say("one", "a => b")
    caught_up()
    store.sqlite_access().apply(lambda writer: writer.run("DELETE FROM fts5_marks WHERE rowid = ?", (row,)))

    (finding,) = index.verify()

    assert "1 row is not found through the search index" in finding.text
