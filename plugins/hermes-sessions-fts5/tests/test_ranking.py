"""In which order rows come, how much is looked at, and what is said about it."""

from __future__ import annotations

import pytest

from hermes_hookspecs.messages import USER
from hermes_hookspecs.ports.search import SearchQuery
from hermes_hookspecs.principal import principal_of
from hermes_hookspecs.testing.scene import ALL, Scene, source_at

DAY_MS = 86_400_000


def _ask(index, text, **fields):
    return index.search(SearchQuery(**({"text": text, "limit": 5, "budget_s": 30.0} | fields)), ALL)


def _ids(found):
    return [hit.message_id for hit in found.hits]


def test_whole_words_come_before_parts_of_words(tell, index, caught_up):
    part = tell("a", "redeployment redeployment redeployment")
    whole = tell("b", "we will deploy it some day, once all of the others have had a look at the plan")
    caught_up()

    assert _ids(_ask(index, "deploy")) == [whole, part]


@pytest.mark.parametrize("settings", [{}, {"exact_hits": 0, "newest_hits": 50}], ids=["exact", "bounded"])
@pytest.mark.parametrize("word", ["deploy", "部署"])
def test_an_old_clearly_better_match_is_not_buried(tell, say, store, open_index, caught_up, settings, word):
    best = tell("old", f"{word} {word} {word} {word}: how to")
    filler = "one of very many things that were said in passing about all kinds of matters "
    for chat in range(8):
        say(f"new{chat}", *(f"{filler * 2} {word} {filler}{number}" for number in range(60)))
    index = open_index(store, **settings)
    caught_up(index)

    found = _ask(index, word)

    assert _ids(found)[0] == best
    assert ("very many rows match" in found.note) == bool(settings)


def test_of_equal_rows_the_newer_comes_first_and_a_person_before_an_agent(tell, store, open_index, caught_up):
    now = 1_900_000_000_000
    old = tell("a", "the plan of the garden", at=now - 400 * DAY_MS)
    new = tell("b", "the plan of the garden", at=now)
    asked = tell("c", "the plan of the garden", role=USER, at=now)
    index = open_index(store, user_weight=1.1)
    caught_up(index)

    assert _ids(_ask(index, "garden plan")) == [asked, new, old]


def test_weights_can_be_set(tell, store, open_index, caught_up):
    old = tell("a", "the garden plan, the garden", at=1)
    new = tell("b", "the garden plan, the bench, and more", at=4_000_000_000_000)
    timeless, hasty = open_index(store, recency_weight=0.0), open_index(store, recency_weight=4.0)
    caught_up(timeless)

    assert _ids(_ask(timeless, "garden")) == [old, new]
    assert _ids(_ask(hasty, "garden")) == [new, old]


@pytest.mark.parametrize("sort", ["newest", "oldest"])
def test_time_decides_even_where_rows_were_stored_out_of_order(tell, index, caught_up, sort):
    times = [5, 900, 3, 700, 800, 1, 650]
    rows = {at: tell(f"c{at}", "needle", at=at) for at in times}
    caught_up()

    ordered = sorted(times, reverse=sort == "newest")
    assert _ids(_ask(index, "needle", sort=sort, limit=3)) == [rows[at] for at in ordered[:3]]


def test_rows_that_wait_are_ranked_with_those_that_are_indexed(tell, index, caught_up):
    weak = tell("a", "needle " + "and a great many other words that have nothing to do with it " * 4)
    caught_up()
    strong = tell("b", "needle needle")

    assert _ids(_ask(index, "needle")) == [strong, weak]


def test_access_holds_however_many_rows_match(tell, say, scene, store, open_index, caught_up):
    mine = tell("mine", "secret plan 密")
    say("others", *(f"secret plan 密 {number}" for number in range(300)), user="ou_2")
    index = open_index(store, exact_hits=10, newest_hits=10)
    caught_up(index)
    me = principal_of(source_at("mine"), shared=False)

    for text in ("secret", "plan", "ecre", "密"):
        for sort in ("relevance", "newest", "oldest"):
            found = index.search(SearchQuery(text=text, limit=5, sort=sort, budget_s=30.0), me)
            assert _ids(found) == [mine], (text, sort)


def test_a_search_without_time_says_that_it_is_incomplete(say, index, caught_up):
    say("a", *(f"needle =>> {number}" for number in range(20)))
    caught_up()

    found = _ask(index, "=>>", budget_s=0.0)

    assert not found.complete
    assert "before everything was looked at" in found.note


def test_much_that_waits_is_indexed_by_the_search_itself(store, say, open_index, caught_up):
    index = open_index(store, tail_limit=10)
    _ask(index, "anything")
    say("a", *(f"needle {number}" for number in range(100)))

    assert len(_ask(index, "needle", budget_s=60.0).hits) == 1

    assert dict(index.status())["changes waiting"] <= 10


def test_the_same_words_in_two_stores_do_not_meet(tmp_path, open_store, open_index, say, index, caught_up):
    """NousResearch/hermes-agent#106761."""
    say("a", "needle")
    caught_up()
    other = open_store(tmp_path / "other.db")
    Scene(other).enter()

    assert _ids(_ask(open_index(other), "needle")) == []


@pytest.mark.parametrize("sort", ["relevance", "newest", "oldest"])
def test_a_part_of_very_many_words_is_found_without_looking_each_up(say, index, caught_up, found, sort):
    rows = [say(f"c{at}", f"xabcx{at:03}y is a word of its own")[1][0] for at in range(260)]
    caught_up()

    assert len(found("abcx", sort=sort)) == 100
    assert found("abcx 007y", sort=sort) == [rows[7]]
    assert _ids(_ask(index, "abcx", sort=sort, limit=1)) == [rows[0] if sort == "oldest" else rows[-1]]
    assert found("abcz OR 113y", sort=sort) == [rows[113]]


def test_the_first_search_indexes_a_small_store_by_itself(say, index, found):
    _, (row,) = say("a", "needle 部署")

    assert found("needle") == [row]

    assert dict(index.status())["state"] == "complete"
    assert _ask(index, "部署").note == ""
