"""The search suite is worth something: each planted fault is caught by the test that is about it."""

from __future__ import annotations

import attrs
import pytest

pytest.importorskip("hermes_core", reason="the mutants are made of the core's scan and its in-memory store")

from hermes_core.search.scan import ScanIndex
from hermes_core.storage.memory import MemoryStore
from hermes_hookspecs.ports.search import NEWEST
from hermes_hookspecs.principal import may_read, operator
from hermes_hookspecs.testing.search import SearchIndexSuite

SUITE = """
import pytest
import planted

class TestMutant(planted.suite):
    @pytest.fixture
    def store(self):
        store = planted.store()
        yield store
        store.close()

    @pytest.fixture
    def open_index(self):
        return planted.mutant
"""


class LimitBeforeAccess(ScanIndex):
    """Looks for the best rows of all, then takes away what the principal may not see."""

    def search(self, query, principal):
        found = super().search(query, operator())
        lineages = {hit.lineage_id: self._store.lineage(hit.lineage_id, operator()) for hit in found.hits}
        allowed = [hit for hit in found.hits if may_read(principal, lineages[hit.lineage_id].owner, None)]
        return attrs.evolve(found, hits=tuple(allowed))


class RolesAfterLimit(ScanIndex):
    def search(self, query, principal):
        found = super().search(attrs.evolve(query, roles=("user", "assistant", "tool", "system")), principal)
        rows = {row.id: row for hit in found.hits for row in self._store.messages(hit.lineage_id, principal)}
        return attrs.evolve(found, hits=tuple(hit for hit in found.hits if rows[hit.message_id].role in query.roles))


class Lagging(ScanIndex):
    """Knows only what it caught up with."""

    seen = 0

    def catch_up(self, *, budget_s):
        summaries = self._store.summaries(operator(), limit=None)
        self.seen = max(self._store.last_messages(one.lineage_id, operator(), count=1)[0].id for one in summaries)
        return 0

    def search(self, query, principal):
        found = super().search(query, principal)
        return attrs.evolve(found, hits=tuple(hit for hit in found.hits if hit.message_id <= self.seen))


class NeverForgets(ScanIndex):
    """Answers the second time what it answered the first time."""

    def __init__(self, store):
        super().__init__(store)
        self._answers = {}

    def search(self, query, principal):
        return self._answers.setdefault(query.text, super().search(query, principal))


class OrderIgnored(ScanIndex):
    def search(self, query, principal):
        return super().search(attrs.evolve(query, sort=NEWEST), principal)


class MistakesSwallowed(ScanIndex):
    def search(self, query, principal):
        try:
            return super().search(query, principal)
        except ValueError:
            return super().search(attrs.evolve(query, text="nothingofthekind"), principal)


class PunctuationDropped(ScanIndex):
    def search(self, query, principal):
        plain = "".join(one if one.isalnum() or one in ' "()*-' else " " for one in query.text)
        return super().search(attrs.evolve(query, text=plain if plain.strip() else query.text), principal)


class TwoCharactersAtLeast(ScanIndex):
    def search(self, query, principal):
        if len(query.text) == 1:
            return attrs.evolve(super().search(query, principal), hits=())
        return super().search(query, principal)


class LiveContextForgotten(ScanIndex):
    def search(self, query, principal):
        return super().search(attrs.evolve(query, exclude=None), principal)


class AncestorsLeftOut(ScanIndex):
    def search(self, query, principal):
        return super().search(attrs.evolve(query, exclude_from=None), principal)


class SnippetsUnmarked(ScanIndex):
    def search(self, query, principal):
        found = super().search(query, principal)
        bare = [attrs.evolve(hit, snippet=hit.snippet.replace("\x02", "").replace("\x03", "")) for hit in found.hits]
        return attrs.evolve(found, hits=tuple(bare))


class NeverInTime(ScanIndex):
    def search(self, query, principal):
        return attrs.evolve(super().search(query, principal), complete=True)


class OpenToAll(ScanIndex):
    def search(self, query, principal):
        return super().search(query, operator())


@pytest.mark.parametrize(
    ("mutant", "test"),
    [
        (LimitBeforeAccess, "test_access_comes_before_the_limit"),
        (RolesAfterLimit, "test_filters_come_before_the_limit"),
        (Lagging, "test_a_row_is_found_in_the_moment_it_is_stored"),
        (NeverForgets, "test_a_deleted_row_is_never_found"),
        (OrderIgnored, "test_newest_and_oldest_go_by_time"),
        (MistakesSwallowed, "test_a_mistake_is_reported"),
        (PunctuationDropped, "test_hits_are_those_of_reading_everything"),
        (TwoCharactersAtLeast, "test_hits_are_those_of_reading_everything"),
        (LiveContextForgotten, "test_what_is_live_for_the_caller_is_left_out"),
        (AncestorsLeftOut, "test_what_is_live_for_the_caller_is_left_out"),
        (SnippetsUnmarked, "test_hits_are_marked_in_a_snippet_of_one_line"),
        (NeverInTime, "test_an_answer_that_had_no_time_is_not_called_complete"),
        (OpenToAll, "test_a_stranger_finds_nothing"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_planted_fault_is_caught(run_suite, mutant, test):
    fates = run_suite(SUITE, only=test, suite=SearchIndexSuite, store=MemoryStore, mutant=mutant)

    assert [name.partition("[")[0] for name in fates.failed] == [test]


def test_the_scan_itself_is_not_caught(run_suite):
    fates = run_suite(SUITE, only="limit", suite=SearchIndexSuite, store=MemoryStore, mutant=ScanIndex)

    assert fates.failed == []
    assert len(fates.passed) >= 3
