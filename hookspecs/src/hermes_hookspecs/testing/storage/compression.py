"""Compression: one transaction to a child with a summary, and nothing is copied, lost or counted twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

from hermes_hookspecs.errors import Conflict, IllegalMessage, LeaseLost
from hermes_hookspecs.ids import MessageId, SessionId
from hermes_hookspecs.messages import KIND_SUMMARY, SYSTEM, MessageDraft
from hermes_hookspecs.operations import UNCOMPRESSION, Begin, Compress, Delete, Rename, Snapshot
from hermes_hookspecs.sessions import TITLE_LIMIT
from hermes_hookspecs.testing.scene import ALL, KEY, OTHER_KEY, asking, binding, fence_of, releasing, result, saying
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures
from hermes_hookspecs.turns import Usage

if TYPE_CHECKING:
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.operations import Begun, Compressed
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["CompressionTests"]

SUMMARY = MessageDraft(role=SYSTEM, content="in short", sent="[in short]", kind=KIND_SUMMARY, timestamp=1)


def _compressing(scene: Scene, begun: Begun, kept_from: int | None, **fields: object) -> Compress:
    """Return a compression of the turn's lineage."""
    operation = Compress(
        fence=fence_of(begun),
        expected=scene.lineage(begun.turn.lineage_id).tip,
        session_id=SessionId(scene.fresh()),
        kept_from=None if kept_from is None else MessageId(kept_from),
        now=scene.now,
        summary=SUMMARY,
    )
    # attrs cannot say in types that the class of a value takes its own fields as keyword arguments
    return attrs.evolve(operation, **fields)  # type: ignore[arg-type]


def _maintaining(scene: Scene, lineage_id: LineageId) -> Begun:
    """Begin a turn without an agent."""
    operation: Begin = scene.beginning(lineage_id, maintenance=True, touch=False)
    begun = scene.run(operation)
    assert hasattr(begun, "turn"), begun
    return begun  # type: ignore[return-value]  # a begin that gave a turn


