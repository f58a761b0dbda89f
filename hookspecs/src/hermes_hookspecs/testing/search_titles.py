"""Titles: searched like texts, for whom they may, and shown by a row of their conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_hookspecs.messages import ASSISTANT, TOOL, USER
from hermes_hookspecs.operations import Rename
from hermes_hookspecs.ports.search import HIT_END, HIT_START
from hermes_hookspecs.principal import principal_of
from hermes_hookspecs.testing.scene import key_of, source_at
from hermes_hookspecs.testing.search_stage import Said, SearchFixtures, ask, catch_up, lineages, say

if TYPE_CHECKING:
    from hermes_hookspecs.ports.search import SearchIndex
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["TitleTests"]


def _name(scene: Scene, said: Said, title: str | None) -> Said:
    """Give a conversation a title."""
    scene.run(Rename(lineage_id=said.lineage_id, title=title, origin="user", now=scene.now))
    return said


class TitleTests(SearchFixtures):
    """Conversations are found by their titles."""

    def test_a_conversation_is_found_by_its_title(self, scene: Scene, index: SearchIndex) -> None:
        titles = ["Garden plan 2026", "周末去香山看红叶", "ＡＢＣ-check", "用docker部署", "古字𠀀在此", "⼭の話"]
        said = {title: _name(scene, say(scene, title, "so"), title) for title in titles}
        say(scene, "other", "nothing of it")
        catch_up(index)

        def found(query: str) -> list[str]:
            return [title for title, one in said.items() if one.lineage_id in lineages(ask(index, query))]

        assert {query: found(query) for query in ("garden", "ard", "PLAN garden", '"plan 2026"')} == {
            query: [titles[0]] for query in ("garden", "ard", "PLAN garden", '"plan 2026"')
        }
        assert (found("红叶"), found("叶"), found("docker 部署"), found("docker部署")) == (
            [titles[1]], [titles[1]], [titles[3]], [titles[3]],
        )  # fmt: skip
        assert (found("abc"), found("abc-check"), found("𠀀"), found("山")) == (
            [titles[2]], [titles[2]], [titles[4]], [titles[1], titles[5]],
        )  # fmt: skip
        assert [found(query) for query in ("garden -plan", "garden 红叶", "ar", '"plan 20"')] == [[]] * 4

    def test_a_title_is_shown_by_the_first_row_or_the_last(self, scene: Scene, index: SearchIndex) -> None:
        said = _name(scene, say(scene, "one", "the first", answer="the last"), "garden plan")
        catch_up(index)

        (hit,) = ask(index, "garden").hits
        (newest,) = ask(index, "garden", sort="newest").hits
        (answered,) = ask(index, "garden", roles=(ASSISTANT,)).hits

        first = scene.rows(said.lineage_id)[0]
        assert (hit.message_id, hit.session_id, hit.by_title) == (first.id, first.session_id, True)
        assert hit.snippet == f"{HIT_START}garden{HIT_END} plan"
        assert (newest.message_id, answered.message_id) == (said.rows[1], said.rows[1])

    @pytest.mark.parametrize("indexed", [False, True])
    @pytest.mark.parametrize("sort", ["relevance", "newest", "oldest"])
    def test_a_row_that_matches_is_shown_rather_than_the_title(
        self, scene: Scene, index: SearchIndex, sort: str, *, indexed: bool
    ) -> None:
        said = _name(scene, say(scene, "one", "so", answer="the garden is green"), "garden plan")
        for number in range(3):
            say(scene, f"other-{number}", "garden garden garden")
        if indexed:
            catch_up(index)

        hits = {hit.lineage_id: hit for hit in ask(index, "garden", sort=sort).hits}

        assert len(hits) == 4
        assert (hits[said.lineage_id].message_id, hits[said.lineage_id].by_title) == (said.rows[1], False)

    def test_a_title_lifts_its_conversation(self, scene: Scene, index: SearchIndex) -> None:
        said = _name(scene, say(scene, "one", "so", answer="as for the garden, it is green"), "garden")
        for number in range(3):
            say(scene, f"other-{number}", "as for the garden, it is green")
        catch_up(index)

        found = ask(index, "garden", limit=1)

        assert lineages(found) == [said.lineage_id]

    @pytest.mark.parametrize("sort", ["relevance", "newest", "oldest"])
    def test_access_comes_before_the_limit_for_titles_too(self, scene: Scene, index: SearchIndex, sort: str) -> None:
        mine = _name(scene, say(scene, "mine", "so"), "my garden plan")
        for number in range(8):
            scene.clock.advance(1)
            _name(scene, say(scene, f"other-{number}", "so", user="ou_2"), f"garden {number}")
        catch_up(index)
        me = principal_of(source_at("mine"), shared=False)
        stranger = principal_of(source_at("three", "ou_3"), shared=False)

        assert lineages(ask(index, "garden", me, limit=1, sort=sort)) == [mine.lineage_id]
        assert ask(index, "garden", stranger, sort=sort).hits == ()

    def test_filters_hold_for_titles(self, scene: Scene, index: SearchIndex) -> None:
        said = _name(scene, say(scene, "one", "so", at=1_000), "garden plan")
        other = _name(scene, say(scene, "two", "so", at=2_000), "garden walk")
        catch_up(index)

        def found(**fields: object) -> set[str]:
            # attrs takes the fields of a query by name, which types cannot say
            return set(lineages(ask(index, "garden", **fields)))  # type: ignore[arg-type]

        assert found(until=2_000) == {said.lineage_id}
        assert found(since=2_000, until=2_001) == {other.lineage_id}
        assert found(roles=(TOOL,)) == set()
        assert found(roles=(USER,)) == {said.lineage_id, other.lineage_id}
        assert found(source="slack") == set()
        assert found(exclude=other.lineage_id) == {said.lineage_id}
        assert found(exclude=other.lineage_id, exclude_from=other.rows[0] + 1) == {said.lineage_id}

    def test_a_conversation_without_a_row_is_not_found_by_its_title(self, scene: Scene, index: SearchIndex) -> None:
        entry = scene.enter(key_of("one"), source_at("one"))
        scene.run(Rename(lineage_id=entry.lineage_id, title="garden plan", origin="user", now=scene.now))

        assert ask(index, "garden").hits == ()

    def test_a_title_counts_as_it_is_now(self, scene: Scene, index: SearchIndex) -> None:
        said = _name(scene, say(scene, "one", "so"), "garden plan")
        catch_up(index)
        before = lineages(ask(index, "garden"))

        _name(scene, said, "kitchen plan")

        assert before == lineages(ask(index, "kitchen")) == [said.lineage_id]
        assert ask(index, "garden").hits == ()
        _name(scene, said, None)
        assert ask(index, "kitchen").hits == ()
