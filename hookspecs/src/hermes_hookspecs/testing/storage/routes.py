"""Routes: get or create, force, claim, bind, release."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_hookspecs.errors import Conflict, SessionNotFound
from hermes_hookspecs.ids import LineageId
from hermes_hookspecs.operations import Claim, ForgetRoute
from hermes_hookspecs.testing.scene import ALL, KEY, OTHER_KEY, binding, key_of, releasing, source_at
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures

if TYPE_CHECKING:
    from hermes_hookspecs.ids import SessionKey
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.sessions import Route
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["RouteTests"]


def _route(store: Store, key: SessionKey = KEY) -> Route:
    found = store.route(key)
    assert found is not None
    return found


class RouteTests(StoreFixtures):
    """A key leads to one lineage or nowhere, and moves in one step."""

    def test_a_fresh_store_is_empty(self, store: Store) -> None:
        assert store.route(KEY) is None
        assert store.routes() == ()
        assert store.summaries(ALL) == ()
        assert store.changes(None)[0] == ()

    def test_a_new_key_makes_lineage_session_and_route(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()

        assert entry.created
        assert entry.version == 1
        assert (entry.created_at, entry.updated_at) == (scene.now, scene.now)
        assert entry.claimed is None
        route = _route(store)
        assert (route.lineage_id, route.key_version, route.policy) == (entry.lineage_id, 1, scene.policy)
        assert (route.created_at, route.updated_at, route.source) == (scene.now, scene.now, source_at())

    def test_a_created_session_carries_where_it_came_from(self, scene: Scene) -> None:
        entry = scene.enter(source=source_at(user="ou_7", account_id="second"))

        session, lineage = scene.tip(entry.lineage_id), scene.lineage(entry.lineage_id)
        assert (session.source, session.account_id, session.user_id) == ("feishu", "second", "ou_7")
        assert (session.started_at, session.ended_at, session.message_count) == (scene.now, None, 0)
        assert (lineage.tip, lineage.segments, lineage.turn_count) == (entry.session_id, 1, 0)

    def test_a_known_key_is_followed(self, scene: Scene) -> None:
        first = scene.enter()

        second = scene.enter()

        assert not second.created
        assert (second.session_id, second.lineage_id) == (first.session_id, first.lineage_id)

    def test_running_a_get_or_create_again_returns_its_own_session(self, store: Store, scene: Scene) -> None:
        operation = scene.wanting()
        first = store.apply(operation)

        second = store.apply(operation)

        assert (second.session_id, second.created) == (first.session_id, False)
        assert store.stats().lineages == 1

    def test_keys_are_compared_byte_for_byte(self, scene: Scene) -> None:
        lower, upper = scene.enter(key_of("oc_a")), scene.enter(key_of("oc_A"))

        assert lower.lineage_id != upper.lineage_id

    def test_force_new_makes_a_session_and_ends_the_old_one(self, scene: Scene) -> None:
        old = scene.enter()

        new = scene.enter(force_new=True, observed=old.lineage_id)

        assert new.created
        ended = scene.tip(old.lineage_id)
        assert (ended.ended_at, ended.end_reason) == (scene.now, "new_session")
        assert scene.lineage(old.lineage_id).version == 2
        assert scene.enter().lineage_id == new.lineage_id

    def test_force_new_yields_to_a_route_that_moved_meanwhile(self, scene: Scene) -> None:
        old = scene.enter()
        winner = scene.enter(force_new=True, observed=old.lineage_id)

        follower = scene.enter(force_new=True, observed=old.lineage_id)

        assert (follower.lineage_id, follower.created) == (winner.lineage_id, False)

    def test_force_new_on_a_key_that_leads_nowhere_makes_a_session(self, store: Store, scene: Scene) -> None:
        first = scene.enter(force_new=True, observed=None)
        store.apply(releasing(scene))

        second = scene.enter(force_new=True, observed=first.lineage_id)

        assert first.created
        assert second.created

    def test_force_new_leaves_a_lineage_open_that_another_route_leads_to(self, store: Store, scene: Scene) -> None:
        old = scene.enter()
        store.apply(binding(scene, OTHER_KEY, old.lineage_id))

        scene.enter(force_new=True, observed=old.lineage_id)

        assert scene.tip(old.lineage_id).ended_at is None

    def test_an_unbound_session_has_no_route(self, store: Store, scene: Scene) -> None:
        routed = scene.enter()

        unbound = scene.enter(bind=False)

        assert unbound.created
        assert unbound.lineage_id != routed.lineage_id
        assert _route(store).lineage_id == routed.lineage_id
        assert len(store.routes()) == 1

    def test_an_unbound_creation_recognises_its_repetition(self, store: Store, scene: Scene) -> None:
        operation = scene.wanting(bind=False)
        first = store.apply(operation)

        second = store.apply(operation)

        assert (second.session_id, second.created) == (first.session_id, False)

    def test_a_touching_hit_moves_the_clock(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.clock.advance(1)

        hit = scene.enter()

        assert hit.updated_at == scene.now
        assert hit.version == entry.version
        assert _route(store).updated_at == scene.now

    def test_a_hit_within_the_resolution_writes_nothing(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.clock.advance(0.999)

        hit = scene.enter()

        assert hit.updated_at == entry.updated_at
        assert _route(store).updated_at == entry.updated_at

    def test_a_hit_that_does_not_touch_moves_no_clock(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.clock.advance(3600)

        hit = scene.enter(touch=False)

        assert hit.updated_at == entry.updated_at
        assert _route(store).updated_at == entry.updated_at

    def test_last_activity_never_moves_backwards(self, scene: Scene) -> None:
        entry = scene.enter()
        scene.clock.set_now(scene.now - 3_600_000)

        assert scene.enter().updated_at == entry.updated_at

    def test_a_fitting_claim_moves_the_route(self, store: Store, scene: Scene) -> None:
        old = scene.enter(OTHER_KEY)

        entry = scene.enter(claims=(Claim(key=OTHER_KEY),))

        assert (entry.lineage_id, entry.created, entry.claimed) == (old.lineage_id, False, OTHER_KEY)
        assert store.route(OTHER_KEY) is None
        assert _route(store).lineage_id == old.lineage_id
        assert scene.tip(old.lineage_id).ended_at is None

    def test_a_claim_of_another_scope_is_not_taken(self, store: Store, scene: Scene) -> None:
        old = scene.enter(OTHER_KEY, source_at(scope_id="T1"))

        entry = scene.enter(claims=(Claim(key=OTHER_KEY), Claim(key=OTHER_KEY, scope_id="T2")))

        assert entry.created
        assert _route(store, OTHER_KEY).lineage_id == old.lineage_id

    def test_a_claim_names_the_recorded_scope(self, scene: Scene) -> None:
        old = scene.enter(OTHER_KEY, source_at(scope_id="T1"))

        assert scene.enter(claims=(Claim(key=OTHER_KEY, scope_id="T1"),)).lineage_id == old.lineage_id

    def test_the_first_claim_that_fits_wins(self, scene: Scene) -> None:
        scene.enter(OTHER_KEY)
        best = scene.enter(key_of("oc_3"))

        entry = scene.enter(claims=(Claim(key=key_of("gone")), Claim(key=key_of("oc_3")), Claim(key=OTHER_KEY)))

        assert entry.lineage_id == best.lineage_id

    def test_a_live_route_needs_no_claim(self, store: Store, scene: Scene) -> None:
        own, other = scene.enter(), scene.enter(OTHER_KEY)

        entry = scene.enter(claims=(Claim(key=OTHER_KEY),))

        assert entry.lineage_id == own.lineage_id
        assert _route(store, OTHER_KEY).lineage_id == other.lineage_id

    def test_a_released_route_cannot_be_claimed(self, store: Store, scene: Scene) -> None:
        scene.enter(OTHER_KEY)
        store.apply(releasing(scene, OTHER_KEY))

        assert scene.enter(claims=(Claim(key=OTHER_KEY),)).created

    def test_bind_leads_a_new_key_to_a_lineage(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()

        bound = store.apply(binding(scene, OTHER_KEY, entry.lineage_id))

        assert (bound.session_key, bound.lineage_id, bound.created) == (OTHER_KEY, entry.lineage_id, False)
        assert _route(store, OTHER_KEY).lineage_id == entry.lineage_id

    def test_bind_ends_what_no_route_leads_to_any_more(self, store: Store, scene: Scene) -> None:
        left, target = scene.enter(), scene.enter(OTHER_KEY)

        store.apply(binding(scene, KEY, target.lineage_id))

        assert scene.tip(left.lineage_id).end_reason == "session_switch"
        assert scene.enter().lineage_id == target.lineage_id

    def test_bind_reopens_an_ended_tip(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        store.apply(releasing(scene))
        version = scene.lineage(entry.lineage_id).version

        bound = store.apply(binding(scene, KEY, entry.lineage_id))

        tip = scene.tip(entry.lineage_id)
        assert (tip.ended_at, tip.end_reason) == (None, None)
        assert bound.version == version + 1

    def test_bind_to_where_the_key_leads_already_changes_nothing(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.clock.advance(60)

        bound = store.apply(binding(scene, KEY, entry.lineage_id))

        assert bound.version == entry.version
        assert _route(store).updated_at == entry.created_at

    def test_bind_moves_no_activity(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.clock.advance(60)

        bound = store.apply(binding(scene, OTHER_KEY, entry.lineage_id))

        assert bound.updated_at == entry.updated_at

    def test_bind_to_a_lineage_that_is_not_there_is_refused(self, store: Store, scene: Scene) -> None:
        with pytest.raises(SessionNotFound):
            store.apply(binding(scene, KEY, LineageId("L-nowhere")))

        assert store.route(KEY) is None

    @pytest.mark.parametrize("is_released", [False, True])
    def test_a_checked_bind_compares_where_the_key_leads(self, store: Store, scene: Scene, is_released: bool) -> None:
        first, second = scene.enter(), scene.enter(OTHER_KEY)
        if is_released:
            store.apply(releasing(scene))
        seen = None if is_released else first.lineage_id

        with pytest.raises(Conflict):
            store.apply(binding(scene, KEY, second.lineage_id, check=True, expected=second.lineage_id))
        bound = store.apply(binding(scene, KEY, second.lineage_id, check=True, expected=seen))

        assert bound.lineage_id == second.lineage_id

    def test_release_lets_the_key_lead_nowhere_and_keeps_the_history(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry)

        released = store.apply(releasing(scene))

        assert released.lineage is not None
        assert (released.lineage.id, released.stopped, released.superseded) == (entry.lineage_id, None, 0)
        assert _route(store).lineage_id is None
        assert scene.tip(entry.lineage_id).end_reason == "session_reset"
        assert len(scene.rows(entry.lineage_id)) == 2
        assert scene.enter().created

    def test_release_of_a_key_that_leads_nowhere_says_so(self, store: Store, scene: Scene) -> None:
        assert store.apply(releasing(scene)).lineage is None

        scene.enter()
        store.apply(releasing(scene))

        assert store.apply(releasing(scene)).lineage is None

    def test_release_keeps_a_lineage_open_that_another_route_leads_to(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        store.apply(binding(scene, OTHER_KEY, entry.lineage_id))

        store.apply(releasing(scene))

        assert scene.tip(entry.lineage_id).ended_at is None

    def test_the_first_end_reason_wins(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        store.apply(releasing(scene))
        scene.clock.advance(10)

        store.apply(releasing(scene, reason="idle"))

        assert scene.tip(entry.lineage_id).end_reason == "session_reset"

    def test_a_checked_release_compares_where_the_key_leads(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()

        with pytest.raises(Conflict):
            store.apply(releasing(scene, check=True, expected=None))
        assert _route(store).lineage_id == entry.lineage_id
        store.apply(releasing(scene, check=True, expected=entry.lineage_id))

        assert _route(store).lineage_id is None

    def test_a_route_that_was_used_or_waits_is_not_quiet(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        decided_on = scene.now

        def is_let_go() -> bool:
            try:
                return store.apply(releasing(scene, quiet_since=decided_on)).lineage is not None
            except Conflict:
                return False

        waiting = scene.accept()
        assert not is_let_go()
        begun = scene.begin(entry.lineage_id, waiting)
        assert not is_let_go()
        scene.finish(begun)
        scene.clock.advance(5)
        store.apply(binding(scene, KEY, scene.enter(OTHER_KEY, touch=False).lineage_id))
        assert not is_let_go()
        assert scene.tip(entry.lineage_id).end_reason == "session_switch"
        decided_on = scene.now

        assert is_let_go()

    def test_a_forgotten_route_leaves_everything_else_as_it_is(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry)
        waits = scene.accept()
        before = (scene.lineage(entry.lineage_id), scene.tip(entry.lineage_id), store.inbox_item(waits))

        first, second = (store.apply(ForgetRoute(key=KEY, now=scene.now)) for _ in range(2))

        assert (first, second) == (True, False)
        assert store.route(KEY) is None
        assert before == (scene.lineage(entry.lineage_id), scene.tip(entry.lineage_id), store.inbox_item(waits))
        assert scene.enter().created

    def test_a_title_given_to_a_release_waits_for_the_session_to_come(self, store: Store, scene: Scene) -> None:
        scene.enter()
        store.apply(releasing(scene, title="plan"))
        assert _route(store).pending_title == "plan"

        entry = scene.enter()

        assert entry.title == "plan"
        assert scene.lineage(entry.lineage_id).title_origin == "user"
        assert _route(store).pending_title is None

    def test_routes_are_listed_last_used_first(self, store: Store, scene: Scene) -> None:
        scene.enter(key_of("a"))
        scene.enter(key_of("b"))
        scene.clock.advance(5)
        scene.enter(key_of("c"))
        scene.clock.advance(5)
        scene.enter(key_of("b"))

        assert [route.key for route in store.routes()] == [key_of("b"), key_of("c"), key_of("a")]
        assert [route.key for route in store.routes(limit=2)] == [key_of("b"), key_of("c")]

    def test_routes_of_one_lineage_are_found(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.enter(key_of("x"))
        store.apply(binding(scene, OTHER_KEY, entry.lineage_id))

        found = store.routes(lineage_id=entry.lineage_id)

        assert sorted(route.key for route in found) == [KEY, OTHER_KEY]
