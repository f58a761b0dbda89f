"""Branching off: a second lineage begins where a first one stands, and neither is heard in the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

from hermes_hookspecs.errors import Conflict, LeaseBusy, SessionNotFound
from hermes_hookspecs.ids import LineageId, MessageId, SessionId
from hermes_hookspecs.messages import KIND_SUMMARY, SYSTEM, MessageDraft
from hermes_hookspecs.operations import Branch, Compress, Delete, Hide, Snapshot
from hermes_hookspecs.principal import owner_of
from hermes_hookspecs.testing.scene import ALL, KEY, OTHER_KEY, asking, fence_of, result, saying, source_at
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures

if TYPE_CHECKING:
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.operations import Begun
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.sessions import SessionEntry
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["BranchingTests"]


def _branching(scene: Scene, entry: SessionEntry, **fields: object) -> Branch:
    number, source = scene.fresh(), source_at()
    operation = Branch(
        key=entry.session_key,
        key_version=1,
        source=source,
        owner=owner_of(source, shared=False),
        policy=scene.policy,
        shared=False,
        origin=entry.lineage_id,
        expected=entry.session_id,
        session_id=SessionId(number),
        lineage_id=LineageId(f"L{number}"),
        now=scene.now,
    )
    # attrs cannot say in types that the class of a value takes its own fields as keyword arguments
    return attrs.evolve(operation, **fields)  # type: ignore[arg-type]


def _said(row: Message) -> tuple[object, ...]:
    """Return what a copy has in common with its row."""
    return row.role, row.content, row.sent, row.tool_calls, row.tool_call_id, row.kind, row.attachments, row.timestamp


def _resting(scene: Scene, lineage_id: LineageId) -> Begun:
    """Begin a turn without an agent."""
    return scene.begin(lineage_id, maintenance=True, touch=False)


class BranchingTests(StoreFixtures):
    """A conversation has two ways to go on."""

    def test_a_branch_begins_with_what_was_said_and_goes_its_own_way(self, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry, "one", snapshot=Snapshot(model="m", model_config="{}", system_prompt="be brief"))
        scene.append(begun, asking("c1", "c2"))
        scene.append(begun, result("c1"), result("c2"))
        scene.finish(begun, saying("done"))
        rows = scene.rows(entry.lineage_id)

        made = scene.run(_branching(scene, entry))
        scene.talk(made, "here")
        again = scene.enter(OTHER_KEY, source_at("oc_2"))

        copies = scene.rows(made.lineage_id)
        assert made.created
        assert [_said(row) for row in copies[: len(rows)]] == [_said(row) for row in rows]
        assert {(row.turn_id, row.inbox_id) for row in copies[: len(rows)]} == {(None, None)}
        assert [row.content for row in copies[len(rows) :]] == ["here", "hi"]
        assert scene.rows(entry.lineage_id) == rows
        assert again.lineage_id not in {made.lineage_id, entry.lineage_id}
        tip, lineage = scene.tip(made.lineage_id), scene.lineage(made.lineage_id)
        assert (tip.model, tip.model_config, tip.system_prompt) == ("m", "{}", "be brief")
        assert (tip.message_count, tip.tool_call_count, tip.parent_session_id) == (7, 2, None)
        assert (lineage.message_count, lineage.preview, lineage.segments) == (7, "one", 1)
        assert lineage.branched_from == entry.session_id
        assert scene.lineage(entry.lineage_id).branched_from is None

    def test_the_key_leads_to_the_branch_and_the_origin_ends(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry)
        waiting = scene.accept("next", lineage_id=entry.lineage_id)

        made = scene.run(_branching(scene, entry))

        route = store.route(KEY)
        assert route is not None
        assert route.lineage_id == made.lineage_id
        assert scene.tip(entry.lineage_id).end_reason == "session_switch"
        assert scene.tip(made.lineage_id).end_reason is None
        assert scene.item(waiting).lineage_id == made.lineage_id

    def test_only_what_is_in_the_context_is_copied(self, scene: Scene) -> None:
        entry = scene.enter()
        for text in ("one", "two", "three"):
            scene.talk(entry, text, "yes")
        rows = scene.rows(entry.lineage_id)
        begun = _resting(scene, entry.lineage_id)
        scene.run(
            Compress(
                fence=fence_of(begun),
                expected=entry.session_id,
                session_id=SessionId(scene.fresh()),
                kept_from=rows[2].id,
                now=scene.now,
                summary=MessageDraft(role=SYSTEM, content="in short", kind=KIND_SUMMARY, timestamp=1),
            )
        )
        scene.run(Hide(fence=fence_of(begun), first=rows[4].id, last=rows[5].id, now=scene.now, finish=True))
        tip = scene.tip(entry.lineage_id)

        made = scene.run(_branching(scene, entry, expected=tip.id))

        assert scene.texts(made.lineage_id) == ["two", "yes", "in short"]
        assert scene.lineage(made.lineage_id).message_count == 3
        assert scene.tip(made.lineage_id).kept_from is None

    def test_a_title_that_is_taken_gets_a_number(self, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry)

        first = scene.run(_branching(scene, entry, title="plan"))
        second = scene.run(_branching(scene, first, title="plan"))

        assert [scene.lineage(one.lineage_id).title for one in (first, second)] == ["plan", "plan #2"]
        assert scene.tip(second.lineage_id).title == "plan #2"

    def test_what_was_said_in_private_stays_private(self, scene: Scene) -> None:
        private, room = scene.enter(), source_at(chat_type="group")
        scene.talk(private, "secret")
        spoken = scene.enter(OTHER_KEY, room)

        of_private = scene.run(_branching(scene, private, source=room))
        of_room = scene.run(_branching(scene, spoken, source=room))

        assert scene.lineage(of_private.lineage_id).room is None
        assert scene.lineage(of_room.lineage_id).room == scene.lineage(spoken.lineage_id).room is not None

    def test_nothing_is_branched_off_in_mid_turn(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        operation = _branching(scene, entry)

        with pytest.raises(LeaseBusy):
            scene.run(operation)
        scene.finish(begun, saying("done"))
        with pytest.raises(Conflict):
            scene.run(attrs.evolve(operation, expected=SessionId("another")))
        with pytest.raises(SessionNotFound):
            scene.run(attrs.evolve(operation, origin=LineageId("nobody")))

        assert len(store.summaries(ALL)) == 1

    def test_run_twice_it_makes_one_branch(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry)
        operation = _branching(scene, entry)

        first, second = scene.run(operation), scene.run(operation)

        assert (first.lineage_id, first.created, second.created) == (second.lineage_id, True, False)
        assert len(scene.rows(first.lineage_id)) == 2
        assert len(store.summaries(ALL)) == 2

    def test_the_effect_of_a_command_runs_once(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry)
        command = scene.accept("/branch", kind="control")

        first = scene.control(_branching(scene, entry), inbox_id=command)
        second = scene.control(_branching(scene, entry), inbox_id=command)

        assert first.lineage_id == second.lineage_id != entry.lineage_id
        assert (first.repeated, second.repeated) == (False, True)
        assert len(store.summaries(ALL)) == 2

    def test_a_branch_outlives_its_origin(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry, "one")
        made = scene.run(_branching(scene, entry))

        scene.run(Delete(lineage_id=entry.lineage_id, now=scene.now))

        assert scene.texts(made.lineage_id) == ["one", "hi"]
        assert scene.lineage(made.lineage_id).branched_from == entry.session_id
        assert store.lineage(entry.lineage_id, ALL) is None

    def test_the_change_feed_tells_of_the_copies(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry, "one")
        _, cursor = store.changes(None)

        made = scene.run(_branching(scene, entry))

        changes, _ = store.changes(cursor)
        told = [(one.kind, one.message_id) for one in changes if one.lineage_id == made.lineage_id]
        rows: list[tuple[str, MessageId | None]] = [("insert", row.id) for row in scene.rows(made.lineage_id)]
        assert told == [*rows, ("lineage", None)]
