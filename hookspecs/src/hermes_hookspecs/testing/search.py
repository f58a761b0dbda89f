"""The suite of a search index: every index finds what reading everything finds, for whom it may, at once.

Give it an empty store and what opens the index on it::

    class TestMyIndex(SearchIndexSuite):
        @pytest.fixture
        def store(self, tmp_path): ...

        @pytest.fixture
        def open_index(self):
            return MySource().open
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_hookspecs.operations import Delete
from hermes_hookspecs.ports.search import HIT_END, HIT_START
from hermes_hookspecs.testing.scene import key_of, saying, source_at
from hermes_hookspecs.testing.search_access import AccessTests
from hermes_hookspecs.testing.search_corpus import KNOWN, MISTAKES, QUERIES, TEXTS, expected
from hermes_hookspecs.testing.search_stage import PATIENCE_S, SearchFixtures, ask, catch_up, lineages, say
from hermes_hookspecs.testing.search_titles import TitleTests
from hermes_hookspecs.text.folding import fold
from hermes_hookspecs.text.segments import SHORTEST_PART, segments

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hermes_hookspecs.ids import LineageId, MessageId
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.ports.search import SearchIndex
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["SearchIndexSuite"]

_EXAMPLES = 60


class _TextTests(SearchFixtures):
    """Which texts are found."""

    @pytest.fixture
    def unindexed(self, scene: Scene, index: SearchIndex) -> Mapping[LineageId, str]:
        """Store the corpus, and return its names by lineage; the index was open and was not told."""
        return {say(scene, name, text).lineage_id: name for name, text in TEXTS.items()}

    @pytest.fixture
    def corpus(self, unindexed: Mapping[LineageId, str], index: SearchIndex) -> Mapping[LineageId, str]:
        """Store the corpus, let the index catch up, and return the names by lineage."""
        catch_up(index)
        return unindexed

    def test_hits_are_those_of_reading_everything(self, corpus: Mapping[LineageId, str], index: SearchIndex) -> None:
        assert _differences(corpus, index, (*KNOWN, *QUERIES)) == []

    def test_hits_are_the_same_while_the_index_lags(
        self, unindexed: Mapping[LineageId, str], index: SearchIndex
    ) -> None:
        assert _differences(unindexed, index, (*sorted(KNOWN)[::2], *QUERIES)) == []

    def test_every_part_of_every_text_is_found(self, corpus: Mapping[LineageId, str], index: SearchIndex) -> None:
        by_name = {name: lineage_id for lineage_id, name in corpus.items()}

        @settings(max_examples=_EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        @given(_parts())
        def find(part: tuple[str, str]) -> None:
            name, needle = part
            assert by_name[name] in lineages(ask(index, needle)), f"{needle!r} is in {name} and was not found"

        find()

    def test_an_answer_that_is_complete_says_so(self, corpus: Mapping[LineageId, str], index: SearchIndex) -> None:
        assert all(ask(index, query).complete for query in ("部署", "database", "nothingofthekind"))

    def test_hits_are_marked_in_a_snippet_of_one_line(
        self, corpus: Mapping[LineageId, str], index: SearchIndex
    ) -> None:
        (zh,) = ask(index, "nginx 重启").hits
        (red,) = ask(index, "marked").hits

        assert f"{HIT_START}nginx{HIT_END}服务{HIT_START}重启{HIT_END}" in zh.snippet
        assert red.snippet.count(HIT_START) == red.snippet.count(HIT_END) == 1
        assert f"{HIT_START}marked{HIT_END}" in red.snippet
        assert "\x1b" not in red.snippet

    @pytest.mark.parametrize("query", MISTAKES, ids=[repr(query[:12]) for query in MISTAKES])
    def test_a_mistake_is_reported(self, scene: Scene, index: SearchIndex, query: str) -> None:
        say(scene, "one", "a b c x")

        with pytest.raises(ValueError, match=r"\w+ \w+"):
            ask(index, query)

    def test_a_rebuilt_index_finds_the_same(self, corpus: Mapping[LineageId, str], index: SearchIndex) -> None:
        queries = sorted(KNOWN)[::6]
        before = [set(lineages(ask(index, query))) for query in queries]
        told: list[tuple[int, int]] = []

        index.rebuild(progress=lambda done, total: told.append((done, total)))
        catch_up(index)

        assert [set(lineages(ask(index, query))) for query in queries] == before
        assert list(index.verify()) == []
        assert all(0 <= done <= total for done, total in told)

    def test_a_sound_index_has_no_findings_and_describes_itself(
        self, corpus: Mapping[LineageId, str], index: SearchIndex
    ) -> None:
        assert list(index.verify()) == []
        assert index.name
        assert all(name and value != "" for name, value in index.status())

    def test_history_from_before_the_index_is_found(
        self, scene: Scene, store: Store, open_index: Callable[[Store], SearchIndex]
    ) -> None:
        said = say(scene, "one", "昨天的数据库迁移")

        index = open_index(store)
        at_once = lineages(ask(index, "数据库"))
        catch_up(index)

        assert at_once == lineages(ask(index, "数据库")) == [said.lineage_id]


def _differences(names: Mapping[LineageId, str], index: SearchIndex, queries: Sequence[str]) -> list[str]:
    """Return a line per query whose hits are not those that they should be."""
    wrong: list[str] = []
    for query in queries:
        wanted = KNOWN.get(query, expected(query))
        found = {names[lineage_id] for lineage_id in lineages(ask(index, query))}
        if found != wanted:
            wrong.append(f"{query!r}: missing {sorted(wanted - found)}, too many {sorted(found - wanted)}")
    return wrong


@st.composite
def _parts(draw: st.DrawFn) -> tuple[str, str]:
    """Return a text's name and a part of it: of CJK 1 to 12 characters, of a word at least three."""
    name = draw(st.sampled_from(sorted(TEXTS)))
    folded = fold(TEXTS[name])
    runs = [run for run in segments(folded) if run.gram or run.end - run.start >= SHORTEST_PART]
    if not runs:
        return draw(st.just(("zh-alone", "部署")))
    run = draw(st.sampled_from(runs))
    least = 1 if run.gram else SHORTEST_PART
    start = draw(st.integers(run.start, run.end - least))
    end = draw(st.integers(start + least, min(run.end, start + 12) if run.gram else run.end))
    return name, folded[start:end]


