"""Taking back: rows leave what is read and counted, and return as they were; nothing is removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

from hermes_hookspecs.errors import Conflict, IllegalMessage, LeaseLost
from hermes_hookspecs.ids import MessageId, SessionId
from hermes_hookspecs.messages import KIND_SUMMARY, SYSTEM, MessageDraft
from hermes_hookspecs.operations import Compress, Control, Hide
from hermes_hookspecs.state import ABSENT, StateUpdate
from hermes_hookspecs.testing.scene import ALL, asking, fence_of, result, saying
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures

if TYPE_CHECKING:
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.operations import Begun
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["HidingTests"]


def _hiding(scene: Scene, begun: Begun, first: int, **fields: object) -> Hide:
    operation = Hide(fence=fence_of(begun), first=MessageId(first), now=scene.now)
    # attrs cannot say in types that the class of a value takes its own fields as keyword arguments
    return attrs.evolve(operation, **fields)  # type: ignore[arg-type]


def _maintaining(scene: Scene, lineage_id: LineageId) -> Begun:
    """Begin a turn without an agent."""
    begun = scene.run(scene.beginning(lineage_id, maintenance=True, touch=False))
    assert hasattr(begun, "turn"), begun
    return begun  # type: ignore[return-value]  # a begin that gave a turn


class HidingTests(StoreFixtures):
    """What a person takes back is not seen by the model, and can be had again."""

    def test_hidden_rows_are_not_read_and_are_still_there(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry, "one")
        scene.talk(entry, "two")
        rows = scene.rows(entry.lineage_id)
        begun = _maintaining(scene, entry.lineage_id)

        hid = scene.run(_hiding(scene, begun, rows[2].id, finish=True))

        assert scene.rows(entry.lineage_id) == rows[:2]
        every = store.messages(entry.lineage_id, ALL, hidden=True)
        assert [row.hidden for row in every] == [False, False, True, True]
        assert [attrs.evolve(row, hidden=False) for row in every] == list(rows)
        assert (hid.rows, hid.session_id) == (2, entry.session_id)
        assert hid.version == scene.lineage(entry.lineage_id).version
        assert scene.lease(entry.lineage_id).holder is None

    def test_shown_again_everything_is_as_it_was(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry, "one")
        scene.append(begun, asking("c1", "c2"))
        scene.append(begun, result("c1"), result("c2"))
        scene.finish(begun, saying("done"))
        rows, session = scene.rows(entry.lineage_id), scene.tip(entry.lineage_id)
        count = scene.lineage(entry.lineage_id).message_count
        begun = _maintaining(scene, entry.lineage_id)

        scene.run(_hiding(scene, begun, rows[1].id))
        hidden = scene.tip(entry.lineage_id)
        scene.run(_hiding(scene, begun, rows[1].id, show=True, finish=True))

        assert (hidden.message_count, hidden.tool_call_count) == (1, 0)
        assert scene.rows(entry.lineage_id) == rows
        assert scene.lineage(entry.lineage_id).message_count == count
        tip = scene.tip(entry.lineage_id)
        assert (tip.message_count, tip.tool_call_count) == (session.message_count, session.tool_call_count) == (5, 2)
        assert store.stats().hidden == 0

    def test_only_the_rows_between_first_and_last_change(self, scene: Scene) -> None:
        entry = scene.enter()
        for text in ("one", "two", "three"):
            scene.talk(entry, text, "yes")
        rows = scene.rows(entry.lineage_id)
        begun = _maintaining(scene, entry.lineage_id)

        hid = scene.run(_hiding(scene, begun, rows[2].id, last=rows[3].id))
        again = scene.run(_hiding(scene, begun, rows[2].id, last=rows[3].id))

        assert scene.texts(entry.lineage_id) == ["one", "yes", "three", "yes"]
        assert (hid.rows, again.rows) == (2, 0)

    def test_rows_are_counted_in_the_segment_where_they_stand(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry, "one")
        begun = scene.ask(entry, "two")
        scene.append(begun, asking("c1"))
        scene.append(begun, result("c1"))
        rows = scene.rows(entry.lineage_id)
        child = scene.run(
            Compress(
                fence=fence_of(begun),
                expected=entry.session_id,
                session_id=SessionId(scene.fresh()),
                kept_from=rows[2].id,
                now=scene.now,
                summary=MessageDraft(role=SYSTEM, content="in short", kind=KIND_SUMMARY, timestamp=1),
            )
        ).session
        scene.finish(begun, saying("done"))
        begun = _maintaining(scene, entry.lineage_id)

        scene.run(_hiding(scene, begun, rows[2].id, finish=True))

        parent, tip = store.segments(entry.lineage_id, ALL)
        assert (parent.message_count, parent.tool_call_count) == (2, 0)
        assert (tip.id, tip.message_count, tip.tool_call_count) == (child.id, 1, 0)
        assert [row.kind for row in store.messages(entry.lineage_id, ALL, session_id=child.id)] == [KIND_SUMMARY]
        assert scene.lineage(entry.lineage_id).message_count == 3
        assert store.stats().messages == 3

    def test_the_change_feed_tells_of_each_row(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry, "one")
        rows = scene.rows(entry.lineage_id)
        begun = _maintaining(scene, entry.lineage_id)
        _, cursor = store.changes(None)

        scene.run(_hiding(scene, begun, rows[0].id))
        hidden, cursor = store.changes(cursor)
        scene.run(_hiding(scene, begun, rows[1].id, show=True))
        shown, _ = store.changes(cursor)

        assert [(one.kind, one.message_id) for one in hidden if one.message_id] == [
            ("hide", rows[0].id),
            ("hide", rows[1].id),
        ]
        assert [(one.kind, one.message_id) for one in shown if one.message_id] == [("show", rows[1].id)]
        assert [one.kind for one in (*hidden, *shown) if one.message_id is None] == ["lineage", "lineage"]

    def test_what_stands_in_its_place_comes_back_with_the_same_write(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        for text in ("one", "two", "two again"):
            scene.talk(entry, text, "yes")
        rows = scene.rows(entry.lineage_id)
        begun = _maintaining(scene, entry.lineage_id)
        scene.run(_hiding(scene, begun, rows[2].id, last=rows[3].id))
        before = scene.lineage(entry.lineage_id).version

        hid = scene.run(_hiding(scene, begun, rows[4].id, swap=((rows[2].id, rows[3].id),)))
        swapped = scene.texts(entry.lineage_id)
        scene.run(_hiding(scene, begun, rows[4].id, show=True, swap=((rows[2].id, rows[3].id),)))

        assert swapped == ["one", "yes", "two", "yes"]
        assert (hid.rows, hid.version) == (4, before + 1)
        assert scene.texts(entry.lineage_id) == ["one", "yes", "two again", "yes"]
        assert scene.lineage(entry.lineage_id).message_count == 4
        assert store.stats().hidden == 2

    def test_what_was_hidden_before_stays_so_when_rows_around_it_come_back(self, scene: Scene) -> None:
        entry = scene.enter()
        for text in ("one", "two", "three"):
            scene.talk(entry, text, "yes")
        rows = scene.rows(entry.lineage_id)
        begun = _maintaining(scene, entry.lineage_id)
        scene.run(_hiding(scene, begun, rows[2].id, last=rows[3].id))
        scene.run(_hiding(scene, begun, rows[0].id))

        hid = scene.run(_hiding(scene, begun, rows[0].id, show=True, swap=((rows[2].id, rows[3].id),)))

        assert scene.texts(entry.lineage_id) == ["one", "yes", "three", "yes"]
        assert hid.rows == 4

    def test_what_its_caller_remembers_is_written_with_it_or_not_at_all(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry, "one")
        rows = scene.rows(entry.lineage_id)
        begun = _maintaining(scene, entry.lineage_id)
        note = StateUpdate(namespace="a", key="b", value="1", expected_version=ABSENT)

        scene.run(_hiding(scene, begun, rows[1].id, state=(note,)))
        with pytest.raises(Conflict):
            scene.run(_hiding(scene, begun, rows[0].id, state=(note,)))

        assert scene.rows(entry.lineage_id) == rows[:1]
        kept = store.state("a", "b", now=scene.now)
        assert kept is not None
        assert (kept.value, kept.version) == ("1", 1)

    def test_without_the_lease_nothing_is_taken_back(self, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry, "one")
        rows = scene.rows(entry.lineage_id)
        begun = _maintaining(scene, entry.lineage_id)
        scene.revoke(entry.lineage_id)

        with pytest.raises(LeaseLost):
            scene.run(_hiding(scene, begun, rows[0].id))

        assert scene.rows(entry.lineage_id)[:2] == rows

    def test_a_call_without_its_result_is_not_parted_from_it(self, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        scene.append(begun, asking("c1"))
        rows = scene.rows(entry.lineage_id)

        with pytest.raises(IllegalMessage, match="c1"):
            scene.run(_hiding(scene, begun, rows[0].id))

        assert scene.rows(entry.lineage_id) == rows

    def test_as_the_effect_of_a_command_it_runs_once(self, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry, "one")
        scene.talk(entry, "two")
        rows = scene.rows(entry.lineage_id)
        begun = _maintaining(scene, entry.lineage_id)
        command = scene.accept("/undo", entry.session_key, kind="control")
        effect = _hiding(scene, begun, rows[2].id, finish=True)

        first = scene.run(Control(inbox_id=command, effect=effect, now=scene.now))
        second = scene.run(Control(inbox_id=command, effect=effect, now=scene.now))

        assert (first.lineage_id, first.repeated, second.repeated) == (entry.lineage_id, False, True)
        assert scene.rows(entry.lineage_id) == rows[:2]
