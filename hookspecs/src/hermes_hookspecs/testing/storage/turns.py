"""The beginning of a turn: whose turn it is, what is taken and stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

from hermes_hookspecs.errors import SessionNotFound
from hermes_hookspecs.ids import InboxId, LineageId
from hermes_hookspecs.messages import (
    INTERRUPTED_RESULT,
    KIND_CLOSING,
    KIND_INTERRUPTED,
    USER,
    MessageDraft,
    closing_text,
)
from hermes_hookspecs.operations import Accept, Busy, Changed, NothingWaiting, NotYourTurn, Snapshot, Withdraw
from hermes_hookspecs.testing.scene import (
    ALL,
    OTHER_KEY,
    asking,
    binding,
    holder_at,
    releasing,
    result,
    source_at,
)
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures

if TYPE_CHECKING:
    from hermes_hookspecs.operations import Begun
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["BeginTests"]


def _break_off(scene: Scene, begun: Begun, end: str) -> None:
    """End a turn in one of the ways in which it has no answer."""
    lineage_id = begun.turn.lineage_id
    if end == "interrupted":
        scene.finish(scene.begin(lineage_id, maintenance=True, presumed_dead=begun.lease.stamp))
    elif end == "revoked":
        scene.revoke(lineage_id)
    else:
        scene.finish(begun, outcome=end)


class BeginTests(StoreFixtures):
    """A begin takes the lease and the oldest messages, or says why not."""

    def test_a_begin_takes_lease_message_and_turn(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        inbox_id = scene.accept("hello")
        scene.clock.advance(10)
        holder = holder_at()

        begun = scene.begin(entry.lineage_id, inbox_id, holder=holder)

        turn = begun.turn
        assert (turn.lineage_id, turn.session_id, turn.token) == (entry.lineage_id, entry.session_id, 1)
        assert (turn.entrance, turn.session_key, turn.user_id, turn.user_name) == (
            holder.entrance,
            holder.session_key,
            "ou_1",
            "OU_1",
        )
        assert (turn.inbox_ids, turn.attempt) == ((inbox_id,), 1)
        assert (turn.started_at, turn.ended_at, turn.outcome, turn.reason) == (scene.now, None, "active", "")
        assert store.turn(turn.id) == turn
        assert begun.lease == store.lease(entry.lineage_id)
        assert (begun.lease.token, begun.lease.renewals, begun.lease.holder) == (1, 0, holder)
        assert (begun.lease.acquired_at, begun.lease.expires_at) == (scene.now, scene.now + 30_000)
        assert (begun.interrupted, begun.version, begun.session.id) == (None, 2, entry.session_id)
        assert [(item.id, item.status, item.attempts) for item in begun.items] == [(inbox_id, "claimed", 1)]
        assert scene.status(inbox_id) == "claimed"

    def test_a_begin_stores_the_user_rows_it_answers(self, scene: Scene) -> None:
        entry = scene.enter()
        inbox_id = scene.accept("hello")

        begun = scene.begin(entry.lineage_id, inbox_id)

        (row,) = scene.rows(entry.lineage_id)
        assert begun.rows == (row,)
        assert (row.role, row.content, row.inbox_id, row.turn_id) == (USER, "hello", inbox_id, begun.turn.id)
        assert (row.lineage_id, row.session_id, row.hidden) == (entry.lineage_id, entry.session_id, False)
        lineage = scene.lineage(entry.lineage_id)
        assert (lineage.message_count, lineage.turn_count, lineage.preview) == (1, 1, "hello")
        assert lineage.last_activity == scene.now

    def test_a_begin_run_again_returns_its_own_turn(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        operation = scene.beginning(entry.lineage_id, scene.accept())
        first = store.apply(operation)

        second = store.apply(operation)

        assert second == first
        assert len(scene.rows(entry.lineage_id)) == 1

    def test_a_begin_run_again_by_somebody_else_is_busy(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        operation = scene.beginning(entry.lineage_id, scene.accept())
        first = scene.begin(entry.lineage_id, drafts=operation.drafts, turn_id=operation.turn_id)

        found = store.apply(attrs.evolve(operation, holder=holder_at("pts-2", pid=200)))

        assert found == Busy(lease=first.lease)
        assert store.lease(entry.lineage_id) == first.lease
        assert store.turns(entry.lineage_id, ALL) == (first.turn,)

    def test_rows_of_one_sender_are_answered_together(self, scene: Scene) -> None:
        entry = scene.enter()
        ids = [scene.accept(text) for text in "abc"]

        begun = scene.begin(entry.lineage_id, *ids[:2])

        assert begun.turn.inbox_ids == tuple(ids[:2])
        assert [row.content for row in begun.rows] == ["a", "b"]
        assert [scene.status(each) for each in ids] == ["claimed", "claimed", "pending"]

    def test_a_user_row_that_is_there_already_is_not_stored_again(self, scene: Scene) -> None:
        entry = scene.enter()
        tried, waits = scene.accept("two"), scene.accept("three")
        row = MessageDraft(role=USER, content="two", sent="first: two", timestamp=7, inbox_id=tried)
        first = scene.begin(entry.lineage_id, drafts=(row,))
        scene.finish(first, again=frozenset({tried}))

        begun = scene.begin(entry.lineage_id, tried, waits)

        assert [(row.inbox_id, row.sent, row.turn_id) for row in begun.rows] == [
            (tried, "first: two", first.turn.id),
            (waits, None, begun.turn.id),
        ]
        assert scene.texts(entry.lineage_id) == ["two", "three"]
        assert scene.lineage(entry.lineage_id).message_count == scene.tip(entry.lineage_id).message_count == 2

    @pytest.mark.parametrize("end", ["interrupted", "revoked", "failed"])
    def test_a_message_whose_turn_broke_off_does_not_wait_again(self, store: Store, scene: Scene, end: str) -> None:
        entry = scene.enter()
        broken = scene.ask(entry)
        (inbox_id,) = broken.turn.inbox_ids
        _break_off(scene, broken, end)
        scene.accept("next")

        assert store.apply(Withdraw(ids=(inbox_id,), now=scene.now)) == 0
        assert scene.try_begin(entry.lineage_id, inbox_id) == Changed()
        assert scene.status(inbox_id) == "done"

    def test_an_internal_message_is_claimed_like_any_other(self, scene: Scene) -> None:
        entry = scene.enter()
        inbox_id = scene.accept("job is done", kind="internal")

        assert scene.begin(entry.lineage_id, inbox_id).items[0].kind == "internal"

    def test_a_begin_that_does_not_touch_moves_no_clock(self, scene: Scene) -> None:
        entry = scene.enter()
        scene.clock.advance(60)

        scene.finish(scene.ask(entry, touch=False), touch=False)

        assert scene.lineage(entry.lineage_id).last_activity == entry.updated_at

    def test_a_younger_row_waits_for_the_older_one(self, scene: Scene) -> None:
        entry = scene.enter()
        scene.run(binding(scene, OTHER_KEY, entry.lineage_id))
        older, younger = scene.accept("a", OTHER_KEY), scene.accept("b")

        found = scene.try_begin(entry.lineage_id, younger)

        assert isinstance(found, NotYourTurn)
        assert found.item.id == older
        assert scene.rows(entry.lineage_id) == ()
        assert scene.lineage(entry.lineage_id).version == 1

    def test_a_row_that_is_passed_over_keeps_its_place(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        older, younger = scene.accept("a"), scene.accept("b")

        begun = scene.begin(entry.lineage_id, younger, passed_over=frozenset({older}))
        scene.finish(begun)

        assert [item.id for item in store.waiting(entry.lineage_id)] == [older]
        assert isinstance(scene.try_begin(entry.lineage_id, scene.accept("c")), NotYourTurn)

    def test_an_empty_queue_has_nothing_to_claim(self, scene: Scene) -> None:
        entry = scene.enter()
        answered = scene.ask(entry)
        scene.finish(answered)

        assert scene.try_begin(entry.lineage_id, *answered.turn.inbox_ids) == NothingWaiting()

    def test_a_begin_without_drafts_claims_nothing(self, scene: Scene) -> None:
        entry = scene.enter()
        scene.accept()

        assert scene.try_begin(entry.lineage_id) == NothingWaiting()

    def test_a_row_that_is_gone_makes_the_caller_look_again(self, scene: Scene) -> None:
        entry = scene.enter()
        answered = scene.talk(entry)
        scene.accept("next")

        assert scene.try_begin(entry.lineage_id, *answered.turn.inbox_ids) == Changed()
        assert scene.try_begin(entry.lineage_id, InboxId(999_999)) == Changed()

    @pytest.mark.parametrize(
        "second",
        [
            {"session_key": OTHER_KEY},
            {"source": source_at(user="ou_2")},
            {"source": source_at(thread_id="t_1")},
            {"source": source_at("oc_room", chat_type="group")},
            {"source": source_at(scope_id="T2")},
            {"source": source_at(account_id="second")},
        ],
        ids=["another-key", "another-sender", "another-thread", "another-chat", "another-scope", "another-account"],
    )
    def test_rows_of_different_principals_are_not_answered_together(
        self, scene: Scene, second: dict[str, object]
    ) -> None:
        entry = scene.enter()
        scene.run(binding(scene, OTHER_KEY, entry.lineage_id))
        first = scene.accept("a")
        draft = attrs.evolve(scene.incoming("b"), **second)  # type: ignore[arg-type]  # fields of the draft, as above
        (taken,) = scene.run(Accept(drafts=(draft,), now=scene.now))
        other = taken.id
        assert other is not None

        assert scene.try_begin(entry.lineage_id, first, other) == Changed()
        assert scene.status(first) == "pending"

    def test_rows_that_do_not_follow_directly_are_not_answered_together(self, scene: Scene) -> None:
        entry = scene.enter()
        ids = [scene.accept(text) for text in "abc"]

        assert scene.try_begin(entry.lineage_id, ids[0], ids[2]) == Changed()
        assert scene.try_begin(entry.lineage_id, ids[0], ids[0]) == Changed()

    def test_a_held_lease_is_busy(self, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        waits = scene.accept()

        found = scene.try_begin(entry.lineage_id, waits, holder=holder_at("pts-2", pid=200))

        assert found == Busy(lease=begun.lease)
        assert scene.status(waits) == "pending"

    def test_a_lease_is_busy_before_anything_else_is_looked_at(self, scene: Scene) -> None:
        entry = scene.enter()
        scene.ask(entry)

        assert isinstance(scene.try_begin(entry.lineage_id), Busy)
        assert isinstance(scene.try_begin(entry.lineage_id, maintenance=True), Busy)

    def test_a_dead_holder_is_closed_and_replaced(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        dead = scene.ask(entry)
        scene.append(dead, asking("c1", "c2"))
        scene.append(dead, result("c2"))
        waits = scene.accept("next")
        scene.clock.advance(60)

        begun = scene.begin(entry.lineage_id, waits, presumed_dead=scene.lease(entry.lineage_id).stamp)

        assert begun.interrupted == store.turn(dead.turn.id)
        assert begun.interrupted is not None
        assert (begun.interrupted.outcome, begun.interrupted.ended_at) == ("interrupted", scene.now)
        assert begun.interrupted.reason == "its process ended"
        assert begun.turn.token == dead.turn.token + 1
        assert scene.status(dead.turn.inbox_ids[0]) == "done"
        rows = scene.rows(entry.lineage_id)
        assert [row.role for row in rows] == ["user", "assistant", "tool", "tool", "assistant", "user"]
        synthetic, closing = rows[3], rows[4]
        assert (synthetic.tool_call_id, synthetic.tool_name) == ("c1", "tool-c1")
        assert (synthetic.content, synthetic.kind) == (INTERRUPTED_RESULT, KIND_INTERRUPTED)
        assert closing.content == closing_text("interrupted", "its process ended")
        assert (closing.kind, closing.turn_id) == (KIND_CLOSING, dead.turn.id)
        assert (synthetic.timestamp, synthetic.turn_id) == (scene.now, dead.turn.id)
        assert begun.version == dead.version + 3

    @pytest.mark.parametrize(("token", "renewals"), [(0, 1), (1, 0), (-1, 0)])
    def test_only_the_exact_stamp_is_presumed_dead(self, scene: Scene, token: int, renewals: int) -> None:
        entry = scene.enter()
        stamp = scene.ask(entry).lease.stamp
        other = attrs.evolve(stamp, token=stamp.token + token, renewals=stamp.renewals + renewals)

        found = scene.try_begin(entry.lineage_id, scene.accept(), presumed_dead=other)

        assert isinstance(found, Busy)

    def test_a_turn_reopens_an_ended_session(self, scene: Scene) -> None:
        entry = scene.enter()
        scene.run(releasing(scene))
        version = scene.lineage(entry.lineage_id).version

        begun = scene.ask(entry)

        tip = scene.tip(entry.lineage_id)
        assert (tip.ended_at, tip.end_reason) == (None, None)
        assert begun.session == tip
        assert begun.version == version + 1

    def test_maintenance_reopens_nothing(self, scene: Scene) -> None:
        entry = scene.enter()
        scene.run(releasing(scene))

        scene.begin(entry.lineage_id, maintenance=True)

        assert scene.tip(entry.lineage_id).end_reason == "session_reset"

    def test_maintenance_claims_nothing(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        waits = scene.accept()

        begun = scene.begin(entry.lineage_id, maintenance=True, holder=holder_at(key=None))

        assert (begun.items, begun.rows, begun.turn.inbox_ids) == ((), (), ())
        assert (begun.turn.session_key, begun.turn.user_id) == (None, None)
        assert [item.id for item in store.waiting(entry.lineage_id)] == [waits]

    def test_the_first_turn_freezes_what_the_model_is_told(self, scene: Scene) -> None:
        entry = scene.enter()
        first = Snapshot(model="m1", model_config="{}", system_prompt="be kind")

        begun = scene.ask(entry, snapshot=first)
        scene.finish(begun)
        scene.ask(entry, snapshot=Snapshot(model="m2", system_prompt="be rude"))

        session = scene.tip(entry.lineage_id)
        assert (session.model, session.model_config, session.system_prompt) == ("m1", "{}", "be kind")
        assert begun.session.system_prompt == "be kind"

    def test_a_half_empty_snapshot_is_frozen_too(self, scene: Scene) -> None:
        entry = scene.enter()

        scene.finish(scene.ask(entry, snapshot=Snapshot(model="m1")))
        scene.finish(scene.ask(entry, snapshot=Snapshot(system_prompt="late")))

        assert scene.tip(entry.lineage_id).system_prompt is None

    def test_a_configuration_that_comes_later_is_added_once_and_alone(self, scene: Scene) -> None:
        entry = scene.enter()
        scene.finish(scene.ask(entry, snapshot=Snapshot(model="m1")))

        begun = scene.ask(entry, snapshot=Snapshot(model="m2", model_config="{}", system_prompt="late"))
        scene.finish(begun)
        scene.ask(entry, snapshot=Snapshot(model="m3", model_config="[]", system_prompt="later"))

        assert begun.session.model_config == "{}"
        session = scene.tip(entry.lineage_id)
        assert (session.model, session.model_config, session.system_prompt) == ("m1", "{}", None)

    def test_a_lineage_that_is_not_there_has_no_turn(self, scene: Scene) -> None:
        with pytest.raises(SessionNotFound):
            scene.try_begin(LineageId("L-nowhere"))

    def test_an_exact_sent_text_is_kept_beside_the_content(self, scene: Scene) -> None:
        entry = scene.enter()
        inbox_id = scene.accept("hello")
        draft = MessageDraft(role=USER, content="hello", sent="[ou_1] hello", timestamp=5, inbox_id=inbox_id)

        scene.begin(entry.lineage_id, inbox_id, drafts=(draft,))

        (row,) = scene.rows(entry.lineage_id)
        assert (row.content, row.sent, row.timestamp) == ("hello", "[ou_1] hello", 5)
