"""Sweeping: what has ended and is old goes, in bounded steps; what waits never does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_hookspecs.inbox import CLAIMED, CONTROL, PENDING
from hermes_hookspecs.operations import (
    Accept,
    Delete,
    Deliver,
    DropDelivery,
    PutState,
    RetryDelivery,
    Sweep,
    Swept,
    Withdraw,
)
from hermes_hookspecs.outbox import SENT
from hermes_hookspecs.state import StateUpdate
from hermes_hookspecs.testing.scene import KEY, OTHER_KEY, key_of, releasing, saying, source_at
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures

if TYPE_CHECKING:
    from hermes_hookspecs.ids import InboxId
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["SweepTests"]


def _sweep(scene: Scene, *, inbox: int = 0, outbox: int = 0, changes: int = 0, limit: int = 500) -> Swept:
    """Sweep what ended before these times; nothing of a kind that is not named."""
    return scene.run(
        Sweep(now=scene.now, inbox_before=inbox, outbox_before=outbox, changes_before=changes, limit=limit)
    )


def _settled_in_every_way(scene: Scene) -> list[InboxId]:
    entry = scene.enter()
    answered = scene.talk(entry).turn.inbox_ids[0]
    withdrawn, unreadable = scene.accept("b"), scene.accept("", error="unreadable")
    scene.run(Withdraw(ids=(withdrawn,), now=scene.now))
    superseded = scene.accept("c")
    scene.run(releasing(scene))
    settled, replied = scene.accept("/a", kind=CONTROL), scene.accept("/b", kind=CONTROL)
    scene.control(None, inbox_id=settled, settle=True)
    scene.run(Deliver(drafts=(), now=scene.now, settle=replied))
    running = scene.ask(scene.enter())
    steered = scene.accept("d")
    scene.append(running, scene.beginning(entry.lineage_id, steered).drafts[0])
    return [answered, withdrawn, unreadable, superseded, settled, replied, steered]


class SweepTests(StoreFixtures):
    """Nothing goes that anybody still needs."""

    def test_settled_messages_go_once_they_are_old(self, store: Store, scene: Scene) -> None:
        settled = _settled_in_every_way(scene)

        assert _sweep(scene, inbox=scene.now) == Swept()
        swept = _sweep(scene, inbox=scene.now + 1)

        assert swept == Swept(inbox=len(settled))
        assert [store.inbox_item(each) for each in settled] == [None] * len(settled)
        assert store.quarantined() == ()
        assert _sweep(scene, inbox=scene.now + 1) == Swept()

    def test_age_counts_from_the_end_not_from_acceptance(self, store: Store, scene: Scene) -> None:
        waits = scene.accept()
        before = scene.now
        scene.clock.advance(60)
        scene.run(Withdraw(ids=(waits,), now=scene.now))

        assert _sweep(scene, inbox=before + 1) == Swept()

        assert store.inbox_item(waits) is not None
        assert _sweep(scene, inbox=scene.now + 1) == Swept(inbox=1)

    def test_what_waits_runs_or_is_half_applied_stays(self, scene: Scene) -> None:
        entry = scene.enter()
        running = scene.ask(entry)
        waits, command, applied = scene.accept(), scene.accept(kind=CONTROL), scene.accept(kind=CONTROL)
        unrouted = scene.accept(key=key_of("nowhere"))
        scene.control(None, inbox_id=applied)

        assert _sweep(scene, inbox=scene.now + 10**9) == Swept()

        assert scene.status(running.turn.inbox_ids[0]) == CLAIMED
        assert [scene.status(each) for each in (waits, command, unrouted)] == [PENDING] * 3

    def test_what_waits_again_is_not_settled(self, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        scene.finish(begun, again=frozenset(begun.turn.inbox_ids))

        assert _sweep(scene, inbox=scene.now + 10**9) == Swept()

    def test_identities_go_with_their_rows(self, scene: Scene) -> None:
        gone, kept = scene.accept(identities=("a", "b")), scene.accept(identities=("c",))
        scene.run(Withdraw(ids=(gone,), now=scene.now))
        _sweep(scene, inbox=scene.now + 1)

        drafts = tuple(scene.incoming(identities=(identity,)) for identity in "abc")
        first, second, third = scene.run(Accept(drafts=drafts, now=scene.now))

        assert (first.duplicate, second.duplicate) == (False, False)
        assert (third.id, third.duplicate) == (kept, True)

    def test_a_row_stays_as_long_as_an_answer_of_its_key_may_be_the_one_to_it(self, store: Store, scene: Scene) -> None:
        older, answered, together, elsewhere = (
            scene.accept(text, key) for text, key in (("a", KEY), ("b", KEY), ("c", KEY), ("d", OTHER_KEY))
        )
        delivery = scene.deliver(inbox_id=answered)
        ids = (older, answered, together, elsewhere)
        scene.run(Withdraw(ids=ids, now=scene.now))
        scene.clock.advance(1)

        swept = _sweep(scene, inbox=scene.now, limit=2)

        assert (swept.inbox, swept.more) == (2, True)
        assert [store.inbox_item(each) is None for each in ids] == [True, False, False, True]
        scene.run(DropDelivery(delivery_id=delivery, now=scene.now))
        assert _sweep(scene, inbox=scene.now).inbox == 2

    def test_a_transcript_outlives_its_inbox_rows(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.talk(entry)

        _sweep(scene, inbox=scene.now + 1)

        assert scene.texts(entry.lineage_id) == ["hello", "hi"]
        turn = store.turn(begun.turn.id)
        assert turn is not None
        assert turn.inbox_ids == begun.turn.inbox_ids
        assert scene.accept() > begun.turn.inbox_ids[0]

    def test_ended_deliveries_go_once_they_are_old(self, store: Store, scene: Scene) -> None:
        sent, failed, dropped = (scene.deliver(target=source_at(chat), key=chat) for chat in "abc")
        scene.mark(scene.claim(sent, "x"))
        scene.fail(scene.claim(failed, "x", "y"))
        scene.run(DropDelivery(delivery_id=dropped, now=scene.now))

        assert _sweep(scene, outbox=scene.now) == Swept()
        assert _sweep(scene, outbox=scene.now + 1) == Swept(outbox=3)

        assert store.deliveries() == ()
        assert store.delivery_by_key("a") is None
        assert scene.deliver(key="a") > dropped

    def test_what_is_to_be_sent_stays(self, store: Store, scene: Scene) -> None:
        waits, sending, deferred, retried = (scene.deliver(target=source_at(chat)) for chat in "abcd")
        scene.claim(sending, "x")
        scene.defer(scene.claim(deferred, "x"), awaits_inbound=True)
        scene.fail(scene.claim(retried))
        scene.run(RetryDelivery(delivery_id=retried, now=scene.now))

        assert _sweep(scene, outbox=scene.now + 10**9) == Swept()

        assert {row.id for row in store.deliveries()} == {waits, sending, deferred, retried}

    def test_expired_state_goes(self, store: Store, scene: Scene) -> None:
        updates = tuple(
            StateUpdate(namespace="p", key=key, value="1", expires_at=expires_at)
            for key, expires_at in (("a", scene.now), ("b", scene.now + 1), ("c", None))
        )
        scene.run(PutState(updates=updates, now=scene.now - 5))

        assert _sweep(scene) == Swept(state=1)

        assert [entry.key for entry in store.states("p", now=scene.now - 5)] == ["b", "c"]
        scene.clock.advance(1)
        assert _sweep(scene) == Swept(state=1)

    def test_a_step_is_bounded_and_says_that_there_is_more(self, store: Store, scene: Scene) -> None:
        ids = [scene.accept() for _ in range(3)]
        for inbox_id in ids:
            scene.run(Withdraw(ids=(inbox_id,), now=scene.now))
            scene.clock.advance(1)
        deliveries = [scene.deliver(target=source_at(chat)) for chat in "abc"]
        for delivery_id in deliveries:
            assert scene.send(delivery_id).status == SENT
            scene.clock.advance(1)
        later = scene.now + 1

        steps = [_sweep(scene, inbox=later, outbox=later, limit=2) for _ in range(3)]

        assert steps == [Swept(inbox=2, outbox=2, more=True), Swept(inbox=1, outbox=1), Swept()]

    @pytest.mark.parametrize("kind", ["inbox", "outbox"])
    def test_the_oldest_go_first(self, store: Store, scene: Scene, kind: str) -> None:
        ids = [scene.accept() for _ in range(2)]
        deliveries = [scene.deliver(target=source_at(chat)) for chat in "ab"]
        for number in (0, 1):
            scene.run(Withdraw(ids=(ids[number],), now=scene.now))
            scene.send(deliveries[number])
            scene.clock.advance(1)

        if kind == "inbox":
            _sweep(scene, inbox=scene.now + 1, limit=1)
            assert [store.inbox_item(each) is None for each in ids] == [True, False]
        else:
            _sweep(scene, outbox=scene.now + 1, limit=1)
            assert [store.delivery(each) is None for each in deliveries] == [True, False]

    def test_old_changes_go_and_a_cursor_that_needs_them_is_told(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        start, begun = store.changes(None)[1], scene.ask(entry)
        scene.append(begun, saying("old"))
        every, kept = store.changes(None)
        scene.clock.advance(10)
        scene.append(begun, saying("new"))
        told = store.changes(kept)

        assert _sweep(scene, changes=every[0].at) == Swept()
        assert _sweep(scene, changes=every[0].at + 1, limit=1) == Swept(changes=1, more=True)
        assert _sweep(scene, changes=every[-1].at + 1) == Swept(changes=len(every) - 1)

        assert store.changes(None) == store.changes(kept) == told
        with pytest.raises(ValueError, match="gone"):
            store.changes(start)
        assert scene.texts(entry.lineage_id)[-2:] == ["old", "new"]

    def test_a_feed_that_was_swept_goes_on(self, store: Store, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        _sweep(scene, changes=scene.now + 1)
        nothing, cursor = store.changes(None)

        scene.append(begun, saying("new"))

        (change,) = store.changes(cursor)[0]
        assert nothing == ()
        assert (change.kind, change.lineage_id) == ("insert", begun.turn.lineage_id)
        assert store.changes(None)[0] == (change,)

    def test_the_name_of_what_was_deleted_is_told_as_long_as_it_is_needed(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.run(Delete(lineage_id=entry.lineage_id, now=scene.now))
        _, cursor = store.changes(None, limit=1)

        _sweep(scene, changes=scene.now + 1, limit=1)

        assert {change.lineage_id for change in store.changes(cursor)[0]} == {entry.lineage_id}

    def test_a_sweep_of_everything_reaches_no_other_key(self, store: Store, scene: Scene) -> None:
        scene.enter(OTHER_KEY)
        scene.accept(key=OTHER_KEY)
        settled = _settled_in_every_way(scene)

        assert _sweep(scene, inbox=scene.now + 1).inbox == len(settled)

        assert len(store.waiting_of_key(OTHER_KEY)) == 1
        assert store.route(KEY) is not None