class _LiveTests(SearchFixtures):
    """What is stored is found at once; what is gone is not."""

    def test_a_row_is_found_in_the_moment_it_is_stored(self, scene: Scene, index: SearchIndex) -> None:
        before = say(scene, "one", "first needle")
        catch_up(index)
        entry = scene.enter(key_of("two"), source_at("two"))
        begun = scene.ask(entry, "question")

        (row,) = scene.append(begun, saying("第二根针 needle"))

        assert {hit.message_id for hit in ask(index, "needle").hits} == {before.row, row}
        assert [hit.message_id for hit in ask(index, "根").hits] == [row]

    @pytest.mark.parametrize("late", [False, True])
    def test_a_deleted_row_is_never_found(self, scene: Scene, index: SearchIndex, *, late: bool) -> None:
        gone, kept = say(scene, "one", "needle 针"), say(scene, "two", "needle 针")
        catch_up(index)
        assert len(ask(index, "needle").hits) == 2

        scene.run(Delete(lineage_id=gone.lineage_id, now=scene.now))
        if late:
            catch_up(index)

        assert [lineages(ask(index, query)) for query in ("needle", "针", "eedl")] == [[kept.lineage_id]] * 3
        assert list(index.verify()) == []

    @pytest.mark.parametrize("late", [False, True])
    def test_a_row_that_was_taken_back_is_never_found(
        self,
        store: Store,
        scene: Scene,
        index: SearchIndex,
        hide: Callable[[Store, MessageId], None] | None,
        *,
        late: bool,
    ) -> None:
        if hide is None:
            pytest.skip("this store has no way to take a row back")
        said = say(scene, "one", "needle 部署", answer="other")
        catch_up(index)
        row = scene.rows(said.lineage_id)[1]
        assert row.content == "needle 部署"

        hide(store, row.id)
        if late:
            catch_up(index)

        assert [ask(index, query).hits for query in ("needle", "部署", "部", "eedl")] == [()] * 4

    def test_catching_up_twice_does_nothing_the_second_time(self, scene: Scene, index: SearchIndex) -> None:
        say(scene, "one", "needle")
        catch_up(index)

        assert index.catch_up(budget_s=PATIENCE_S) == 0
        assert len(ask(index, "needle").hits) == 1

    def test_an_answer_that_had_no_time_is_not_called_complete(self, scene: Scene, index: SearchIndex) -> None:
        for number in range(3):
            say(scene, str(number), "needle -> here")

        found = ask(index, "->", budget_s=0.0)

        assert len(found.hits) == 3 or (not found.complete and found.note)


