"""Words that stand together count for more than scattered ones."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_fts5.nearness import PLACES, nearness
from hermes_hookspecs.ports.search import SearchQuery
from hermes_hookspecs.testing.scene import ALL
from hermes_hookspecs.text.folding import fold
from hermes_hookspecs.text.parsing import parse
from hermes_hookspecs.text.query import leaves

SCATTERED = "The oven was repaired on Monday; later, when all of them had left, somebody asked for bread"
TOGETHER = "Later, when all of them had left on Monday, somebody asked for oven bread; it was repaired"


def _near(query, text):
    return nearness(tuple(leaves(parse(query))), fold(text))


@pytest.mark.parametrize(
    ("query", "text", "least", "most"),
    [
        ("oven bread", "oven bread", 0.8, 1.0),
        ("bread oven", "oven bread", 0.8, 1.0),
        ("oven bread", SCATTERED, 0.0, 0.1),
        ("oven bread", "the oven", 0.0, 0.0),
        ("bread", "bread bread", 0.0, 0.0),
        ("oven bread -cake", "oven bread", 0.8, 1.0),
        ("香山 红叶", "周末去香山红叶林", 1.0, 1.0),
        ("香山 红叶", "周末去香山看一看那里的红叶", 0.4, 0.6),
        ("oven bread salt", "oven bread", 0.4, 0.5),
        ("docker部署 失败", "docker部署失败", 1.0, 1.0),
    ],
)
def test_nearness_falls_with_the_distance(query, text, least, most):
    assert least <= _near(query, text) <= most


@given(text=st.text("ab c香", max_size=40), query=st.lists(st.sampled_from(["ab", "c", "香", '"a b"']), max_size=4))
def test_nearness_is_what_comparing_all_places_gives(text, query):
    looked_for = [leaf for part in query for leaf in leaves(parse(part))]
    folded = fold(text)

    gaps = []
    for one, other in pairwise(looked_for):
        pairs = [(a, b) for a in one.needle.spans(folded) for b in other.needle.spans(folded)]
        gaps.append(min((max(b[0] - a[1], a[0] - b[1], 0) for a, b in pairs), default=None))
    expected = sum(0 if gap is None else 1 / (1 + gap / 6) for gap in gaps) / max(len(gaps), 1)

    assert nearness(looked_for, folded) == pytest.approx(expected)


def test_a_text_that_is_full_of_the_words_is_compared_in_part_only():
    text = "a " * (2 * PLACES) + "bread"

    assert _near("a bread", text) == pytest.approx(1 / (1 + (2 * PLACES + 1) / 6))


@pytest.mark.parametrize("waits", [False, True], ids=["indexed", "waiting"])
def test_words_that_stand_together_come_first_however_new_the_others_are(tell, index, caught_up, waits):
    if waits:
        index.catch_up(budget_s=0.0)
    best = tell("old", TOGETHER, at=1)
    for number in range(30):
        tell(f"new{number}", SCATTERED, at=2 + number)
    if not waits:
        caught_up()

    found = index.search(SearchQuery(text="oven bread", limit=3, budget_s=30.0), ALL)

    assert found.hits[0].message_id == best


def test_the_weight_of_nearness_can_be_set(tell, store, open_index, caught_up):
    together, scattered = tell("a", TOGETHER, at=1), tell("b", SCATTERED, at=1 + 3_600_000)
    counting, plain = open_index(store), open_index(store, nearness_weight=0.0)
    caught_up(plain)
    query = SearchQuery(text="oven bread", budget_s=30.0)

    assert [hit.message_id for hit in counting.search(query, ALL).hits] == [together, scattered]
    assert [hit.message_id for hit in plain.search(query, ALL).hits] == [scattered, together]


def test_only_the_best_rows_are_compared_for_nearness(tell, store, open_index, caught_up):
    together = tell("far", "somebody asked for oven bread and so on")
    for number in range(12):
        tell(f"short{number}", f"oven, never mind the bread {number}")
    many, few = open_index(store), open_index(store, near_hits=1)
    caught_up(many)
    query = SearchQuery(text="oven bread", limit=2, budget_s=30.0)

    assert together in [hit.message_id for hit in many.search(query, ALL).hits]
    assert together not in [hit.message_id for hit in few.search(query, ALL).hits]
