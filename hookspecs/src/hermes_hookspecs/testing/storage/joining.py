"""Joining: answers that waited go out with an older one of their address, and each is settled once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_hookspecs.errors import Conflict
from hermes_hookspecs.operations import DropDelivery, JoinDeliveries, RetryDelivery
from hermes_hookspecs.outbox import JOINED, SENT, PartDraft, StoredPart
from hermes_hookspecs.testing.scene import source_at
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures

if TYPE_CHECKING:
    from hermes_hookspecs.ids import DeliveryId
    from hermes_hookspecs.outbox import Delivery
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["JoiningTests"]


class JoiningTests(StoreFixtures):
    """What is joined is settled at once; what it says goes out with the one that took it along."""

    def test_those_that_wait_behind_become_parts_of_the_one_in_hand(self, store: Store, scene: Scene) -> None:
        first, second, third, last = (scene.deliver(key=key) for key in "abcd")
        claimed = scene.claim(first, "one", "two")
        scene.mark(claimed, 0, platform_message_id="om_1")
        scene.clock.advance(1)

        joined = _join(scene, claimed, second, third)

        assert joined is not None
        assert (joined.text, joined.attempt, joined.status) == ("all", claimed.attempt, claimed.status)
        assert [(part.text, part.sent_at is None) for part in joined.parts] == [("one", False), ("joined", True)]
        assert joined.parts[1] == StoredPart(index=1, text="joined", format="text", key=f"a-1-{claimed.attempt}")
        assert store.delivery(first) == joined
        for each in (second, third):
            row = scene.delivery(each)
            assert (row.status, row.settled_at, row.parts) == (JOINED, scene.now, ())
            assert row.error == f"it goes out with delivery {first}"
        assert scene.mark(joined, 1).status == SENT
        assert scene.try_claim(last) is not None

    @pytest.mark.parametrize(
        "case", ["a gap", "another place", "another lineage", "nobody", "claimed before", "uncertain", "no part"]
    )
    def test_nothing_is_joined_where_that_cannot_be(self, store: Store, scene: Scene, case: str) -> None:
        first = scene.deliver()
        if case == "claimed before":
            second = scene.deliver(target=source_at("oc_9"))
            scene.fail(scene.claim(second))
            scene.retry(second)
        elif case == "another lineage":
            second = scene.deliver(lineage_id=scene.enter().lineage_id)
        else:
            second = scene.deliver(target=source_at("oc_9")) if case == "another place" else scene.deliver()
        third = scene.deliver()
        claimed = scene.claim(first, "one")
        if case == "uncertain":
            claimed = scene.claim(first, presumed_dead=True)
        others = {"a gap": (third,), "nobody": ()}.get(case, (second,))
        before = store.deliveries()

        assert _join(scene, claimed, *others, parts=() if case == "no part" else ("joined",)) is None
        assert store.deliveries() == before

    def test_only_the_attempt_that_sends_joins(self, store: Store, scene: Scene) -> None:
        first, second = scene.deliver(), scene.deliver()
        claimed = scene.claim(first, "one")
        scene.claim(first, presumed_dead=True)
        before = store.deliveries()

        with pytest.raises(Conflict):
            _join(scene, claimed, second)

        assert store.deliveries() == before

    def test_what_is_joined_goes_out_once_whatever_people_decide(self, scene: Scene) -> None:
        first, second = scene.deliver(), scene.deliver()
        _join(scene, scene.claim(first), second)

        with pytest.raises(Conflict):
            scene.run(RetryDelivery(delivery_id=second, now=scene.now))
        with pytest.raises(Conflict):
            scene.run(DropDelivery(delivery_id=second, now=scene.now))

        assert scene.delivery(second).status == JOINED

    def test_whoever_takes_over_sends_the_same_parts(self, scene: Scene) -> None:
        first, second = scene.deliver(), scene.deliver()
        joined = _join(scene, scene.claim(first), second)
        assert joined is not None

        again = scene.claim(first, presumed_dead=True)

        assert (again.parts, again.uncertain) == (joined.parts, True)


def _join(
    scene: Scene, claimed: Delivery, *others: DeliveryId, parts: tuple[str, ...] = ("joined",)
) -> Delivery | None:
    return scene.run(
        JoinDeliveries(
            delivery_id=claimed.id,
            attempt=claimed.attempt,
            joined=others,
            text="all",
            parts=tuple(PartDraft(text=part) for part in parts),
            now=scene.now,
        )
    )