class _OrderTests(SearchFixtures):
    """Which row of a lineage, and in which order."""

    def test_a_conversation_is_one_hit_with_the_ids_of_its_row(self, scene: Scene, index: SearchIndex) -> None:
        entry = scene.enter(key_of("one"), source_at("one"))
        for _turn in range(3):
            scene.talk(entry, "needle", "a needle for an answer")
        catch_up(index)

        (hit,) = ask(index, "needle").hits

        row = _row(scene, entry.lineage_id, hit.message_id)
        assert (hit.lineage_id, hit.session_id) == (entry.lineage_id, entry.session_id)
        assert "needle" in row.content

    @pytest.mark.parametrize("indexed", [False, True])
    def test_newest_and_oldest_go_by_time(self, scene: Scene, index: SearchIndex, *, indexed: bool) -> None:
        times = {"b": 2_000, "a": 1_000, "c": 3_000}
        said = {name: say(scene, name, "needle " * number, at=at) for number, (name, at) in enumerate(times.items(), 1)}
        if indexed:
            catch_up(index)

        newest, oldest = ask(index, "needle", sort="newest"), ask(index, "needle", sort="oldest")

        assert lineages(newest) == [said[name].lineage_id for name in "cba"]
        assert lineages(oldest) == [said[name].lineage_id for name in "abc"]
        assert lineages(ask(index, "needle", sort="oldest", limit=1)) == [said["a"].lineage_id]

    def test_the_newest_row_stands_for_its_conversation(self, scene: Scene, index: SearchIndex) -> None:
        entry = scene.enter(key_of("one"), source_at("one"))
        begun = scene.ask(entry, "question")
        first, last = scene.append(begun, saying("needle needle", at=1_000), saying("some needle", at=2_000))
        catch_up(index)

        assert [hit.message_id for hit in ask(index, "needle", sort="newest").hits] == [last]
        assert [hit.message_id for hit in ask(index, "needle", sort="oldest").hits] == [first]

    def test_an_old_better_match_is_not_lost_behind_newer_ones(self, scene: Scene, index: SearchIndex) -> None:
        old = say(scene, "old", "database migration plan", at=1_000)
        for number in range(30):
            long = f"{'filler words that say nothing ' * 12} database {'and more of them ' * 12} migration {number}"
            say(scene, f"new-{number}", "so", answer=long, at=2_000)
        catch_up(index)

        found = ask(index, "database migration", limit=3)

        assert old.lineage_id in lineages(found)
        assert [hit.score for hit in found.hits] == sorted((hit.score for hit in found.hits), reverse=True)

    def test_an_unknown_order_is_refused(self, scene: Scene, index: SearchIndex) -> None:
        say(scene, "one", "needle")

        with pytest.raises(ValueError, match="sort"):
            ask(index, "needle", sort="sideways")


def _row(scene: Scene, lineage_id: LineageId, message_id: MessageId) -> Message:
    return next(row for row in scene.rows(lineage_id) if row.id == message_id)


class SearchIndexSuite(_TextTests, TitleTests, AccessTests, _LiveTests, _OrderTests):
    """Everything that an index of rows promises (:class:`~hermes_hookspecs.ports.search.SearchIndex`)."""
