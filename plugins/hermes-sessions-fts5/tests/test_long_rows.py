"""Very long rows are indexed part by part, and found like others."""

from __future__ import annotations

import itertools
import random
import time
from itertools import pairwise
from types import SimpleNamespace

import pytest

from hermes_fts5 import rows
from hermes_fts5.documents import OVERLAP, TOKENS_OF_PART, document, message_of
from hermes_fts5.rows import LiveRows
from hermes_hookspecs.operations import Delete
from hermes_hookspecs.ports.search import SearchQuery
from hermes_hookspecs.testing.scene import ALL

WORDS = [f"word{number:05}" for number in range(4 * TOKENS_OF_PART)]
HAN = "".join(chr(0x4E00 + number) for number in range(4 * TOKENS_OF_PART))
LONG = " ".join(WORDS)


def _indexed(store):
    with store.sqlite_access().read() as reader:
        return [row[0] for row in reader.all("SELECT id FROM messages_fts_docsize ORDER BY id")]


@pytest.fixture
def steps(store, monkeypatch):
    """Tokens that each step of indexing puts in."""
    counts = []
    access = store.sqlite_access()
    advance = access.advance

    class Counting:
        def __init__(self, writer):
            self._writer = writer

        def __getattr__(self, name):
            return getattr(self._writer, name)

        def run_many(self, sql, rows):
            if "INTO messages_fts (" in sql:
                counts.append(sum(len(text.split(" ")) for _, text, _ in rows))
            self._writer.run_many(sql, rows)

    monkeypatch.setattr(
        access, "advance", lambda plugin, work, **named: advance(plugin, lambda tx: work(Counting(tx)), **named)
    )
    return counts


@pytest.mark.parametrize("text", [LONG, HAN], ids=["english", "chinese"])
def test_no_step_puts_in_more_than_one_part(store, say, index, caught_up, steps, text):
    index.catch_up(budget_s=0.0)
    _, (row, other) = say("one", text, "and a short one")

    caught_up()

    assert len(steps) > 2
    assert max(steps) <= TOKENS_OF_PART + 50
    assert {message_of(each) for each in _indexed(store)} == {row, other}
    assert list(index.verify()) == []


@pytest.mark.parametrize("text", [LONG, HAN], ids=["english", "chinese"])
def test_so_many_tokens_in_a_row_are_always_in_one_part(text):
    made = document(1, 1, "user", text)
    parts = [each.text.split(" ") for each in (made, *made.rest)]

    assert len(parts) > 2
    assert all(before[-OVERLAP:] == behind[:OVERLAP] for before, behind in pairwise(parts))
    assert [*parts[0], *(token for part in parts[1:] for token in part[OVERLAP:])][-1] == parts[-1][-1]
    assert frozenset().union(made.terms, *(each.terms for each in made.rest)) >= (set(WORDS) if text == LONG else set())


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("sort", ["relevance", "newest", "oldest"])
def test_every_part_of_a_long_row_is_found(say, index, caught_up, found, sort, late):
    chance = random.Random(3)
    if not late:
        index.catch_up(budget_s=0.0)
    _, (latin,) = say("one", LONG)
    _, (han,) = say("two", HAN)
    say("three", "word00001 and nothing else", HAN[3:9])
    caught_up()

    for _ in range(25):
        at = chance.randrange(len(WORDS) - 60)
        length = chance.choice([1, 2, 5, 40])
        assert latin in found('"' + " ".join(WORDS[at : at + length]) + '"', sort=sort)
        place = chance.randrange(len(HAN) - 60)
        assert han in found(HAN[place : place + chance.choice([2, 3, 8, 50])], sort=sort)
    first, last = WORDS[5], WORDS[-5]
    assert found(f"{first} {last}", sort=sort) == [latin]
    assert found(f"{first} {last[1:]}", sort=sort) == [latin]
    assert found(f"{first} -{last}", sort=sort) == []
    assert found(f"{first} nowhere OR {last}", sort=sort) == [latin]
    assert found(f"{last}*", sort=sort) == [latin]
    assert found(f'"{first} {last}"', sort=sort) == []
    assert found(HAN[-10] + " " + HAN[5], sort=sort) == [han]


