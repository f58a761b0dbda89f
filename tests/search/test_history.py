"""What an agent finds of the past."""

from __future__ import annotations

import pytest

from hermes_core.search.history import SearchingHistory, as_words
from hermes_core.search.scan import ScanIndex
from hermes_hookspecs.principal import principal_of
from hermes_hookspecs.testing.scene import ALL, key_of, source_at


def history(store, principal, lineage_id):
    return SearchingHistory(store, lambda: ScanIndex(store), principal, lineage_id)


def test_other_conversations_of_the_principal_are_found_and_its_own_is_not(store, scene):
    mine, other, foreign = (
        scene.enter(key_of(chat), source_at(chat, user))
        for chat, user in (("mine", "ou_1"), ("other", "ou_1"), ("foreign", "ou_2"))
    )
    for entry in (mine, other, foreign):
        scene.talk(entry, "the database 数据库", "a database")
    me = principal_of(source_at("mine"), shared=False)

    found = history(store, me, mine.lineage_id).search("库")

    assert [(summary.lineage_id, row.content) for summary, row in found] == [(other.lineage_id, "the database 数据库")]
    assert len(history(store, ALL, mine.lineage_id).search("database")) == 2
    assert [one.lineage_id for one in history(store, me, mine.lineage_id).recent()] == [other.lineage_id]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("alpha OR beta", "alpha OR beta"),
        ('what about "this', "what about  this".replace("  ", " ")),
        ("-v NOT", "v not"),
        ("NOT me", "not me"),
        (" ", ""),
        ('"( -', ""),
        ("x" * 10_000, "x" * 4096),
        ("w " * 100, ("w " * 64).strip()),
    ],
)
def test_a_text_that_is_no_query_is_looked_for_by_its_words(text, query):
    assert as_words(text) == query


def test_nothing_is_found_for_nothing(store, scene):
    entry = scene.enter()

    assert history(store, ALL, entry.lineage_id).search("  ") == ()
