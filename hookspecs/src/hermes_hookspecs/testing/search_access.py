"""Who finds what: access and filters, before any limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_hookspecs.messages import ASSISTANT, SYSTEM, TOOL, USER, MessageDraft, ToolCall
from hermes_hookspecs.operations import SetFlags
from hermes_hookspecs.principal import Principal, principal_of
from hermes_hookspecs.testing.scene import ALL, asking, key_of, result, saying, source_at
from hermes_hookspecs.testing.search_stage import SearchFixtures, ask, catch_up, lineages, say

if TYPE_CHECKING:
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.ports.search import SearchIndex
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["AccessTests"]


class AccessTests(SearchFixtures):
    """Who finds what, before any limit."""

    def test_a_stranger_finds_nothing(self, scene: Scene, index: SearchIndex) -> None:
        say(scene, "one", "the secret 秘密")
        catch_up(index)
        stranger = principal_of(source_at("two", "ou_2"), shared=False)

        found = [ask(index, query, who) for query in ("secret", "秘密", "密") for who in (stranger, Principal())]

        assert [each.hits for each in found] == [()] * 6

    @pytest.mark.parametrize("indexed", [False, True])
    def test_access_comes_before_the_limit(self, scene: Scene, index: SearchIndex, *, indexed: bool) -> None:
        mine = say(scene, "mine", "the needle is here")
        for number in range(12):
            scene.clock.advance(1)
            say(scene, f"other-{number}", "needle needle needle", user="ou_2")
        if indexed:
            catch_up(index)
        me = principal_of(source_at("mine"), shared=False)

        for sort in ("relevance", "newest", "oldest"):
            assert lineages(ask(index, "needle", me, limit=1, sort=sort)) == [mine.lineage_id]

    def test_in_a_room_only_the_room_is_found(self, scene: Scene, index: SearchIndex) -> None:
        where = source_at("oc_room", chat_type="group")
        room = scene.enter(key_of("room"), where)
        inbox_id = scene.accept("needle in the room", room.session_key, source=where)
        scene.finish(scene.begin(room.lineage_id, inbox_id))
        say(scene, "private", "needle in private")
        catch_up(index)

        assert lineages(ask(index, "needle", principal_of(where, shared=False))) == [room.lineage_id]

    def test_filters_come_before_the_limit(self, scene: Scene, index: SearchIndex) -> None:
        asked = say(scene, "asked", "a needle", at=1_000)
        for number in range(12):
            scene.clock.advance(1)
            say(scene, f"answered-{number}", "question", answer="needle needle", at=2_000)
        catch_up(index)

        assert lineages(ask(index, "needle", limit=1, roles=(USER,))) == [asked.lineage_id]
        assert lineages(ask(index, "a OR question", limit=1, until=2_000, roles=(USER,))) == [asked.lineage_id]
        assert len(ask(index, "needle", limit=5, roles=(ASSISTANT,)).hits) == 5

    @pytest.mark.parametrize("indexed", [False, True])
    def test_roles_choose_rows(self, scene: Scene, index: SearchIndex, *, indexed: bool) -> None:
        entry = scene.enter(key_of("one"), source_at("one"))
        begun = scene.ask(entry, "user needle")
        scene.append(begun, saying("system needle", SYSTEM), asking("c1"), result("c1", "tool needle"))
        scene.finish(begun, saying("assistant needle"))
        if indexed:
            catch_up(index)

        def found(*roles: str) -> list[int]:
            return [hit.message_id for hit in ask(index, "needle", roles=roles).hits]

        rows = {row.role: row.id for row in scene.rows(entry.lineage_id) if "needle" in row.content}
        assert {role: found(role) for role in rows} == {role: [row_id] for role, row_id in rows.items()}
        assert found(TOOL, SYSTEM)[0] in {rows[TOOL], rows[SYSTEM]}
        assert found() == []

    def test_what_an_agent_called_is_found(self, scene: Scene, index: SearchIndex) -> None:
        entry = scene.enter(key_of("one"), source_at("one"))
        begun = scene.ask(entry, "question")
        call = ToolCall(id="c1", name="kubectl_apply", arguments='{"file": "部署.yaml"}')
        (row,) = scene.append(begun, MessageDraft(role=ASSISTANT, timestamp=1, tool_calls=(call,)))
        catch_up(index)

        assert [hit.message_id for hit in ask(index, "kubectl 部署.yaml").hits] == [row]

    def test_dates_and_platforms_choose_rows(self, scene: Scene, index: SearchIndex) -> None:
        early, late = say(scene, "early", "needle", at=1_000), say(scene, "late", "needle", at=2_000)
        other = scene.enter(key_of("slack"), source_at("slack", platform="slack"))
        begun = scene.ask(other, "needle")
        scene.finish(begun)
        catch_up(index)

        def found(**fields: object) -> set[LineageId]:
            return set(lineages(ask(index, "needle", ALL, **fields)))

        assert found(until=2_000) == {early.lineage_id}
        assert found(since=2_000, until=2_001) == {late.lineage_id}
        assert found(since=1_000, until=1_000) == set()
        assert found(source="slack") == {other.lineage_id}
        assert found(source="feishu") == {early.lineage_id, late.lineage_id}
        assert found(source="nowhere") == set()

    def test_what_is_live_for_the_caller_is_left_out(self, scene: Scene, index: SearchIndex) -> None:
        mine, other = say(scene, "mine", "needle old", answer="needle new"), say(scene, "other", "needle")
        catch_up(index)

        whole = ask(index, "needle", exclude=mine.lineage_id)
        part = ask(index, "needle", exclude=mine.lineage_id, exclude_from=mine.rows[1])

        assert lineages(whole) == [other.lineage_id]
        assert {hit.message_id for hit in part.hits} == {mine.row, other.row}

    def test_archived_conversations_are_found(self, scene: Scene, index: SearchIndex) -> None:
        said = say(scene, "one", "needle")
        scene.run(SetFlags(lineage_id=said.lineage_id, archived=True, now=scene.now))
        catch_up(index)

        assert lineages(ask(index, "needle")) == [said.lineage_id]