def test_a_long_row_that_becomes_short_leaves_nothing_behind(store, say, redact, take_back, found, caught_up, index):
    _, (row, other) = say("one", LONG, HAN)
    caught_up()

    redact(store, row, "[redacted]")
    take_back(store, other)
    caught_up()

    assert _indexed(store) == [row]
    assert (found(WORDS[-1]), found(HAN[-9:-3]), found("redacted")) == ([], [], [row])
    assert list(index.verify()) == []


def test_a_long_row_that_becomes_another_one_is_found_by_the_new_text(store, say, redact, found, caught_up, index):
    _, (row,) = say("one", LONG)
    caught_up()

    redact(store, row, LONG.replace("word", "other")[: len(LONG) // 2])
    caught_up()

    assert (found(WORDS[-1]), found("other03000"), found(WORDS[3000])) == ([], [row], [])
    assert list(index.verify()) == []


def test_a_deleted_conversation_takes_the_parts_of_its_rows_along(store, scene, say, found, caught_up, index):
    gone, _ = say("one", LONG, HAN)
    _, (kept,) = say("two", "word00001")
    caught_up()

    scene.run(Delete(lineage_id=gone, now=scene.now))
    caught_up()

    assert _indexed(store) == [kept]
    assert found("word00001") == [kept]
    assert list(index.verify()) == []


def test_a_long_row_is_worth_what_its_best_part_is(say, index, caught_up):
    _, (best,) = say("old", f"{LONG} {'deploy it so: ' * 30}")
    filler = "one of very many things that were said in passing about all kinds of matters "
    for number in range(20):
        say(f"new{number}", f"{filler * 2} deploy {filler}{number}")
    caught_up()

    hits = index.search(SearchQuery(text="deploy", limit=3, budget_s=30.0), ALL).hits

    assert hits[0].message_id == best


def test_a_part_that_the_index_has_lost_is_noticed(store, say, index, caught_up):
    _, (row,) = say("one", LONG)
    caught_up()
    lost = _indexed(store)[-1]
    store.sqlite_access().apply(lambda writer: writer.run("DELETE FROM messages_fts WHERE rowid = ?", (lost,)))

    (finding,) = index.verify()

    assert message_of(lost) == row
    assert "1 row is not found" in finding.text


def test_a_long_row_is_found_by_those_who_may_read_it_and_by_its_role(say, index, caught_up):
    say("one", LONG)
    caught_up()

    for roles, count in ((("user",), 0), (("tool",), 0), (("assistant",), 1)):
        query = SearchQuery(text=WORDS[-1], roles=roles, budget_s=30.0)
        assert len(index.search(query, ALL).hits) == count


def test_long_rows_are_read_few_at_a_time(say, found, monkeypatch):
    lengths = []
    live = LiveRows._live

    def counted(rows, cells, needed=None):
        lengths.append(len(cells))
        return live(rows, cells, needed)

    monkeypatch.setattr(rows, "BYTES_AT_ONCE", 2 * len(LONG))
    monkeypatch.setattr(LiveRows, "_live", counted)
    _, ids = say("one", *[LONG] * 7)

    assert found(WORDS[-1])
    assert found("%%%") == []
    assert sum(lengths) >= len(ids)
    assert max(lengths) <= 2


def test_what_was_found_when_the_time_was_over_is_shown(say, index, monkeypatch):
    for number in range(9):
        say(f"c{number}", LONG)
    began, looks = time.monotonic(), itertools.count()
    monkeypatch.setattr(rows, "BYTES_AT_ONCE", 1)
    monkeypatch.setattr(rows, "time", SimpleNamespace(monotonic=lambda: began + 10 * next(looks)))

    result = index.search(SearchQuery(text=WORDS[-1], limit=10, budget_s=45.0), ALL)

    assert 1 <= len(result.hits) < 9
    assert not result.complete
    assert "45 s were over" in result.note


def test_a_search_leaves_a_row_that_takes_longer_than_its_budget_to_others(
    store, say, open_index, found, caught_up, monkeypatch
):
    monkeypatch.setattr("hermes_fts5.index.BYTES_IN_TIME", 1)
    index = open_index(store, tail_limit=0)
    found("anything", of=index)
    _, (row,) = say("one", LONG)

    assert found(WORDS[-1], of=index) == [row]
    assert _indexed(store) == []
    caught_up(index)
    assert {message_of(each) for each in _indexed(store)} == {row}
