"""The outbox: one row per key, one order per address, one attempt at a time, and what people do with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

from hermes_hookspecs.errors import Conflict, DeliveryNotFound
from hermes_hookspecs.ids import DeliveryId, LineageId, TurnId
from hermes_hookspecs.inbox import CONTROL, INTERNAL
from hermes_hookspecs.operations import Accept, ClaimDelivery, Delete, Deliver, DropDelivery, RetryDelivery
from hermes_hookspecs.outbox import DROPPED, FAILED, NOTICE, SENDING, SENT, WAITING, Delivery, DeliveryDraft
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.testing.scene import OTHER_KEY, holder_at, source_at
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures

if TYPE_CHECKING:
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["InboundTests", "OutboxTests", "PeopleTests"]

ELSEWHERE = {
    "chat": source_at("oc_2"),
    "thread": source_at(thread_id="t_1"),
    "scope": source_at(scope_id="T1"),
    "account": source_at(account_id="second"),
    "platform": source_at(platform="slack"),
}
"""Addresses beside that of ``source_at()``."""
FEISHU = Entrance("feishu")


def _drop(scene: Scene, delivery_id: DeliveryId, presumed_dead: int | None = None) -> Delivery:
    return scene.run(DropDelivery(delivery_id=delivery_id, now=scene.now, presumed_dead=presumed_dead))


def _retry(scene: Scene, delivery_id: DeliveryId, presumed_dead: int | None = None) -> Delivery:
    return scene.run(RetryDelivery(delivery_id=delivery_id, now=scene.now, presumed_dead=presumed_dead))


class OutboxTests(StoreFixtures):
    """What is stored once is sent in its place."""

    def test_a_delivery_waits_with_all_its_fields(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        inbox_id = scene.accept()
        draft = DeliveryDraft(
            key="k1",
            target=source_at(thread_id="t_1", message_id="m_1", user_name="Ada"),
            text="answer 日志",
            session_key=entry.session_key,
            lineage_id=entry.lineage_id,
            turn_id=TurnId("T1"),
            inbox_id=inbox_id,
            kind=NOTICE,
        )

        (delivery_id,) = scene.run(Deliver(drafts=(draft,), now=scene.now))

        stored = Delivery(
            id=delivery_id,
            **attrs.asdict(draft, recurse=False),
            status=WAITING,
            attempt=0,
            failures=0,
            owner=None,
            created_at=scene.now,
            due_at=scene.now,
            awaits_inbound=False,
            uncertain=False,
            error="",
            settled_at=None,
            parts=(),
        )
        assert store.delivery(delivery_id) == store.delivery_by_key("k1") == stored
        assert not stored.is_possible_repeat

    def test_a_known_key_is_not_stored_again(self, store: Store, scene: Scene) -> None:
        first = scene.deliver("answer", key="k1")
        drafts = tuple(scene.delivering(text, key=key) for text, key in (("b", "k2"), ("other", "k1"), ("c", "k2")))

        ids = scene.run(Deliver(drafts=drafts, now=scene.now))

        assert ids == (ids[0], first, ids[0])
        assert [row.text for row in store.deliveries()] == ["b", "answer"]

    def test_a_key_is_known_after_its_delivery_has_ended(self, store: Store, scene: Scene) -> None:
        first = scene.deliver(key="k1")
        scene.send(first)

        assert scene.deliver("again", key="k1") == first

        assert [(row.text, row.status) for row in store.deliveries()] == [("answer", SENT)]

    def test_deliveries_are_listed_newest_first(self, store: Store, scene: Scene) -> None:
        sent, failed, waits = (scene.deliver(target=source_at(chat)) for chat in "abc")
        scene.send(sent)
        scene.fail(scene.claim(failed))

        assert [row.id for row in store.deliveries()] == [waits, failed, sent]
        assert [row.id for row in store.deliveries(limit=2)] == [waits, failed]
        assert [row.id for row in store.deliveries(statuses=(SENT, WAITING))] == [waits, sent]
        assert [row.id for row in store.deliveries(statuses=(SENT, WAITING), limit=1)] == [waits]
        assert store.deliveries(statuses=(DROPPED,)) == ()

    def test_an_unknown_delivery_is_none(self, store: Store) -> None:
        assert (store.delivery(DeliveryId(999_999)), store.delivery_by_key("k")) == (None, None)

    def test_a_claim_takes_the_row_for_one_attempt(self, store: Store, scene: Scene) -> None:
        delivery_id = scene.deliver()
        owner = holder_at("sender", pid=7)

        claimed = scene.try_claim(delivery_id, owner=owner)

        assert claimed == store.delivery(delivery_id)
        assert claimed is not None
        assert (claimed.status, claimed.attempt, claimed.owner, claimed.uncertain) == (SENDING, 1, owner, False)

    @pytest.mark.parametrize("fields", [{}, {"expected_attempt": 0}, {"presumed_dead": True, "expected_attempt": 0}])
    def test_a_second_claim_gets_nothing(self, store: Store, scene: Scene, fields: dict[str, object]) -> None:
        claimed = scene.claim(scene.deliver())

        assert scene.try_claim(claimed.id, owner=holder_at("other"), **fields) is None

        assert store.delivery(claimed.id) == claimed

    def test_a_claim_of_an_unknown_or_ended_row_gets_nothing(self, scene: Scene) -> None:
        sent, failed, dropped = (scene.deliver(target=source_at(chat)) for chat in "abc")
        scene.send(sent)
        scene.fail(scene.claim(failed))
        _drop(scene, dropped)

        for delivery_id in (sent, failed, dropped):
            assert scene.try_claim(delivery_id, presumed_dead=True) is None
        unknown = ClaimDelivery(delivery_id=DeliveryId(999_999), owner=holder_at(), expected_attempt=0, now=scene.now)
        assert scene.run(unknown) is None

    def test_a_row_is_not_sent_before_it_is_due(self, scene: Scene) -> None:
        delivery_id = scene.deliver()
        scene.defer(scene.claim(delivery_id), due_at=scene.now + 1000)

        assert scene.try_claim(delivery_id, now=scene.now + 999) is None
        assert scene.try_claim(delivery_id, now=scene.now + 1000) is not None

    @pytest.mark.parametrize("state", ["waiting", "sending", "deferred", "awaiting"])
    def test_a_younger_row_waits_behind_an_open_one(self, store: Store, scene: Scene, state: str) -> None:
        older, younger = scene.deliver("older"), scene.deliver("younger")
        if state != "waiting":
            claimed = scene.claim(older)
            if state == "deferred":
                scene.defer(claimed, due_at=scene.now + 60_000)
            elif state == "awaiting":
                scene.defer(claimed, awaits_inbound=True)

        assert scene.try_claim(younger) is None
        assert scene.try_claim(younger, presumed_dead=True) is None
        assert [row.id for row in store.next_deliveries([FEISHU])] == [older]

    @pytest.mark.parametrize("end", [SENT, FAILED, DROPPED])
    def test_a_row_that_has_ended_lets_the_next_one_go(self, store: Store, scene: Scene, end: str) -> None:
        older, younger = scene.deliver("older"), scene.deliver("younger")
        if end == DROPPED:
            _drop(scene, older)
        elif end == SENT:
            scene.send(older)
        else:
            scene.fail(scene.claim(older))

        assert [row.id for row in store.next_deliveries([FEISHU])] == [younger]
        assert scene.try_claim(younger) is not None

    @pytest.mark.parametrize("place", ELSEWHERE.values(), ids=ELSEWHERE.keys())
    def test_another_address_does_not_wait(self, scene: Scene, place: SessionSource) -> None:
        scene.deliver("first")

        assert scene.try_claim(scene.deliver("elsewhere", target=place)) is not None

    def test_a_direct_chat_without_an_id_is_its_participant(self, scene: Scene) -> None:
        def chat(user: str, name: str) -> SessionSource:
            return attrs.evolve(source_at(user=user), chat_id=None, user_name=name)

        scene.deliver("first", target=chat("ou_1", "Ada"))

        assert scene.try_claim(scene.deliver("second", target=chat("ou_1", "Countess"))) is None
        assert scene.try_claim(scene.deliver("other", target=chat("ou_2", "Ada"))) is not None

    def test_the_head_of_each_address_is_what_comes_next(self, store: Store, scene: Scene) -> None:
        ids = [scene.deliver(target=source_at(chat)) for chat in ("b", "a", "b", "c")]
        scene.deliver(target=source_at(account_id="second"))
        scene.deliver(target=source_at(platform="slack"))
        scene.claim(ids[0])

        heads = [ids[0], ids[1], ids[3]]
        assert [row.id for row in store.next_deliveries([FEISHU])] == heads
        assert [row.id for row in store.next_deliveries([attrs.evolve(FEISHU, terminal="x")], limit=2)] == heads[:2]
        assert len(store.next_deliveries([FEISHU, Entrance("feishu", "second"), Entrance("slack")])) == 5
        assert (store.next_deliveries([Entrance("weixin")]), store.next_deliveries([])) == ((), ())

    def test_a_lineage_takes_its_deliveries_with_it(self, store: Store, scene: Scene) -> None:
        entry, other = scene.enter(), scene.enter(OTHER_KEY)
        gone = scene.deliver(lineage_id=entry.lineage_id, key="k1")
        scene.claim(gone, "a", "b")
        kept = scene.deliver(lineage_id=other.lineage_id), scene.deliver()

        scene.run(Delete(lineage_id=entry.lineage_id, now=scene.now))

        assert {row.id for row in store.deliveries()} == set(kept)
        assert (store.delivery(gone), store.delivery_by_key("k1")) == (None, None)
        assert [row.id for row in store.next_deliveries([FEISHU])] == [kept[0]]


class InboundTests(StoreFixtures):
    """Where only an answer may be sent, a delivery awaits the next message from its address."""

    def _awaiting(self, scene: Scene, target: SessionSource | None = None) -> DeliveryId:
        delivery_id = scene.deliver(target=source_at() if target is None else target)
        scene.defer(scene.claim(delivery_id), awaits_inbound=True, due_at=scene.now + 60_000, failed=False)
        return delivery_id

    def test_it_is_not_sent_before_the_message_comes(self, scene: Scene) -> None:
        delivery_id = self._awaiting(scene)

        assert scene.delivery(delivery_id).awaits_inbound
        assert scene.try_claim(delivery_id, now=scene.now + 120_000) is None

    @pytest.mark.parametrize("fields", [{}, {"kind": CONTROL}, {"error": "unreadable"}, {"key": OTHER_KEY}])
    def test_a_message_from_its_address_makes_it_due(self, scene: Scene, fields: dict[str, str]) -> None:
        delivery_id = self._awaiting(scene)
        scene.clock.advance(1)

        scene.accept(**fields)  # type: ignore[arg-type]  # a key among the fields is text, too

        row = scene.delivery(delivery_id)
        assert (row.awaits_inbound, row.due_at, row.status) == (False, scene.now, WAITING)
        assert scene.try_claim(delivery_id) is not None

    @pytest.mark.parametrize("place", ELSEWHERE.values(), ids=ELSEWHERE.keys())
    def test_a_message_from_elsewhere_does_not(self, scene: Scene, place: SessionSource) -> None:
        delivery_id = self._awaiting(scene)

        scene.accept(source=place)

        assert scene.delivery(delivery_id).awaits_inbound

    def test_what_is_no_message_of_its_reader_does_not(self, scene: Scene) -> None:
        scene.accept(identities=("a",))
        delivery_id = self._awaiting(scene)
        before = scene.delivery(delivery_id)
        refused = scene.incoming(identities=("b",))

        scene.accept(kind=INTERNAL)
        scene.run(Accept(drafts=(scene.incoming(identities=("a",)),), now=scene.now + 1))
        scene.run(Accept(drafts=(refused,), now=scene.now + 1, max_waiting=1))

        assert scene.delivery(delivery_id) == before

    def test_every_delivery_of_the_address_is_woken_and_no_other_is_touched(self, scene: Scene) -> None:
        awaiting = self._awaiting(scene)
        elsewhere = self._awaiting(scene, source_at("oc_2"))
        deferred = scene.deliver(target=source_at("oc_3"))
        scene.defer(scene.claim(deferred), due_at=scene.now + 60_000)
        before = [scene.delivery(each) for each in (elsewhere, deferred)]

        scene.accept()
        scene.accept(source=source_at("oc_3"))

        assert not scene.delivery(awaiting).awaits_inbound
        assert [scene.delivery(each) for each in (elsewhere, deferred)] == before


class PeopleTests(StoreFixtures):
    """People retry and drop what has not been sent, and nothing that is being sent."""

    @pytest.mark.parametrize("state", [FAILED, DROPPED, WAITING])
    def test_a_retry_begins_anew_in_the_old_place(self, store: Store, scene: Scene, state: str) -> None:
        delivery_id, younger = scene.deliver(), scene.deliver("younger")
        scene.defer(scene.claim(delivery_id, "a", "b"))
        claimed = scene.claim(delivery_id)
        scene.mark(claimed)
        if state == WAITING:
            scene.defer(claimed, awaits_inbound=True, error="why")
        else:
            scene.fail(claimed, error="why")
        if state == DROPPED:
            _drop(scene, delivery_id)
        scene.clock.advance(60)

        row = _retry(scene, delivery_id)

        assert row == store.delivery(delivery_id)
        assert (row.status, row.due_at, row.failures) == (WAITING, scene.now, 0)
        assert (row.awaits_inbound, row.settled_at, row.error) == (False, None, "why")
        assert [part.sent_at is not None for part in row.parts] == [True, False]
        assert scene.try_claim(younger) is None
        assert scene.try_claim(delivery_id) is not None

    @pytest.mark.parametrize("change", [_retry, _drop])
    def test_what_is_sent_or_being_sent_is_left_alone(self, scene: Scene, change: object) -> None:
        assert callable(change)
        sent = scene.send(scene.deliver())
        sending = scene.claim(scene.deliver(), "a")

        for row in (sent, sending):
            with pytest.raises(Conflict):
                change(scene, row.id)
            assert scene.delivery(row.id) == row

    @pytest.mark.parametrize("change", [_retry, _drop])
    def test_a_row_that_is_not_there_is_not_found(self, scene: Scene, change: object) -> None:
        assert callable(change)

        with pytest.raises(DeliveryNotFound):
            change(scene, DeliveryId(999_999))

    def test_a_drop_ends_what_waits_or_has_failed(self, store: Store, scene: Scene) -> None:
        waits, failed = scene.deliver(), scene.deliver(target=source_at("oc_2"))
        scene.fail(scene.claim(failed))
        scene.clock.advance(1)

        dropped = [_drop(scene, each) for each in (waits, failed)]

        assert [(row.status, row.settled_at) for row in dropped] == [(DROPPED, scene.now)] * 2
        assert dropped == [store.delivery(each) for each in (waits, failed)]
        scene.clock.advance(1)
        assert [_drop(scene, each) for each in (waits, failed)] == dropped

    def test_a_drop_takes_a_row_from_a_sender_that_is_known_to_be_dead(self, scene: Scene) -> None:
        claimed = scene.claim(scene.deliver(), "a")
        for attempt in (claimed.attempt - 1, claimed.attempt + 1):
            with pytest.raises(Conflict):
                _drop(scene, claimed.id, attempt)

        dropped = _drop(scene, claimed.id, claimed.attempt)

        assert dropped.status == DROPPED
        with pytest.raises(Conflict):
            scene.mark(claimed)

    @pytest.mark.parametrize("parts", [(), ("a", "b")])
    def test_a_retry_takes_a_row_from_a_sender_that_is_known_to_be_dead(
        self, scene: Scene, parts: tuple[str, ...]
    ) -> None:
        claimed = scene.claim(scene.deliver(), *parts)
        for attempt in (claimed.attempt - 1, claimed.attempt + 1):
            with pytest.raises(Conflict):
                _retry(scene, claimed.id, attempt)

        retried = _retry(scene, claimed.id, claimed.attempt)

        assert (retried.status, retried.attempt, retried.uncertain) == (WAITING, claimed.attempt, bool(parts))
        with pytest.raises(Conflict):
            scene.fail(claimed)
        assert scene.try_claim(claimed.id) is not None

    def test_a_delivery_belongs_to_nobody_who_is_not_there(self, store: Store, scene: Scene) -> None:
        delivery_id = scene.deliver(lineage_id=LineageId("L-nowhere"))

        assert scene.delivery(delivery_id).lineage_id == "L-nowhere"
        assert scene.send(delivery_id).status == SENT