class CompressionTests(StoreFixtures):
    """A lineage goes on in a child; what was said before stays where it was."""

    def test_the_child_is_the_tip_and_the_parent_has_ended(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry, "one")
        begun = scene.ask(entry, "two", snapshot=Snapshot(model="m", system_prompt="be kind", model_config="{}"))
        rows = scene.rows(entry.lineage_id)
        scene.clock.advance(5)

        made = scene.run(_compressing(scene, begun, rows[1].id))

        parent, child = store.segments(entry.lineage_id, ALL)
        assert (made.session, made.lineage_id) == (child, entry.lineage_id)
        assert (parent.id, parent.ended_at, parent.end_reason) == (entry.session_id, scene.now, "compression")
        assert (child.parent_session_id, child.kept_from) == (parent.id, rows[1].id)
        assert (child.started_at, child.ended_at, child.end_reason) == (scene.now, None, None)
        assert (child.model, child.model_config, child.system_prompt) == (
            parent.model,
            parent.model_config,
            parent.system_prompt,
        )
        assert (child.source, child.account_id, child.user_id) == (parent.source, parent.account_id, parent.user_id)
        lineage = scene.lineage(entry.lineage_id)
        assert (lineage.tip, lineage.segments, lineage.version) == (child.id, 2, made.version)
        assert lineage.version == begun.version + 1

    def test_no_row_is_copied_moved_or_removed(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry, "one")
        begun = scene.ask(entry, "two")
        before = scene.rows(entry.lineage_id)

        made = scene.run(_compressing(scene, begun, before[1].id))

        after = scene.rows(entry.lineage_id)
        assert after[:-1] == before
        assert (after[-1].role, after[-1].kind, after[-1].content) == (SYSTEM, KIND_SUMMARY, "in short")
        assert (after[-1].sent, after[-1].turn_id) == ("[in short]", begun.turn.id)
        assert store.messages(entry.lineage_id, ALL, session_id=made.session.id) == after[-1:]

    def test_rows_of_a_lineage_that_is_gone_are_told_with_its_tip(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        made = scene.run(_compressing(scene, begun, scene.rows(entry.lineage_id)[0].id, finish=True))

        scene.run(Delete(lineage_id=entry.lineage_id, now=scene.now))

        told = {change.session_id for change in store.changes(None)[0] if change.message_id is not None}
        assert told == {made.session.id}

    def test_where_nothing_stays_the_context_begins_with_the_summary(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry, "too long for any model")
        before = scene.rows(entry.lineage_id)
        operation = _compressing(scene, begun, None)

        made = scene.run(operation)
        again = scene.run(operation)
        scene.finish(begun, saying("read its ends"))

        after = scene.rows(entry.lineage_id)
        assert after[: len(before)] == before
        summary = after[len(before)]
        assert (summary.kind, summary.session_id) == (KIND_SUMMARY, made.session.id)
        assert made.session.kept_from == summary.id == again.session.kept_from
        assert scene.tip(entry.lineage_id).kept_from == summary.id
        seen = store.messages(entry.lineage_id, ALL, after=MessageId(summary.id - 1))
        assert [row.content for row in seen] == ["in short", "read its ends"]

    def test_where_nothing_stays_a_summary_must(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)

        with pytest.raises(IllegalMessage):
            scene.run(_compressing(scene, begun, None, summary=None))

        assert len(store.segments(entry.lineage_id, ALL)) == 1

    def test_rows_are_counted_where_they_are(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        scene.append(begun, asking("c1", "c2"))
        scene.append(begun, result("c1"))
        scene.append(begun, result("c2"))
        rows = scene.rows(entry.lineage_id)

        scene.run(_compressing(scene, begun, rows[0].id))
        scene.append(begun, asking("c3"))
        scene.append(begun, result("c3"))
        scene.finish(begun, saying("done"))

        parent, child = store.segments(entry.lineage_id, ALL)
        assert (parent.message_count, parent.tool_call_count) == (4, 2)
        assert (child.message_count, child.tool_call_count) == (4, 1)
        assert scene.lineage(entry.lineage_id).message_count == 8
        assert store.stats().messages == 8
        assert store.stats().sessions == 2
        assert [len(store.messages(entry.lineage_id, ALL, session_id=one.id)) for one in (parent, child)] == [4, 4]

    def test_usage_of_the_turn_belongs_to_the_child_from_then_on(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry, "one")
        scene.finish(begun, saying("x"), usage=(Usage(input_tokens=7),))
        begun = scene.ask(entry, "two")

        made = scene.run(_compressing(scene, begun, scene.rows(entry.lineage_id)[2].id))
        scene.finish(begun, saying("hi"), usage=(Usage(input_tokens=5),))

        assert [one.input_tokens for one in store.segments(entry.lineage_id, ALL)] == [7, 5]
        turn = store.turn(begun.turn.id)
        assert turn is not None
        assert turn.session_id == made.session.id
        summary = store.summary(entry.lineage_id, ALL)
        assert summary is not None
        assert (summary.input_tokens, summary.session_id, summary.segments) == (12, made.session.id, 2)

    def test_a_title_is_numbered_and_its_lineage_keeps_it(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.run(Rename(lineage_id=entry.lineage_id, title="plan", origin="user", now=scene.now))
        begun = scene.ask(entry)
        row = scene.rows(entry.lineage_id)[0].id

        for _ in range(2):
            scene.run(_compressing(scene, begun, row))

        assert [one.title for one in store.segments(entry.lineage_id, ALL)] == ["plan", "plan #2", "plan #3"]
        lineage = scene.lineage(entry.lineage_id)
        assert (lineage.title, lineage.title_origin) == ("plan", "user")
        assert [one.id for one in store.lineages_by_title("plan", ALL)] == [entry.lineage_id]

    def test_a_long_title_has_room_for_its_number(self, scene: Scene) -> None:
        entry = scene.enter()
        scene.run(Rename(lineage_id=entry.lineage_id, title="日" * TITLE_LIMIT, origin="user", now=scene.now))
        begun = scene.ask(entry)

        made = scene.run(_compressing(scene, begun, scene.rows(entry.lineage_id)[0].id))

        assert made.session.title == f"{'日' * (TITLE_LIMIT - 3)} #2"

    def test_routes_and_waiting_messages_stay_with_the_lineage(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        store.apply(binding(scene, OTHER_KEY, entry.lineage_id))
        begun = scene.ask(entry)
        waiting = scene.accept("later")

        made = scene.run(_compressing(scene, begun, scene.rows(entry.lineage_id)[0].id))

        for key in (KEY, OTHER_KEY):
            assert scene.enter(key).session_id == made.session.id
        assert [item.id for item in store.waiting(entry.lineage_id)] == [waiting]
        assert scene.tip(entry.lineage_id).end_reason is None

    def test_a_release_ends_the_child_and_leaves_the_parent(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        scene.run(_compressing(scene, begun, scene.rows(entry.lineage_id)[0].id))
        scene.finish(begun, saying("hi"))

        store.apply(releasing(scene))

        assert [one.end_reason for one in store.segments(entry.lineage_id, ALL)] == ["compression", "session_reset"]

    def test_the_end_of_a_session_that_was_left_goes_along(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry)
        store.apply(releasing(scene))
        ended = scene.tip(entry.lineage_id)
        scene.clock.advance(9)

        begun = _maintaining(scene, entry.lineage_id)
        made = scene.run(_compressing(scene, begun, scene.rows(entry.lineage_id)[0].id, finish=True))

        assert (made.session.ended_at, made.session.end_reason) == (ended.ended_at, "session_reset")
        assert store.segments(entry.lineage_id, ALL)[0].end_reason == "compression"

    def test_two_compressors_make_one_child(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        row = scene.rows(entry.lineage_id)[0].id
        first, second = (_compressing(scene, begun, row) for _ in range(2))

        scene.run(first)
        with pytest.raises(Conflict):
            scene.run(second)

        assert [one.id for one in store.segments(entry.lineage_id, ALL)] == [entry.session_id, first.session_id]

    def test_a_repetition_is_known_by_the_child(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        operation = _compressing(scene, begun, scene.rows(entry.lineage_id)[0].id)
        made: Compressed = scene.run(operation)

        assert scene.run(operation) == made
        scene.finish(begun, saying("hi"))
        again = scene.run(operation)

        assert again.session == scene.tip(entry.lineage_id)
        assert len(store.segments(entry.lineage_id, ALL)) == 2
        assert len(scene.rows(entry.lineage_id)) == 3

    def test_who_lost_the_lease_makes_no_child(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        row = scene.rows(entry.lineage_id)[0].id
        scene.revoke(entry.lineage_id)
        before = (scene.lineage(entry.lineage_id), scene.rows(entry.lineage_id))

        with pytest.raises(LeaseLost):
            scene.run(_compressing(scene, begun, row))

        assert (scene.lineage(entry.lineage_id), scene.rows(entry.lineage_id)) == before
        assert len(store.segments(entry.lineage_id, ALL)) == 1

    @pytest.mark.parametrize("row", ["a result", "a summary", "of another lineage", "none"])
    def test_a_context_begins_with_a_row_that_may_stand_first(self, store: Store, scene: Scene, row: str) -> None:
        entry, other = scene.enter(), scene.enter(OTHER_KEY)
        scene.talk(other)
        begun = scene.ask(entry)
        scene.append(begun, asking("c1"))
        scene.append(begun, result("c1"))
        scene.run(_compressing(scene, begun, scene.rows(entry.lineage_id)[0].id))
        rows = scene.rows(entry.lineage_id)
        bad = {
            "a result": rows[2].id,
            "a summary": rows[3].id,
            "of another lineage": scene.rows(other.lineage_id)[0].id,
            "none": 1_000_000,
        }
        before = (scene.lineage(entry.lineage_id), store.segments(entry.lineage_id, ALL))

        with pytest.raises(IllegalMessage):
            scene.run(_compressing(scene, begun, bad[row]))

        assert (scene.lineage(entry.lineage_id), store.segments(entry.lineage_id, ALL)) == before

    @pytest.mark.parametrize(
        "summary",
        [
            attrs.evolve(SUMMARY, role="user"),
            attrs.evolve(SUMMARY, kind=""),
            attrs.evolve(SUMMARY, content=" \n"),
            attrs.evolve(SUMMARY, tool_call_id="c1"),
        ],
        ids=["a user row", "not marked", "blank", "a result"],
    )
    def test_a_summary_is_a_marked_row_with_text(self, scene: Scene, summary: MessageDraft) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)

        with pytest.raises(IllegalMessage):
            scene.run(_compressing(scene, begun, scene.rows(entry.lineage_id)[0].id, summary=summary))

        assert scene.lineage(entry.lineage_id).segments == 1

    def test_nothing_is_compressed_between_a_call_and_its_result(self, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        scene.append(begun, asking("c1", "c2"))
        scene.append(begun, result("c1"))
        operation = _compressing(scene, begun, scene.rows(entry.lineage_id)[0].id)

        with pytest.raises(IllegalMessage):
            scene.run(operation)
        scene.append(begun, result("c2"))

        assert scene.run(operation).session.id == operation.session_id

    def test_a_compression_shows_that_the_holder_lives(self, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)

        scene.run(_compressing(scene, begun, scene.rows(entry.lineage_id)[0].id))

        assert scene.revoke(entry.lineage_id, expected=begun.lease.stamp) is None
        assert scene.lease(entry.lineage_id).renewals == begun.lease.renewals + 1

    def test_a_turn_without_an_agent_ends_with_its_compression(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry)
        begun = _maintaining(scene, entry.lineage_id)

        made = scene.run(_compressing(scene, begun, scene.rows(entry.lineage_id)[0].id, finish=True))

        turn = store.turn(begun.turn.id)
        assert turn is not None
        assert (turn.outcome, turn.reason, turn.ended_at) == ("done", "", scene.now)
        assert scene.lease(entry.lineage_id).holder is None
        assert scene.lineage(entry.lineage_id).version == made.version == begun.version + 2
        assert scene.talk(entry).session.id == made.session.id

    def test_an_uncompression_is_a_child_that_sees_the_earlier_rows(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry)
        begun = scene.ask(entry)
        rows = scene.rows(entry.lineage_id)
        scene.run(_compressing(scene, begun, rows[2].id))

        made = scene.run(_compressing(scene, begun, rows[0].id, summary=None, reason=UNCOMPRESSION))

        assert [one.end_reason for one in store.segments(entry.lineage_id, ALL)] == [
            "compression",
            "uncompression",
            None,
        ]
        assert (made.session.kept_from, made.session.message_count) == (rows[0].id, 0)
        assert len(scene.rows(entry.lineage_id)) == 4

    def test_the_feed_tells_of_the_summary_and_of_the_lineage(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        _, cursor = store.changes(None)

        made = scene.run(_compressing(scene, begun, scene.rows(entry.lineage_id)[0].id))

        told, _ = store.changes(cursor)
        summary = scene.rows(entry.lineage_id)[-1]
        assert [(one.kind, one.message_id, one.at) for one in told] == [
            ("insert", summary.id, scene.now),
            ("lineage", None, scene.now),
        ]
        assert told[0].session_id == made.session.id

    def test_a_command_compresses_once(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry)
        begun = _maintaining(scene, entry.lineage_id)
        operation = _compressing(scene, begun, scene.rows(entry.lineage_id)[0].id, finish=True)
        inbox_id = scene.accept("/compress", kind="control")

        outcome = scene.control(operation, inbox_id=inbox_id)
        again = scene.control(attrs.evolve(operation, session_id=SessionId("other")), inbox_id=inbox_id)

        assert (outcome.lineage_id, outcome.session_id) == (entry.lineage_id, operation.session_id)
        assert again == attrs.evolve(outcome, repeated=True)
        assert len(store.segments(entry.lineage_id, ALL)) == 2

    def test_a_compressed_lineage_is_deleted_whole(self, store: Store, scene: Scene) -> None:

        entry = scene.enter()
        begun = scene.ask(entry)
        made = scene.run(_compressing(scene, begun, scene.rows(entry.lineage_id)[0].id))
        scene.finish(begun, saying("hi"))

        deleted = scene.run(Delete(lineage_id=entry.lineage_id, now=scene.now))

        assert (deleted.sessions, deleted.messages) == (2, 3)
        assert store.session(made.session.id, ALL) is None
