"""The end of a lineage: what goes with it, what outlives it, and who may end it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_hookspecs.errors import LeaseBusy, LeaseLost, SessionNotFound
from hermes_hookspecs.ids import LineageId
from hermes_hookspecs.inbox import CONTROL, PENDING
from hermes_hookspecs.messages import Attachment
from hermes_hookspecs.operations import Accept, Delete, PutState, RecordUsage, Renew, Sweep
from hermes_hookspecs.state import StateUpdate
from hermes_hookspecs.testing.scene import ALL, KEY, OTHER_KEY, fence_of, holder_at, saying
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures
from hermes_hookspecs.turns import LeaseStamp, Usage

if TYPE_CHECKING:
    from hermes_hookspecs.operations import Deleted
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["DeletionTests"]


def _delete(scene: Scene, lineage_id: LineageId, *, force: bool = False) -> Deleted:
    return scene.run(Delete(lineage_id=lineage_id, now=scene.now, force=force))


class DeletionTests(StoreFixtures):
    """Nothing of a lineage outlives it but what was never part of it."""

    def test_delete_removes_all_that_hangs_on_a_lineage(self, store: Store, scene: Scene) -> None:
        entry, other = scene.enter(), scene.enter(OTHER_KEY)
        begun = scene.talk(entry)
        scene.talk(other)
        scene.run(RecordUsage(turn_id=begun.turn.id, usage=Usage(input_tokens=1), now=scene.now))
        mine = StateUpdate(namespace="p", key="mine", value="1", lineage_id=entry.lineage_id)
        scene.run(PutState(updates=(mine, StateUpdate(namespace="p", key="free", value="1")), now=scene.now))

        deleted = _delete(scene, entry.lineage_id)

        assert (deleted.lineage_id, deleted.sessions, deleted.messages) == (entry.lineage_id, 1, 2)
        assert store.lineage(entry.lineage_id, ALL) is None
        assert store.session(entry.session_id, ALL) is None
        assert store.messages(entry.lineage_id, ALL) == ()
        assert (store.turn(begun.turn.id), store.usage(begun.turn.id)) == (None, ())
        assert [each.key for each in store.states("p", now=scene.now)] == ["free"]
        route = store.route(KEY)
        assert route is None or route.lineage_id is None
        assert scene.texts(other.lineage_id) == ["hello", "hi"]
        assert scene.enter().created

    def test_delete_keeps_what_waits_and_what_tells_a_redelivery(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        answered = scene.accept("secret", identities=("m1",), attachments=(Attachment(kind="file", name="secret"),))
        scene.finish(scene.begin(entry.lineage_id, answered))
        waits, command, half = scene.accept("b"), scene.accept("/c", kind=CONTROL), scene.accept("/d", kind=CONTROL)
        scene.control(None, inbox_id=half)
        scene.clock.advance(1)

        _delete(scene, entry.lineage_id)

        rows = {each: store.inbox_item(each) for each in (answered, waits, command, half)}
        assert [row and (row.status, row.text, row.lineage_id) for row in rows.values()] == [
            ("done", "", None),
            (PENDING, "b", None),
            (PENDING, "/c", None),
            ("applied", "/d", None),
        ]
        emptied = rows[answered]
        assert emptied is not None
        assert (emptied.identities, emptied.attachments) == (("m1",), ())
        (again,) = scene.run(Accept(drafts=(scene.incoming(identities=("m1",)),), now=scene.now))
        assert (again.id, again.duplicate) == (answered, True)
        assert [item.id for item in store.waiting(scene.enter().lineage_id)] == [waits]

    def test_delete_settles_what_a_dead_turn_had_taken(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        dead = scene.ask(entry, "secret")

        scene.run(Delete(lineage_id=entry.lineage_id, now=scene.now, presumed_dead=dead.lease.stamp))

        taken = store.inbox_item(dead.turn.inbox_ids[0])
        assert taken is not None
        assert (taken.status, taken.text) == ("done", "")
        assert scene.run(Sweep(now=scene.now, inbox_before=scene.now + 1, outbox_before=0)).inbox == 1

    def test_delete_of_a_lineage_with_a_running_turn_is_refused(self, scene: Scene) -> None:
        entry = scene.enter()
        holder = holder_at("pts-9")
        begun = scene.ask(entry, holder=holder)

        with pytest.raises(LeaseBusy) as caught:
            _delete(scene, entry.lineage_id)

        assert caught.value.holder == holder.describe()
        scene.finish(begun)

    def test_delete_with_force_revokes_first(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)

        _delete(scene, entry.lineage_id, force=True)

        assert store.lineage(entry.lineage_id, ALL) is None
        with pytest.raises(LeaseLost):
            scene.append(begun, saying("too late"))

    def test_delete_takes_a_lineage_whose_holder_is_dead(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)

        scene.run(Delete(lineage_id=entry.lineage_id, now=scene.now, presumed_dead=begun.lease.stamp))

        assert store.lineage(entry.lineage_id, ALL) is None

    @pytest.mark.parametrize(("token", "renewals"), [(0, -1), (-1, 0), (-1, -1), (0, 1), (1, 0)])
    def test_delete_with_the_stamp_of_another_moment_is_refused(
        self, store: Store, scene: Scene, token: int, renewals: int
    ) -> None:
        entry = scene.enter()
        scene.talk(entry)
        begun = scene.ask(entry)
        held = scene.run(Renew(fence=fence_of(begun), now=scene.now, ttl_ms=30_000))
        stale = LeaseStamp(held.token + token, held.renewals + renewals)
        before = (scene.rows(entry.lineage_id), store.turns(entry.lineage_id, ALL), store.route(KEY))

        with pytest.raises(LeaseBusy):
            scene.run(Delete(lineage_id=entry.lineage_id, now=scene.now, presumed_dead=stale))

        assert (scene.rows(entry.lineage_id), store.turns(entry.lineage_id, ALL), store.route(KEY)) == before
        assert scene.lease(entry.lineage_id) == held
        scene.finish(begun, saying("still here"))

    def test_delete_of_a_lineage_that_is_not_there_is_refused(self, scene: Scene) -> None:
        with pytest.raises(SessionNotFound):
            _delete(scene, LineageId("L-nowhere"))
