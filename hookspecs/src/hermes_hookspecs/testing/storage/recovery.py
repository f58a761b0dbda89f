"""Recovery: what a dead turn had taken waits again or is done, and a retry stores no question twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_hookspecs.errors import IllegalMessage, LeaseLost
from hermes_hookspecs.ids import InboxId
from hermes_hookspecs.inbox import CLAIMED, PENDING, SETTLED
from hermes_hookspecs.messages import KIND_CLOSING, KIND_RECOVERY, USER, MessageDraft
from hermes_hookspecs.operations import Busy, Changed, NothingWaiting, NotYourTurn
from hermes_hookspecs.testing.scene import ALL, KEY, OTHER_KEY, asking, binding, holder_at, result, saying, source_at
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.operations import Begun
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.sessions import SessionEntry
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["EndingTests", "RecoveryTests"]


def _note(text: str = "[retry]") -> MessageDraft:
    return MessageDraft(role=USER, content=text, kind=KIND_RECOVERY, timestamp=1)


def _died(scene: Scene, entry: SessionEntry, *texts: str) -> Begun:
    """Begin a turn on new messages, of which nothing is heard any more."""
    ids = [scene.accept(text, entry.session_key) for text in texts or ("one",)]
    return scene.begin(entry.lineage_id, *ids)


def _standing(scene: Scene, lineage_id: LineageId) -> tuple[object, ...]:
    """Return what a begin could change."""
    store = scene.store
    items = [store.inbox_item(inbox_id) for turn in store.turns(lineage_id, ALL) for inbox_id in turn.inbox_ids]
    return (
        *(scene.lineage(lineage_id), scene.rows(lineage_id), scene.lease(lineage_id), store.turns(lineage_id, ALL)),
        *(items, store.deliveries(), store.changes(None)[0], store.waiting(lineage_id)),
    )


class RecoveryTests(StoreFixtures):
    """A begin that finds a dead turn decides what becomes of its messages, in one step or not at all."""

    def test_a_message_is_answered_after_all(self, scene: Scene) -> None:
        entry = scene.enter()
        dead = _died(scene, entry)
        (inbox_id,) = dead.turn.inbox_ids
        scene.append(dead, asking("c1"))
        seen = scene.lease(entry.lineage_id).stamp

        begun = scene.begin(entry.lineage_id, inbox_id, presumed_dead=seen, again=frozenset({inbox_id}), note=_note())

        assert begun.interrupted is not None
        assert (begun.turn.attempt, begun.turn.inbox_ids) == (2, (inbox_id,))
        assert [(item.id, item.status, item.attempts) for item in begun.items] == [(inbox_id, CLAIMED, 2)]
        rows = scene.rows(entry.lineage_id)
        assert [row.role for row in rows] == ["user", "assistant", "tool", "assistant", "user"]
        assert [row.inbox_id for row in rows if row.inbox_id is not None] == [inbox_id]
        assert (rows[3].kind, rows[3].turn_id) == (KIND_CLOSING, dead.turn.id)
        assert (rows[4].kind, rows[4].content, rows[4].turn_id) == (KIND_RECOVERY, "[retry]", begun.turn.id)
        assert begun.rows == (rows[0], rows[4])

    def test_a_retry_that_is_run_again_answers_the_same(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        dead = _died(scene, entry, "one", "two")
        ids = dead.turn.inbox_ids
        operation = scene.beginning(
            entry.lineage_id,
            *ids,
            presumed_dead=dead.lease.stamp,
            again=frozenset(ids),
            note=_note(),
            deliveries=(scene.delivering("told"),),
        )
        first = store.apply(operation)
        standing = _standing(scene, entry.lineage_id)

        second = store.apply(operation)

        assert (getattr(second, "turn", None), getattr(second, "rows", None)) == (
            getattr(first, "turn", None),
            getattr(first, "rows", None),
        )
        assert _standing(scene, entry.lineage_id) == standing

    def test_each_try_counts_and_stores_its_own_note(self, scene: Scene) -> None:
        entry = scene.enter()
        begun = _died(scene, entry)
        ids = begun.turn.inbox_ids

        for number in (2, 3):
            begun = scene.begin(
                entry.lineage_id,
                *ids,
                presumed_dead=begun.lease.stamp,
                again=frozenset(ids),
                note=_note(f"[retry {number}]"),
            )
            assert (begun.turn.attempt, begun.items[0].attempts) == (number, number)
            assert [row.content for row in begun.rows] == ["one", f"[retry {number}]"]

        texts = [row.content for row in scene.rows(entry.lineage_id) if row.kind != KIND_CLOSING]
        assert texts == ["one", "[retry 2]", "[retry 3]"]

    def test_only_a_retry_is_noted(self, scene: Scene) -> None:
        entry = scene.enter()
        dead = _died(scene, entry)
        waits = scene.accept("two")

        begun = scene.begin(entry.lineage_id, waits, presumed_dead=dead.lease.stamp, note=_note())

        assert [row.content for row in begun.rows] == ["two"]
        assert KIND_RECOVERY not in [row.kind for row in scene.rows(entry.lineage_id)]
        assert scene.status(dead.turn.inbox_ids[0]) == SETTLED

    def test_new_messages_join_a_retry(self, scene: Scene) -> None:
        entry = scene.enter()
        dead = _died(scene, entry)
        (old,), new = dead.turn.inbox_ids, scene.accept("two")

        begun = scene.begin(
            entry.lineage_id, old, new, presumed_dead=dead.lease.stamp, again=frozenset({old}), note=_note()
        )

        assert [row.content for row in begun.rows] == ["one", "two", "[retry]"]
        assert [item.attempts for item in begun.items] == [2, 1]

    def test_rows_come_back_in_the_order_of_the_drafts(self, scene: Scene) -> None:
        entry = scene.enter()
        older, younger = scene.accept("older"), scene.accept("younger")
        dead = scene.begin(entry.lineage_id, younger, passed_over=frozenset({older}))

        begun = scene.begin(
            entry.lineage_id,
            older,
            younger,
            presumed_dead=dead.lease.stamp,
            again=frozenset({younger}),
            note=_note(),
        )

        assert [row.content for row in begun.rows] == ["older", "younger", "[retry]"]
        assert (begun.turn.attempt, begun.turn.inbox_ids) == (1, (older, younger))

    def test_what_waits_again_stands_in_its_old_place(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        dead = _died(scene, entry, "one", "two", "three")
        first, second, third = dead.turn.inbox_ids
        young = scene.accept("young")

        begun = scene.begin(
            entry.lineage_id, first, presumed_dead=dead.lease.stamp, again=frozenset({first, third}), note=_note()
        )

        assert [item.id for item in store.waiting(entry.lineage_id)] == [third, young]
        assert [scene.item(each).attempts for each in (first, second, third)] == [2, 1, 1]
        assert scene.status(second) == SETTLED
        assert begun.turn.inbox_ids == (first,)

    def test_maintenance_lets_them_wait_again(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        dead = _died(scene, entry)
        told = scene.delivering("told")

        begun = scene.begin(
            entry.lineage_id,
            maintenance=True,
            presumed_dead=dead.lease.stamp,
            again=frozenset(dead.turn.inbox_ids),
            note=_note(),
            deliveries=(told,),
        )

        assert (begun.items, begun.rows) == ((), ())
        assert [item.id for item in store.waiting(entry.lineage_id)] == list(dead.turn.inbox_ids)
        assert [row.key for row in store.deliveries()] == [told.key]
        assert KIND_RECOVERY not in [row.kind for row in scene.rows(entry.lineage_id)]

    def test_only_rows_of_the_dead_turn_wait_again(self, store: Store, scene: Scene) -> None:
        entry, other = scene.enter(), scene.enter(OTHER_KEY)
        done = scene.talk(entry).turn.inbox_ids[0]
        elsewhere = _died(scene, other).turn.inbox_ids[0]
        dead = _died(scene, entry)
        again = frozenset({done, elsewhere, InboxId(999_999)})

        scene.begin(entry.lineage_id, maintenance=True, presumed_dead=dead.lease.stamp, again=again)

        assert (scene.status(done), scene.status(elsewhere)) == (SETTLED, CLAIMED)
        assert store.waiting(entry.lineage_id) == store.waiting(other.lineage_id) == ()

    def test_the_dead_turns_end_is_told_with_the_new_beginning(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        dead = _died(scene, entry)
        waits = scene.accept("two")
        scene.deliver("known", key="k1")
        told = (scene.delivering("other", key="k1"), scene.delivering("told", turn_id=dead.turn.id))

        scene.begin(entry.lineage_id, waits, presumed_dead=dead.lease.stamp, deliveries=told)

        assert [(row.text, row.turn_id) for row in store.deliveries()] == [("told", dead.turn.id), ("known", None)]

    def test_where_no_turn_died_nothing_is_told(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()

        scene.begin(entry.lineage_id, scene.accept(), deliveries=(scene.delivering(),), note=_note())

        assert store.deliveries() == ()
        assert scene.texts(entry.lineage_id) == ["hello"]

    @pytest.mark.parametrize(
        ("answer", "drafts", "is_dead", "is_again"),
        [
            (Busy, ("old",), False, True),
            (NotYourTurn, ("new",), True, True),
            (Changed, ("old",), True, False),
            (Changed, ("old", "missing"), True, True),
            (NothingWaiting, (), True, True),
        ],
    )
    def test_a_begin_that_does_not_begin_writes_nothing(
        self, scene: Scene, answer: type, drafts: Sequence[str], is_dead: bool, is_again: bool
    ) -> None:
        entry = scene.enter()
        dead = _died(scene, entry)
        (old,), new = dead.turn.inbox_ids, scene.accept("two")
        named = {"old": old, "new": new, "missing": InboxId(999_999)}
        before = _standing(scene, entry.lineage_id)

        found = scene.try_begin(
            entry.lineage_id,
            *(named[each] for each in drafts),
            presumed_dead=dead.lease.stamp if is_dead else None,
            again=frozenset({old} if is_again else ()),
            note=_note(),
            deliveries=(scene.delivering(),),
        )

        assert isinstance(found, answer)
        assert _standing(scene, entry.lineage_id) == before

    def test_what_would_wait_again_is_not_passed_by(self, scene: Scene) -> None:
        entry = scene.enter()
        dead = _died(scene, entry)
        (old,), new = dead.turn.inbox_ids, scene.accept("two")
        again = frozenset({old})

        found = scene.try_begin(entry.lineage_id, new, presumed_dead=dead.lease.stamp, again=again)

        assert isinstance(found, NotYourTurn)
        assert found.item.id == old
        begun = scene.begin(
            entry.lineage_id, new, presumed_dead=dead.lease.stamp, again=again, passed_over=frozenset({old})
        )
        assert (begun.turn.inbox_ids, scene.status(old)) == ((new,), PENDING)

    def test_a_private_retry_tells_the_feed_that_the_room_is_gone(self, store: Store, scene: Scene) -> None:
        group = source_at("oc_g", chat_type="group")
        entry = scene.enter(source=group)
        scene.finish(scene.begin(entry.lineage_id, scene.accept(source=group)))
        waits = scene.accept("private")
        _, cursor = store.changes(None)

        scene.begin(entry.lineage_id, waits)

        changes = store.changes(cursor)[0]
        assert sorted(change.kind for change in changes) == ["insert", "lineage"]
        assert {change.at for change in changes} == {scene.now}

    def test_a_bind_elsewhere_tells_the_feed_once(self, store: Store, scene: Scene) -> None:
        entry = scene.enter(source=source_at("oc_g", chat_type="group"))
        _, cursor = store.changes(None)

        for key in (OTHER_KEY, KEY):
            scene.run(binding(scene, key, entry.lineage_id))

        assert [(change.kind, change.lineage_id) for change in store.changes(cursor)[0]] == [
            ("lineage", entry.lineage_id)
        ]


class EndingTests(StoreFixtures):
    """A turn that ends brings its answer, and may leave messages to whoever comes next."""

    def test_the_answer_is_stored_with_the_end(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        answer = scene.delivering("hi", lineage_id=entry.lineage_id, turn_id=begun.turn.id)

        scene.finish(begun, saying("hi"), deliveries=(answer, answer))

        (row,) = store.deliveries()
        assert (row.key, row.text, row.turn_id, row.lineage_id) == (
            answer.key,
            "hi",
            begun.turn.id,
            entry.lineage_id,
        )

    def test_what_a_lost_turn_answers_is_not_delivered(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        scene.revoke(entry.lineage_id)

        with pytest.raises(LeaseLost):
            scene.finish(begun, saying("hi"), deliveries=(scene.delivering(),))

        assert store.deliveries() == ()

    def test_an_illegal_end_delivers_nothing(self, store: Store, scene: Scene) -> None:
        begun = scene.ask(scene.enter())

        with pytest.raises(IllegalMessage):
            scene.finish(begun, result("c9"), deliveries=(scene.delivering(),), again=frozenset(begun.turn.inbox_ids))

        assert store.deliveries() == ()
        assert scene.status(begun.turn.inbox_ids[0]) == CLAIMED

    def test_a_process_that_has_to_leave_lets_its_messages_wait(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = _died(scene, entry, "one", "two")
        first, second = begun.turn.inbox_ids

        scene.finish(begun, outcome="interrupted", reason="the program ends", again=frozenset({second}))

        assert (scene.status(first), scene.status(second)) == (SETTLED, PENDING)
        later = scene.begin(entry.lineage_id, second, note=_note(), holder=holder_at("pts-2", pid=200))
        assert [row.content for row in later.rows] == ["two", "[retry]"]
        assert later.turn.attempt == 2
        assert store.waiting(entry.lineage_id) == ()

    def test_a_revoke_brings_what_it_tells(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = _died(scene, entry, "one", "two")
        first, second = begun.turn.inbox_ids

        scene.revoke(entry.lineage_id, again=frozenset({first}), deliveries=(scene.delivering("stopped"),))

        assert (scene.status(first), scene.status(second)) == (PENDING, SETTLED)
        assert [row.text for row in store.deliveries()] == ["stopped"]

    def test_a_revoke_that_ends_no_turn_tells_nothing(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        ids = frozenset(begun.turn.inbox_ids)
        other = begun.lease.stamp
        scene.finish(begun)

        for expected in (None, other):
            told = (scene.delivering(),)
            assert scene.revoke(entry.lineage_id, expected=expected, again=ids, deliveries=told) is None

        assert store.deliveries() == ()
        assert [scene.status(each) for each in ids] == [SETTLED]
