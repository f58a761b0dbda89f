"""Lineages: titles, flags, lists, deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_hookspecs.errors import SessionNotFound, TitleError
from hermes_hookspecs.ids import LineageId, SessionId
from hermes_hookspecs.operations import Rename, SetFlags
from hermes_hookspecs.sessions import TITLE_LIMIT, SessionFilter
from hermes_hookspecs.testing.scene import (
    ALL,
    KEY,
    OTHER_KEY,
    holder_at,
    key_of,
    releasing,
    source_at,
)
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures

if TYPE_CHECKING:
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["LineageTests", "TitleTests"]


def _rename(
    scene: Scene, lineage_id: LineageId, title: str | None, origin: str = "user", session_id: SessionId | None = None
) -> str | None:
    operation = Rename(lineage_id=lineage_id, title=title, origin=origin, now=scene.now, session_id=session_id)
    return scene.run(operation)


class TitleTests(StoreFixtures):
    """Titles are unique per owner, and a person's is never replaced by a machine's."""

    def test_a_title_is_given_and_found(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()

        assert _rename(scene, entry.lineage_id, "plan") == "plan"

        lineage = scene.lineage(entry.lineage_id)
        assert (lineage.title, lineage.title_origin, lineage.version) == ("plan", "user", 2)
        assert [found.id for found in store.lineages_by_title("plan", ALL)] == [entry.lineage_id]
        assert scene.enter().title == "plan"

    def test_a_title_is_found_exactly(self, store: Store, scene: Scene) -> None:
        _rename(scene, scene.enter().lineage_id, "Plan 100%")

        assert [store.lineages_by_title(title, ALL) for title in ("plan 100%", "Plan", "Plan 100_", "%")] == [()] * 4

    def test_a_title_of_another_lineage_of_the_owner_is_refused(self, scene: Scene) -> None:
        first, second = scene.enter(), scene.enter(OTHER_KEY)
        _rename(scene, first.lineage_id, "plan")

        with pytest.raises(TitleError, match="plan"):
            _rename(scene, second.lineage_id, "plan")

        assert scene.lineage(second.lineage_id).title is None
        assert scene.lineage(second.lineage_id).version == 1

    def test_titles_differ_by_case(self, scene: Scene) -> None:
        _rename(scene, scene.enter().lineage_id, "plan")

        assert _rename(scene, scene.enter(OTHER_KEY).lineage_id, "Plan") == "Plan"

    def test_another_owner_may_have_the_same_title(self, store: Store, scene: Scene) -> None:
        first = scene.enter()
        scene.clock.advance(1)
        second = scene.enter(OTHER_KEY, source_at(user="ou_2"))

        _rename(scene, first.lineage_id, "plan")
        _rename(scene, second.lineage_id, "plan")

        found = [lineage.id for lineage in store.lineages_by_title("plan", ALL)]
        assert found == [second.lineage_id, first.lineage_id]

    def test_the_same_title_again_changes_nothing(self, scene: Scene) -> None:
        entry = scene.enter()
        _rename(scene, entry.lineage_id, "plan")

        assert _rename(scene, entry.lineage_id, "plan") == "plan"
        assert scene.lineage(entry.lineage_id).version == 2

    def test_a_title_can_be_taken_away_and_is_free_then(self, scene: Scene) -> None:
        first, second = scene.enter(), scene.enter(OTHER_KEY)
        _rename(scene, first.lineage_id, "plan")

        assert _rename(scene, first.lineage_id, None) is None

        assert scene.lineage(first.lineage_id).title is None
        assert _rename(scene, second.lineage_id, "plan") == "plan"

    @pytest.mark.parametrize("length", [0, TITLE_LIMIT + 1])
    def test_a_title_of_a_wrong_length_is_refused(self, scene: Scene, length: int) -> None:
        entry = scene.enter()

        with pytest.raises(TitleError):
            _rename(scene, entry.lineage_id, "x" * length)

    def test_a_title_is_counted_in_characters(self, scene: Scene) -> None:
        title = "计" * TITLE_LIMIT

        assert _rename(scene, scene.enter().lineage_id, title) == title

    def test_an_automatic_title_is_written_where_there_is_none(self, scene: Scene) -> None:
        entry = scene.enter()

        assert _rename(scene, entry.lineage_id, "plan", "auto", entry.session_id) == "plan"
        assert scene.lineage(entry.lineage_id).title_origin == "auto"

    def test_an_automatic_title_replaces_nothing(self, scene: Scene) -> None:
        entry = scene.enter()
        _rename(scene, entry.lineage_id, "mine")

        assert _rename(scene, entry.lineage_id, "plan", "auto") == "mine"
        assert scene.lineage(entry.lineage_id).version == 2

    def test_an_automatic_title_that_is_taken_gets_the_smallest_free_number(self, scene: Scene) -> None:
        entries = [scene.enter(key_of(str(number))) for number in range(4)]
        _rename(scene, entries[0].lineage_id, "plan")
        _rename(scene, entries[1].lineage_id, "plan #3")

        assert _rename(scene, entries[2].lineage_id, "plan", "auto") == "plan #2"
        assert _rename(scene, entries[3].lineage_id, "plan", "auto") == "plan #4"

    def test_an_automatic_title_for_a_session_that_is_not_the_tip_writes_nothing(self, scene: Scene) -> None:
        entry = scene.enter()

        assert _rename(scene, entry.lineage_id, "plan", "auto", SessionId("20000101_000000_00000000")) is None
        assert scene.lineage(entry.lineage_id).title is None

    def test_a_waiting_title_that_is_taken_by_now_gets_a_number(self, store: Store, scene: Scene) -> None:
        _rename(scene, scene.enter(OTHER_KEY).lineage_id, "plan")
        scene.enter()
        store.apply(releasing(scene, title="plan"))

        assert scene.enter().title == "plan #2"

    def test_a_title_moves_no_activity(self, scene: Scene) -> None:
        entry = scene.enter()
        scene.clock.advance(60)
        _rename(scene, entry.lineage_id, "plan")

        assert scene.lineage(entry.lineage_id).last_activity == entry.updated_at

    def test_a_lineage_that_is_not_there_cannot_be_named(self, scene: Scene) -> None:
        with pytest.raises(SessionNotFound):
            _rename(scene, LineageId("L-nowhere"), "plan")


class LineageTests(StoreFixtures):
    """Flags, lists and the end of a lineage."""

    def test_flags_are_set_one_by_one(self, scene: Scene) -> None:
        entry = scene.enter()

        scene.run(SetFlags(lineage_id=entry.lineage_id, now=scene.now, pinned=True))
        lineage = scene.run(SetFlags(lineage_id=entry.lineage_id, now=scene.now, archived=True))

        assert (lineage.pinned, lineage.archived, lineage.version) == (True, True, 3)

    def test_a_flag_that_is_set_already_changes_nothing(self, scene: Scene) -> None:
        entry = scene.enter()

        lineage = scene.run(SetFlags(lineage_id=entry.lineage_id, now=scene.now, pinned=False))

        assert lineage.version == 1

    def test_flags_of_a_lineage_that_is_not_there_are_refused(self, scene: Scene) -> None:
        with pytest.raises(SessionNotFound):
            scene.run(SetFlags(lineage_id=LineageId("L-nowhere"), now=scene.now, pinned=True))

    def test_lists_show_the_last_active_first_and_ties_by_id(self, store: Store, scene: Scene) -> None:
        first, second, third = (scene.enter(key_of(str(number))) for number in range(3))
        scene.clock.advance(5)
        scene.talk(first)

        found = [summary.lineage_id for summary in store.summaries(ALL)]

        assert found == [first.lineage_id, third.lineage_id, second.lineage_id]
        assert len(store.summaries(ALL, limit=2)) == 2
        assert len(store.summaries(ALL, limit=None)) == 3

    def test_a_list_goes_on_behind_its_last_row(self, store: Store, scene: Scene) -> None:
        made = []
        for number in range(5):
            made.append(scene.enter(key_of(str(number))).lineage_id)
            if number % 2:
                scene.clock.advance(2)
        seen: list[LineageId] = []
        before: tuple[int, LineageId] | None = None

        while page := store.summaries(ALL, where=SessionFilter(before=before), limit=2):
            seen += [summary.lineage_id for summary in page]
            before = (page[-1].last_activity, page[-1].lineage_id)

        assert seen == made[::-1]

    def test_a_summary_shows_the_tip_of_its_lineage(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry, "what is\n the  plan?")
        _rename(scene, entry.lineage_id, "plan")

        (summary,) = store.summaries(ALL)

        assert (summary.session_id, summary.source, summary.user_id) == (entry.session_id, "feishu", "ou_1")
        assert (summary.title, summary.preview) == ("plan", "what is the plan?")
        assert (summary.message_count, summary.segments, summary.locked_by) == (2, 1, None)
        assert (summary.started_at, summary.ended_at, summary.input_tokens) == (entry.created_at, None, None)

    def test_one_lineage_is_shown_as_the_list_shows_it(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry)
        scene.run(SetFlags(lineage_id=entry.lineage_id, now=scene.now, archived=True))
        (listed,) = store.summaries(ALL, where=SessionFilter(archived=True))

        assert store.summary(entry.lineage_id, ALL) == listed
        assert store.summary(LineageId("L-nowhere"), ALL) is None

    def test_a_summary_names_the_holder_of_a_lease(self, store: Store, scene: Scene) -> None:
        holder = holder_at("pts-9")
        scene.ask(scene.enter(), holder=holder)

        (summary,) = store.summaries(ALL)

        assert summary.locked_by == holder.describe()

    def test_archived_lineages_are_listed_when_they_are_asked_for(self, store: Store, scene: Scene) -> None:
        kept, put_away = scene.enter(), scene.enter(OTHER_KEY)
        scene.run(SetFlags(lineage_id=put_away.lineage_id, now=scene.now, archived=True))

        def listed(archived: bool | None) -> set[str]:
            return {each.lineage_id for each in store.summaries(ALL, where=SessionFilter(archived=archived))}

        assert {each.lineage_id for each in store.summaries(ALL)} == {kept.lineage_id}
        assert listed(archived=True) == {put_away.lineage_id}
        assert listed(archived=None) == {kept.lineage_id, put_away.lineage_id}

    def test_lists_are_filtered_by_platform_emptiness_and_title(self, store: Store, scene: Scene) -> None:
        full, empty = scene.enter(), scene.enter(OTHER_KEY, source_at(platform="slack"))
        scene.talk(full)
        _rename(scene, full.lineage_id, "plan")

        def listed(where: SessionFilter) -> list[str]:
            return [each.lineage_id for each in store.summaries(ALL, where=where)]

        assert listed(SessionFilter(source="slack")) == [empty.lineage_id]
        assert listed(SessionFilter(empty=False)) == [full.lineage_id]
        assert listed(SessionFilter(title="plan")) == [full.lineage_id]
        assert listed(SessionFilter(title="plan", source="slack")) == []

    def test_filters_apply_before_the_limit(self, store: Store, scene: Scene) -> None:
        wanted = scene.enter()
        for number in range(3):
            scene.clock.advance(1)
            scene.enter(key_of(str(number)), source_at(platform="slack"))

        found = store.summaries(ALL, where=SessionFilter(source="feishu"), limit=1)

        assert [each.lineage_id for each in found] == [wanted.lineage_id]

    def test_sessions_are_found_by_the_beginning_of_their_id(self, store: Store, scene: Scene) -> None:
        ids = [f"2026_{number}" for number in "abc"]
        for number, session_id in enumerate([*ids, "2027_a", "2026%_a"]):
            scene.enter(key_of(str(number)), session_id=SessionId(session_id))

        assert [found.id for found in store.sessions_by_prefix("2026_", ALL)] == ids[::-1]
        assert [found.id for found in store.sessions_by_prefix("2026_", ALL, limit=1)] == [ids[-1]]
        assert [found.id for found in store.sessions_by_prefix("2026%", ALL)] == ["2026%_a"]
        assert store.sessions_by_prefix("20%", ALL) == ()

    def test_counts_add_up(self, store: Store, scene: Scene) -> None:
        first, second = scene.enter(), scene.enter(OTHER_KEY, source_at(platform="slack"))
        scene.enter(key_of("empty"))
        scene.talk(first)
        scene.talk(first)
        scene.talk(second)
        scene.run(SetFlags(lineage_id=second.lineage_id, now=scene.now, archived=True))
        scene.accept(key=KEY)

        stats = store.stats()

        assert (stats.lineages, stats.listed, stats.archived, stats.empty) == (3, 2, 1, 1)
        assert (stats.sessions, stats.messages, stats.hidden, stats.turns) == (3, 6, 0, 3)
        assert (stats.routes, stats.waiting) == (3, 1)
        assert stats.per_platform == (("feishu", 2, 4), ("slack", 1, 2))
