"""Sending: parts with keys of their own, marked by the attempt that claimed them and by no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

from hermes_hookspecs.errors import Conflict
from hermes_hookspecs.ids import LineageId
from hermes_hookspecs.inbox import CONTROL, INTERNAL
from hermes_hookspecs.operations import Accept, SplitDelivery
from hermes_hookspecs.outbox import FAILED, REPLY, SENDING, SENT, WAITING, OpenedThread, PartDraft, StoredPart
from hermes_hookspecs.source import KeyPolicy
from hermes_hookspecs.state import StateUpdate
from hermes_hookspecs.testing.scene import KEY, OTHER_KEY, holder_at, key_of, releasing, source_at
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures

if TYPE_CHECKING:
    from hermes_hookspecs.outbox import Delivery
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["SendingTests", "ThreadTests"]


class SendingTests(StoreFixtures):
    """Each part goes out in its place; what nobody knows is called uncertain."""

    def test_parts_get_keys_before_the_first_is_sent(self, store: Store, scene: Scene) -> None:
        claimed = scene.claim(scene.deliver(key="k1"))
        drafts = (PartDraft(text="one"), PartDraft(text="**two**", format="markdown"))

        parts = scene.run(SplitDelivery(delivery_id=claimed.id, attempt=claimed.attempt, parts=drafts, now=scene.now))

        assert parts == (
            StoredPart(index=0, text="one", format="text", key="k1-0"),
            StoredPart(index=1, text="**two**", format="markdown", key="k1-1"),
        )
        assert store.delivery(claimed.id) == attrs.evolve(claimed, parts=parts)

    def test_parts_are_made_once(self, scene: Scene) -> None:
        delivery_id = scene.deliver()
        first = scene.claim(delivery_id, "a", "b")
        scene.mark(first)
        scene.defer(first)
        second = scene.claim(delivery_id)

        parts = scene.split(second, "other", "cut", "now")

        assert [part.text for part in parts] == ["a", "b"]
        assert [part.key for part in parts] == [part.key for part in first.parts]
        assert [part.sent_at for part in parts] == [scene.now, None]

    def test_the_last_part_makes_it_sent(self, store: Store, scene: Scene) -> None:
        delivery_id = scene.deliver()
        scene.defer(scene.claim(delivery_id), error="why")
        claimed = scene.claim(delivery_id, "a", "b")

        first = scene.mark(claimed, 0, platform_message_id="om_1")
        scene.clock.advance(1)
        last = scene.mark(claimed, 1, possible_repeat=True)

        assert (first.status, first.settled_at, first.is_possible_repeat) == (SENDING, None, False)
        assert (last.status, last.settled_at, last.error) == (SENT, scene.now, "")
        assert (last.owner, last.attempt, last.is_possible_repeat) == (claimed.owner, claimed.attempt, True)
        assert [(part.sent_at, part.platform_message_id, part.possible_repeat) for part in last.parts] == [
            (scene.now - 1000, "om_1", False),
            (scene.now, None, True),
        ]
        assert store.delivery(delivery_id) == last

    def test_a_part_is_marked_once(self, store: Store, scene: Scene) -> None:
        claimed = scene.claim(scene.deliver(), "a", "b")
        count = StateUpdate(namespace="p", key="k", value="1")
        first = scene.mark(claimed, 0, platform_message_id="om_1", state=(count,))
        scene.clock.advance(1)

        again = scene.mark(claimed, 0, platform_message_id="om_2", possible_repeat=True, state=(count,))

        assert again == first
        entry = store.state("p", "k", now=scene.now)
        assert entry is not None
        assert entry.version == 1
        last = scene.mark(claimed, 1)
        assert scene.mark(claimed, 1) == last

    @pytest.mark.parametrize("index", [1, 2, -1])
    def test_parts_are_marked_in_order(self, scene: Scene, index: int) -> None:
        claimed = scene.claim(scene.deliver(), "a", "b")

        with pytest.raises(Conflict):
            scene.mark(claimed, index)

        assert scene.delivery(claimed.id) == claimed

    def test_what_was_not_split_is_not_marked(self, scene: Scene) -> None:
        claimed = scene.claim(scene.deliver())

        with pytest.raises(Conflict):
            scene.mark(claimed)

    @pytest.mark.parametrize("write", ["split", "mark", "defer", "fail"])
    def test_only_the_attempt_that_sends_may_write(self, store: Store, scene: Scene, write: str) -> None:
        def run(row: Delivery) -> None:
            if write == "split":
                scene.split(row, "x")
            else:
                getattr(scene, write)(row)

        delivery_id = scene.deliver()
        first = scene.claim(delivery_id, "a", "b")
        second = scene.claim(delivery_id, presumed_dead=True, owner=holder_at("other"))
        ended = scene.send(scene.deliver(target=source_at("oc_2")))
        deferred = scene.defer(scene.claim(scene.deliver(target=source_at("oc_3")), "a"))
        waits = scene.delivery(scene.deliver(target=source_at("oc_4")))
        changed = store.deliveries()

        for row in (first, attrs.evolve(second, attempt=second.attempt + 1), deferred, waits):
            with pytest.raises(Conflict):
                run(row)
        if write != "mark":
            with pytest.raises(Conflict):
                run(ended)

        assert store.deliveries() == changed

    def test_a_part_that_another_attempt_marked_is_a_conflict(self, scene: Scene) -> None:
        delivery_id = scene.deliver()
        scene.mark(scene.claim(delivery_id, "a", "b"))
        second = scene.claim(delivery_id, presumed_dead=True)

        with pytest.raises(Conflict):
            scene.mark(second, 0)

        assert scene.mark(second, 1).status == SENT

    def test_whoever_takes_over_does_not_know_what_went_out(self, scene: Scene) -> None:
        delivery_id = scene.deliver()
        first = scene.claim(delivery_id, "a", "b")
        other = holder_at("other", pid=200)

        second = scene.claim(delivery_id, presumed_dead=True, owner=other)

        assert (second.status, second.attempt, second.owner) == (SENDING, first.attempt + 1, other)
        assert (second.uncertain, second.parts, second.failures) == (True, first.parts, 0)
        assert scene.mark(second, 0).uncertain is False

    def test_nothing_went_out_of_what_was_not_split(self, scene: Scene) -> None:
        delivery_id = scene.deliver()
        scene.claim(delivery_id)

        assert not scene.claim(delivery_id, presumed_dead=True).uncertain

    def test_a_waiting_row_is_no_take_over(self, scene: Scene) -> None:
        delivery_id = scene.deliver()
        scene.defer(scene.claim(delivery_id, "a"))

        assert not scene.claim(delivery_id, presumed_dead=True).uncertain

    def test_a_dead_sender_does_not_make_a_row_wait(self, scene: Scene) -> None:
        delivery_id = scene.deliver()
        scene.claim(delivery_id)

        assert scene.try_claim(delivery_id, presumed_dead=True, now=scene.now - 60_000) is not None

    def test_a_deferred_row_waits_until_it_is_due(self, store: Store, scene: Scene) -> None:
        claimed = scene.claim(scene.deliver(), "a")

        row = scene.defer(claimed, due_at=scene.now + 5, error="slow down")

        assert row == store.delivery(claimed.id)
        assert (row.status, row.due_at, row.error) == (WAITING, scene.now + 5, "slow down")
        assert (row.failures, row.attempt, row.uncertain, row.awaits_inbound) == (1, 1, False, False)
        assert (row.owner, row.settled_at, row.parts) == (claimed.owner, None, claimed.parts)

    def test_only_failures_are_counted(self, scene: Scene) -> None:
        delivery_id = scene.deliver()

        counted = [scene.defer(scene.claim(delivery_id), failed=failed).failures for failed in (True, False, True)]

        assert counted == [1, 1, 2]

    @pytest.mark.parametrize("fields", [{}, {"kind": CONTROL}, {"error": "unreadable"}])
    def test_a_message_that_came_meanwhile_is_not_awaited(
        self, store: Store, scene: Scene, fields: dict[str, str]
    ) -> None:
        claimed = scene.claim(scene.deliver(), "a")
        scene.clock.advance(1)
        scene.accept(**fields)  # type: ignore[arg-type]  # a key among the fields is text, too
        in_hand = store.delivery(claimed.id)

        row = scene.defer(claimed, awaits_inbound=True, due_at=scene.now + 5)

        assert in_hand == claimed
        assert (row.status, row.awaits_inbound, row.due_at) == (WAITING, False, scene.now + 5)
        assert scene.try_claim(claimed.id, now=scene.now + 5) is not None

    def test_a_message_of_another_attempt_or_place_is_no_answer_to_this_one(self, scene: Scene) -> None:
        delivery_id = scene.deliver()
        scene.accept(identities=("a",))
        scene.claim(delivery_id)
        scene.accept()
        second = scene.claim(delivery_id, presumed_dead=True)
        scene.accept(kind=INTERNAL)
        scene.accept(source=source_at("oc_2"))
        scene.run(Accept(drafts=(scene.incoming(identities=("a",)),), now=scene.now))

        assert scene.defer(second, awaits_inbound=True).awaits_inbound

    def test_a_message_counts_for_one_attempt(self, scene: Scene) -> None:
        delivery_id = scene.deliver()
        first = scene.claim(delivery_id)
        scene.accept()
        scene.defer(first, awaits_inbound=True)

        assert scene.defer(scene.claim(delivery_id), awaits_inbound=True).awaits_inbound

    def test_a_part_in_hand_may_have_gone_out(self, scene: Scene) -> None:
        delivery_id = scene.deliver()
        unsplit = scene.defer(scene.claim(delivery_id), maybe_sent=True)
        split = scene.defer(scene.claim(delivery_id, "a", "b"), maybe_sent=True)

        later = scene.defer(scene.claim(delivery_id))

        assert [row.uncertain for row in (unsplit, split, later)] == [False, True, True]
        assert scene.mark(scene.claim(delivery_id)).uncertain is False

    def test_a_failed_row_has_ended(self, store: Store, scene: Scene) -> None:
        claimed = scene.claim(scene.deliver(), "a", "b")
        scene.mark(claimed)
        scene.clock.advance(1)

        row = scene.fail(claimed, error="no such chat")

        assert row == store.delivery(claimed.id)
        assert (row.status, row.settled_at, row.error) == (FAILED, scene.now, "no such chat")
        assert [part.sent_at is not None for part in row.parts] == [True, False]

    def test_state_is_written_with_the_mark_or_not_at_all(self, store: Store, scene: Scene) -> None:
        claimed = scene.claim(scene.deliver(), "a")
        good = StateUpdate(namespace="p", key="a", value='"om_1"')
        wrong = StateUpdate(namespace="p", key="b", value="1", expected_version=7)

        with pytest.raises(Conflict):
            scene.mark(claimed, state=(good, wrong))

        assert scene.delivery(claimed.id) == claimed
        assert store.states("p", now=scene.now) == ()
        assert scene.mark(claimed, state=(good,)).status == SENT
        assert [entry.value for entry in store.states("p", now=scene.now)] == ['"om_1"']


class ThreadTests(StoreFixtures):
    """The thread that a delivery opened leads to its lineage."""

    def _opened(self, **fields: object) -> OpenedThread:
        opened = OpenedThread(
            key=key_of("thread"), key_version=2, source=source_at(thread_id="om_1"), policy=KeyPolicy()
        )
        return attrs.evolve(opened, **fields)  # type: ignore[arg-type]  # fields of the value

    def test_its_key_leads_to_the_lineage(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        opened = self._opened()

        scene.mark(scene.claim(scene.deliver(lineage_id=entry.lineage_id), "a", "b"), opened=opened)

        route = store.route(opened.key)
        assert route is not None
        assert (route.lineage_id, route.key_version, route.source) == (entry.lineage_id, 2, opened.source)
        assert (route.policy, route.created_at, route.updated_at) == (opened.policy, scene.now, scene.now)
        assert store.route(KEY) is not None

    def test_a_key_that_leads_somewhere_is_left_alone(self, store: Store, scene: Scene) -> None:
        entry, other = scene.enter(), scene.enter(OTHER_KEY)
        before = store.route(OTHER_KEY)

        scene.mark(scene.claim(scene.deliver(lineage_id=entry.lineage_id), "a"), opened=self._opened(key=OTHER_KEY))

        assert before is not None
        assert store.route(OTHER_KEY) == before
        assert before.lineage_id == other.lineage_id

    def test_a_reply_to_a_command_opens_nothing_for_the_lineage_that_it_may_have_left(
        self, store: Store, scene: Scene
    ) -> None:
        entry = scene.enter()

        row = scene.mark(
            scene.claim(scene.deliver(lineage_id=entry.lineage_id, kind=REPLY), "a"), opened=self._opened()
        )

        assert row.status == SENT
        assert store.route(key_of("thread")) is None

    def test_a_key_that_leads_nowhere_is_bound(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.enter(OTHER_KEY)
        scene.run(releasing(scene, OTHER_KEY, title="waits"))
        before = store.route(OTHER_KEY)
        scene.clock.advance(1)

        scene.mark(scene.claim(scene.deliver(lineage_id=entry.lineage_id), "a"), opened=self._opened(key=OTHER_KEY))

        route = store.route(OTHER_KEY)
        assert route is not None
        assert before is not None
        assert (route.lineage_id, route.created_at) == (entry.lineage_id, before.created_at)
        assert route.pending_title == "waits"

    def test_what_waits_in_the_thread_already_belongs_to_the_lineage(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        opened = self._opened()
        early = scene.accept("quick", opened.key, source=opened.source)

        scene.mark(scene.claim(scene.deliver(lineage_id=entry.lineage_id), "a"), opened=opened)

        assert [item.id for item in store.waiting(entry.lineage_id)] == [early]

    @pytest.mark.parametrize("lineage_id", [None, LineageId("L-nowhere")])
    def test_without_a_lineage_there_is_no_route(
        self, store: Store, scene: Scene, lineage_id: LineageId | None
    ) -> None:
        claimed = scene.claim(scene.deliver(lineage_id=lineage_id), "a")

        row = scene.mark(claimed, opened=self._opened())

        assert row.status == SENT
        assert store.route(key_of("thread")) is None
