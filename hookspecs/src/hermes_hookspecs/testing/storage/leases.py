"""Leases and fences: one writer, and a holder that lost its lease cannot write."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

from hermes_hookspecs.errors import LeaseLost, SessionNotFound
from hermes_hookspecs.ids import LineageId, TurnId
from hermes_hookspecs.messages import INTERRUPTED_RESULT, KIND_CLOSING, closing_text
from hermes_hookspecs.operations import Append, Busy, Finish, Renew
from hermes_hookspecs.testing.scene import (
    ALL,
    KEY,
    OTHER_KEY,
    asking,
    binding,
    fence_of,
    holder_at,
    key_of,
    releasing,
    result,
    saying,
)
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures
from hermes_hookspecs.turns import Fence, LeaseStamp, Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.operations import Begun
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.sessions import Lineage
    from hermes_hookspecs.testing.scene import Scene
    from hermes_hookspecs.turns import Lease, Turn

__all__ = ["LeaseTests"]


def _renewing(scene: Scene, begun: Begun) -> Renew:
    return Renew(fence=fence_of(begun), now=scene.now, ttl_ms=30_000)


def _writing(scene: Scene, fence: Fence, write: str) -> Append | Finish | Renew:
    """Return one of the three writes that show a fence."""
    late = (saying("too late"),)
    if write == "append":
        return Append(fence=fence, drafts=late, now=scene.now)
    if write == "finish":
        return Finish(fence=fence, outcome="done", drafts=late, usage=(Usage(input_tokens=1),), now=scene.now)
    return Renew(fence=fence, now=scene.now, ttl_ms=1)


def _standing(scene: Scene, lineage_id: LineageId) -> tuple[Sequence[Message], Lineage, Lease, Sequence[Turn]]:
    """Return what a write of a turn could change in a lineage."""
    turns = scene.store.turns(lineage_id, ALL)
    return scene.rows(lineage_id), scene.lineage(lineage_id), scene.lease(lineage_id), turns


class LeaseTests(StoreFixtures):
    """Tokens only grow; every write of a turn shows the one it has."""

    def test_a_fresh_lease_is_free(self, store: Store, scene: Scene) -> None:
        lease = scene.lease(scene.enter().lineage_id)

        assert (lease.token, lease.renewals, lease.holder) == (0, 0, None)
        assert (lease.acquired_at, lease.expires_at) == (None, None)
        assert store.lease(LineageId("L-nowhere")) is None

    def test_a_renewal_shows_that_the_holder_lives(self, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        scene.clock.advance(10)

        scene.run(_renewing(scene, begun))
        lease = scene.run(_renewing(scene, begun))

        assert lease == scene.lease(entry.lineage_id)
        assert lease.stamp == LeaseStamp(begun.turn.token, 2)
        assert (lease.acquired_at, lease.expires_at) == (begun.lease.acquired_at, scene.now + 30_000)
        assert scene.lineage(entry.lineage_id).version == begun.version

    def test_a_step_shows_that_the_holder_lives(self, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        scene.append(begun, saying("on my way"))

        taken = scene.try_begin(entry.lineage_id, scene.accept(), presumed_dead=begun.lease.stamp)

        assert isinstance(taken, Busy)
        assert taken.lease == scene.lease(entry.lineage_id)
        assert taken.lease.stamp == LeaseStamp(begun.turn.token, 1)
        assert scene.revoke(entry.lineage_id, expected=begun.lease.stamp) is None

    def test_a_lease_shows_the_time_that_its_holder_promised(self, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry, ttl_ms=20_000)
        promised = [begun.lease.ttl_ms]

        lease = scene.run(Renew(fence=fence_of(begun), now=scene.now, ttl_ms=5000))

        promised += [lease.ttl_ms, scene.lease(entry.lineage_id).ttl_ms]
        assert promised == [20_000, 5000, 5000]

    def test_held_leases_are_listed_longest_held_first(self, store: Store, scene: Scene) -> None:
        entries = [scene.enter(key_of(str(number))) for number in range(3)]
        for entry in (entries[2], entries[0]):
            scene.ask(entry)
            scene.clock.advance(5)

        assert [lease.lineage_id for lease in store.leases()] == [entries[2].lineage_id, entries[0].lineage_id]

    def test_a_revoke_takes_the_lease_and_closes_the_turn(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        scene.append(begun, asking("c1"))
        scene.run(_renewing(scene, begun))
        scene.clock.advance(10)

        ended = scene.revoke(entry.lineage_id, "/stop")

        assert ended is not None
        assert ended == store.turn(begun.turn.id)
        assert (ended.outcome, ended.reason, ended.ended_at) == ("stopped", "/stop", scene.now)
        lease = scene.lease(entry.lineage_id)
        assert (lease.token, lease.renewals, lease.holder) == (begun.turn.token + 1, 0, None)
        assert (lease.acquired_at, lease.expires_at) == (None, None)
        assert scene.status(begun.turn.inbox_ids[0]) == "done"
        synthetic, closing = scene.rows(entry.lineage_id)[-2:]
        assert (synthetic.tool_call_id, synthetic.content) == ("c1", INTERRUPTED_RESULT)
        assert (closing.content, closing.kind) == (closing_text("stopped", "/stop"), KIND_CLOSING)
        assert closing.turn_id == begun.turn.id
        assert scene.lineage(entry.lineage_id).version == begun.version + 2

    def test_a_revoke_of_a_free_lease_still_grows_the_token(self, scene: Scene) -> None:
        entry = scene.enter()

        assert scene.revoke(entry.lineage_id) is None

        assert scene.lease(entry.lineage_id).token == 1
        assert scene.lineage(entry.lineage_id).version == 1
        assert scene.rows(entry.lineage_id) == ()

    def test_a_revoke_of_another_stamp_does_nothing(self, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        scene.run(_renewing(scene, begun))

        assert scene.revoke(entry.lineage_id, expected=begun.lease.stamp) is None

        assert scene.lease(entry.lineage_id).token == begun.turn.token
        scene.append(begun, saying("still here"))

    def test_a_revoke_of_the_expected_stamp_works(self, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)

        ended = scene.revoke(entry.lineage_id, outcome="interrupted", expected=begun.lease.stamp)

        assert ended is not None
        assert (ended.id, ended.outcome) == (begun.turn.id, "interrupted")

    def test_a_revoke_of_a_lineage_that_is_not_there_is_refused(self, scene: Scene) -> None:
        with pytest.raises(SessionNotFound):
            scene.revoke(LineageId("L-nowhere"))

    @pytest.mark.parametrize("write", ["append", "finish", "renew"])
    @pytest.mark.parametrize("loss", ["revoked", "finished", "replaced", "deleted token", "another turn"])
    def test_who_lost_the_lease_cannot_write(self, store: Store, scene: Scene, write: str, loss: str) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        fence = fence_of(begun)
        if loss == "revoked":
            scene.revoke(entry.lineage_id)
        elif loss == "finished":
            scene.finish(begun)
        elif loss == "replaced":
            scene.begin(entry.lineage_id, scene.accept(), presumed_dead=begun.lease.stamp)
        elif loss == "deleted token":
            fence = Fence(entry.lineage_id, begun.turn.id, begun.turn.token - 1)
        else:
            fence = Fence(entry.lineage_id, TurnId("T-other"), begun.turn.token)
        before = _standing(scene, entry.lineage_id)

        with pytest.raises(LeaseLost) as caught:
            store.apply(_writing(scene, fence, write))

        assert (caught.value.lineage_id, caught.value.token) == (entry.lineage_id, fence.token)
        assert _standing(scene, entry.lineage_id) == before
        assert store.usage(begun.turn.id) == ()

    @pytest.mark.parametrize("write", ["append", "finish", "renew"])
    def test_a_fence_names_the_turn_of_its_own_lineage(self, store: Store, scene: Scene, write: str) -> None:
        mine, other = scene.enter(), scene.enter(OTHER_KEY)
        begun, running = scene.ask(mine), scene.ask(other)
        assert begun.turn.token == running.turn.token
        fence = Fence(mine.lineage_id, running.turn.id, begun.turn.token)
        before = [_standing(scene, each.lineage_id) for each in (mine, other)]

        with pytest.raises(LeaseLost):
            store.apply(_writing(scene, fence, write))

        assert [_standing(scene, each.lineage_id) for each in (mine, other)] == before
        assert store.usage(running.turn.id) == ()

    def test_a_fence_of_a_lineage_that_is_gone_is_lost(self, store: Store, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        fence = attrs.evolve(fence_of(begun), lineage_id=LineageId("L-nowhere"))

        with pytest.raises(LeaseLost):
            store.apply(Append(fence=fence, drafts=(saying("x"),), now=scene.now))

    def test_a_release_stops_the_turn_that_its_key_began(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry, holder=holder_at(key=KEY))

        released = store.apply(releasing(scene))

        assert released.stopped is not None
        assert (released.stopped.id, released.stopped.outcome) == (begun.turn.id, "stopped")
        assert released.stopped.reason == "session_reset"
        assert scene.texts(entry.lineage_id)[-1] == closing_text("stopped", "session_reset")
        assert scene.lineage(entry.lineage_id).version == begun.version + 2
        with pytest.raises(LeaseLost):
            scene.append(begun, saying("too late"))

    def test_a_release_leaves_the_turn_of_another_entrance_alone(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        store.apply(binding(scene, OTHER_KEY, entry.lineage_id))
        begun = scene.ask(entry, holder=holder_at(key=OTHER_KEY))

        released = store.apply(releasing(scene))

        assert released.stopped is None
        scene.append(begun, saying("still here"))

    def test_a_revoked_lineage_goes_on_with_the_next_turn(self, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        scene.append(begun, asking("c1"))
        scene.append(begun, result("c1"))
        scene.revoke(entry.lineage_id)

        again = scene.talk(entry, "go on", "yes")

        assert again.turn.token == begun.turn.token + 2
        assert scene.texts(entry.lineage_id)[-2:] == ["go on", "yes"]

    def test_the_version_counts_each_write_of_a_lineage(self, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        scene.append(begun, saying("one"))
        scene.append(begun, saying("two"), saying("three"))

        finished = scene.finish(begun)

        assert (begun.version, finished.version) == (2, 5)
