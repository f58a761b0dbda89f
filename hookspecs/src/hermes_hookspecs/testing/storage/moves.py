"""Routes that go to another key: by a claim, by a change of the policy, and back; and the journal of it."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.ids import ApprovalId, JobId, SessionKey
from hermes_hookspecs.inbox import CONTROL
from hermes_hookspecs.messages import ToolCall
from hermes_hookspecs.operations import (
    AskApproval,
    Claim,
    Control,
    Delete,
    ForgetRoute,
    Moved,
    MoveRoutes,
    Rekey,
    Rename,
    StartJob,
    Sweep,
)
from hermes_hookspecs.principal import owner_of, room_of
from hermes_hookspecs.sessions.moves import CLAIMED, MOVED, REFUSED, RETURNED
from hermes_hookspecs.source import KeyPolicy
from hermes_hookspecs.testing.scene import (
    ALL,
    KEY,
    OTHER_KEY,
    asking,
    fence_of,
    holder_at,
    key_of,
    releasing,
    source_at,
)
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures

if TYPE_CHECKING:
    from hermes_hookspecs.operations import Begun
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.sessions import SessionEntry
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["MoveTests", "ScopeTests"]

ROOMS = KeyPolicy(group_sessions_per_user=False)
NEW_KEY = key_of("new")


def _title(scene: Scene, entry: SessionEntry, title: str) -> None:
    scene.run(Rename(lineage_id=entry.lineage_id, title=title, origin="user", now=scene.now))


def _moving(entry: SessionEntry, new_key: SessionKey = NEW_KEY, **fields: object) -> Rekey:
    move = Rekey(
        key=entry.session_key, new_key=new_key, expected=entry.lineage_id, key_version=2, policy=ROOMS, reason="why"
    )
    return attrs.evolve(move, **fields)  # type: ignore[arg-type]  # as in the scene


def _move(scene: Scene, *moves: Rekey, batch: str = "B1", kind: str = MOVED) -> Moved:
    return scene.run(MoveRoutes(moves=moves, batch=batch, now=scene.now, kind=kind))


class ScopeTests(StoreFixtures):
    """A claim of what was recorded without a scope gives it the one of who claims."""

    def test_a_claim_gives_the_lineage_the_scope_that_nobody_had_recorded(self, store: Store, scene: Scene) -> None:
        scoped = source_at(scope_id="T1")
        taken, old = scene.enter(source=scoped), scene.enter(OTHER_KEY)
        for entry in (taken, old):
            _title(scene, entry, "plan")
        scene.run(ForgetRoute(key=KEY, now=scene.now))
        _, cursor = store.changes(None)

        entry = scene.enter(source=scoped, claims=(Claim(key=OTHER_KEY),))

        lineage = scene.lineage(old.lineage_id)
        assert (entry.lineage_id, entry.title) == (old.lineage_id, "plan #2")
        assert lineage.owner == owner_of(scoped, shared=False)
        assert lineage.source.scope_id == "T1"
        assert (lineage.title, scene.tip(old.lineage_id).title) == ("plan #2", "plan #2")
        assert [change.lineage_id for change in store.changes(cursor)[0]] == [old.lineage_id]

    def test_a_room_gets_its_scope_and_a_lineage_of_another_platform_stays(self, scene: Scene) -> None:
        group, other = source_at(chat_type="group"), source_at("oc_9", platform="weixin")
        room, elsewhere = scene.enter(OTHER_KEY, group), scene.enter(key_of("x"), other)
        scoped = attrs.evolve(group, scope_id="T1")

        scene.enter(source=scoped, claims=(Claim(key=OTHER_KEY),))
        scene.enter(key_of("y"), scoped, claims=(Claim(key=key_of("x")),))

        assert scene.lineage(room.lineage_id).room == room_of(scoped)
        assert scene.lineage(elsewhere.lineage_id).owner == owner_of(other, shared=False)
        assert scene.lineage(elsewhere.lineage_id).source == other

    def test_a_claim_without_a_scope_leaves_whose_it_is(self, scene: Scene) -> None:
        old = scene.enter(OTHER_KEY)
        before = scene.lineage(old.lineage_id)

        scene.enter(source=source_at(user="ou_2"), claims=(Claim(key=OTHER_KEY),))

        assert scene.lineage(old.lineage_id) == before


class MoveTests(StoreFixtures):
    """A route moves as a whole or not at all, and the journal says so."""

    def test_a_claim_is_written_down(self, store: Store, scene: Scene) -> None:
        old = scene.enter(OTHER_KEY)

        scene.enter(source=source_at(scope_id="T1"), claims=(Claim(key=OTHER_KEY),))

        (line,) = store.route_moves()
        assert (line.kind, line.key, line.new_key, line.lineage_id) == (CLAIMED, OTHER_KEY, KEY, old.lineage_id)
        assert (line.at, line.batch, line.key_version, line.policy) == (scene.now, None, 1, scene.policy)
        assert (line.owner, line.shared) == (owner_of(source_at(), shared=False), False)
        assert line.reason == "recorded without a scope; first asked for by 'T1'"

    def test_a_refused_claim_is_written_down_once_and_why(self, store: Store, scene: Scene) -> None:
        scene.enter(OTHER_KEY, source_at(scope_id="T1"))
        claims = (Claim(key=OTHER_KEY, scope_id="T2"), Claim(key=OTHER_KEY), Claim(key=key_of("gone")))

        for _ in range(2):
            scene.enter(source=source_at(scope_id="T2"), claims=claims)

        (line,) = store.route_moves()
        assert (line.kind, line.key, line.new_key) == (REFUSED, OTHER_KEY, KEY)
        assert line.reason == "recorded for 'T1', asked for by 'T2'; it could be somebody else's"

    def test_a_claim_for_a_person_takes_over_what_was_theirs_or_nobodys(self, store: Store, scene: Scene) -> None:
        theirs, nobodys = source_at(user="ou_5"), attrs.evolve(source_at("oc_2"), user_id=None)
        old = [scene.enter(key_of("5"), theirs), scene.enter(key_of("none"), nobodys)]
        asking = source_at(scope_id="T1", user="ou_5")

        for number, claimed in enumerate(("5", "none")):
            entry = scene.enter(key_of(f"new-{number}"), asking, claims=(Claim(key=key_of(claimed), user_id="ou_5"),))
            assert (entry.lineage_id, entry.claimed) == (old[number].lineage_id, key_of(claimed))

        assert [line.kind for line in store.route_moves()] == [CLAIMED] * 2

    def test_a_claim_for_somebody_else_or_for_nobody_is_refused_and_leaves_it_to_its_person(
        self, store: Store, scene: Scene
    ) -> None:
        old = scene.enter(OTHER_KEY, source_at(user="ou_5"))
        other = source_at(scope_id="T2", user="ou_7")
        nobody = attrs.evolve(other, user_id=None)

        first = scene.enter(key_of("2"), other, claims=(Claim(key=OTHER_KEY, user_id="ou_7"),))
        second = scene.enter(key_of("3"), nobody, claims=(Claim(key=OTHER_KEY, user_id=""),))
        theirs = source_at(scope_id="T1", user="ou_5")
        granted = scene.enter(key_of("1"), theirs, claims=(Claim(key=OTHER_KEY, user_id="ou_5"),))

        assert granted.lineage_id == old.lineage_id
        assert old.lineage_id not in (first.lineage_id, second.lineage_id)
        why = "recorded without a scope, for 'ou_5', asked for by {} of 'T2'; it could be somebody else's"
        assert [(line.kind, line.reason) for line in reversed(store.route_moves())][:2] == [
            (REFUSED, why.format("'ou_7'")),
            (REFUSED, why.format("a message of nobody")),
        ]

    def test_a_claim_that_is_granted_refuses_nothing(self, store: Store, scene: Scene) -> None:
        scene.enter(OTHER_KEY)

        scene.enter(source=source_at(scope_id="T1"), claims=(Claim(key=OTHER_KEY, scope_id="T1"), Claim(key=OTHER_KEY)))

        assert [line.kind for line in store.route_moves()] == [CLAIMED]

    def test_a_route_moves_with_what_made_its_key(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        before = store.route(KEY)
        assert before is not None
        scene.clock.advance(60)

        moved = _move(scene, _moving(entry))

        assert store.route(KEY) is None
        assert store.route(NEW_KEY) == attrs.evolve(before, key=NEW_KEY, key_version=2, policy=ROOMS)
        (line,) = moved.moves
        assert store.route_moves() == (line,)
        assert (line.kind, line.batch, line.key, line.new_key) == (MOVED, "B1", KEY, NEW_KEY)
        assert (line.at, line.reason, line.key_version, line.policy) == (scene.now, "why", 1, scene.policy)
        assert scene.tip(entry.lineage_id).ended_at is None
        assert scene.enter(NEW_KEY).lineage_id == entry.lineage_id

    def test_what_waits_and_what_runs_goes_along(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        scene.append(begun, asking("c1"))
        scene.run(_asked(scene, begun))
        scene.run(_started(scene, begun))
        waits, command = scene.accept("later"), scene.accept("/new", kind=CONTROL)
        other = scene.accept("elsewhere", OTHER_KEY)

        _move(scene, _moving(entry))

        assert [item.id for item in store.waiting_of_key(NEW_KEY)] == [waits]
        assert [item.id for item in store.controls_of_key(NEW_KEY)] == [command]
        assert store.waiting_of_key(KEY) == ()
        assert [item.id for item in store.waiting_of_key(OTHER_KEY)] == [other]
        (approval,), (job,) = store.approvals(), store.jobs(ALL)
        turn = store.active_turn(entry.lineage_id)
        assert turn is not None
        assert {turn.session_key, approval.session_key, job.session_key} == {NEW_KEY}
        assert scene.run(releasing(scene, NEW_KEY)).stopped is not None

    def test_a_command_that_has_taken_effect_goes_along(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        command = scene.accept("/title plan", kind=CONTROL)
        effect = Rename(lineage_id=entry.lineage_id, title="plan", origin="user", now=scene.now)
        scene.run(Control(inbox_id=command, effect=effect, now=scene.now))

        _move(scene, _moving(entry))

        assert [item.id for item in store.controls_of_key(NEW_KEY)] == [command]

    def test_what_has_ended_keeps_the_key_it_was_known_by(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.talk(entry)
        delivery = scene.deliver()

        _move(scene, _moving(entry))

        turn = store.turn(begun.turn.id)
        assert turn is not None
        assert turn.session_key == KEY
        assert scene.delivery(delivery).session_key == KEY

    def test_a_route_that_is_not_as_expected_is_left(self, store: Store, scene: Scene) -> None:
        entry, other = scene.enter(), scene.enter(OTHER_KEY)
        taken = _moving(entry, OTHER_KEY)
        elsewhere = _moving(entry, expected=other.lineage_id)
        gone = _moving(entry, key=key_of("gone"))

        moved = _move(scene, taken, _moving(other), batch="B1")
        again = _move(scene, elsewhere, gone, batch="B2")

        assert (moved.left, [line.key for line in moved.moves]) == ((KEY,), [OTHER_KEY])
        assert (again.left, again.moves) == ((KEY, key_of("gone")), ())
        route = store.route(KEY)
        assert route is not None
        assert route.lineage_id == entry.lineage_id

    def test_a_key_that_was_let_go_is_free(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.enter(NEW_KEY)
        scene.run(releasing(scene, NEW_KEY))

        _move(scene, _moving(entry))

        route = store.route(NEW_KEY)
        assert route is not None
        assert route.lineage_id == entry.lineage_id
        assert len(store.routes()) == 1

    def test_a_repeated_batch_moves_nothing_twice(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        move = _moving(entry)
        first = _move(scene, move)
        fresh = scene.enter()

        second = _move(scene, move)

        assert second == first
        route = store.route(KEY)
        assert route is not None
        assert route.lineage_id == fresh.lineage_id

    def test_whose_a_lineage_is_moves_along_and_a_taken_title_gets_a_number(self, store: Store, scene: Scene) -> None:
        group = source_at(chat_type="group")
        entry, other = scene.enter(source=group), scene.enter(OTHER_KEY, source_at("oc_9", "ou_9"))
        room = owner_of(group, shared=True)
        _title(scene, entry, "plan")
        _move(scene, _moving(other, key_of("y"), owner=room))
        _title(scene, other, "plan")
        _, cursor = store.changes(None)

        moved = _move(scene, _moving(entry, owner=room, shared=True), batch="B2")

        lineage = scene.lineage(entry.lineage_id)
        assert (lineage.owner, lineage.shared, lineage.title) == (room, True, "plan #2")
        assert scene.tip(entry.lineage_id).title == "plan #2"
        assert (moved.moves[0].owner, moved.moves[0].shared) == (owner_of(group, shared=False), False)
        assert [change.lineage_id for change in store.changes(cursor)[0]] == [entry.lineage_id]

    def test_a_move_can_be_taken_back(self, store: Store, scene: Scene) -> None:
        group = source_at(chat_type="group")
        entry = scene.enter(source=group)
        before = (store.route(KEY), scene.lineage(entry.lineage_id))
        moved = _moving(entry, owner=owner_of(group, shared=True), shared=True)
        (line,) = _move(scene, moved).moves
        back = Rekey(
            key=line.new_key,
            new_key=line.key,
            expected=line.lineage_id,
            key_version=line.key_version,
            policy=line.policy,
            owner=line.owner,
            shared=line.shared,
        )

        _move(scene, back, kind=RETURNED)

        assert (store.route(KEY), scene.lineage(entry.lineage_id)) == before
        assert store.route(NEW_KEY) is None
        assert [one.kind for one in store.route_moves(batch="B1")] == [RETURNED, MOVED]

    def test_the_journal_is_read_newest_first_by_batch_and_kind(self, store: Store, scene: Scene) -> None:
        one, two = scene.enter(), scene.enter(OTHER_KEY)
        _move(scene, _moving(one), batch="B1")
        _move(scene, _moving(two, key_of("y")), batch="B2")
        scene.enter(key_of("z"), source_at(scope_id="T1"), claims=(Claim(key=NEW_KEY),))

        assert [line.key for line in store.route_moves()] == [NEW_KEY, OTHER_KEY, KEY]
        assert [line.key for line in store.route_moves(limit=1)] == [NEW_KEY]
        assert [line.key for line in store.route_moves(kinds=(MOVED,), limit=None)] == [OTHER_KEY, KEY]
        assert [line.key for line in store.route_moves(batch="B1")] == [KEY]
        assert store.route_moves(kinds=(RETURNED,)) == ()

    def test_the_lines_of_a_lineage_go_with_it(self, store: Store, scene: Scene) -> None:
        one, two = scene.enter(), scene.enter(OTHER_KEY)
        _move(scene, _moving(one), _moving(two, key_of("y")))

        scene.run(Delete(lineage_id=one.lineage_id, now=scene.now))
        _move(scene, _moving(two, key_of("z"), key=key_of("y")), batch="B2")

        ids = [line.id for line in store.route_moves()]
        assert [line.lineage_id for line in store.route_moves()] == [two.lineage_id] * 2
        assert ids == sorted(ids, reverse=True)

    def test_old_lines_go_oldest_first_a_bounded_number_at_a_time(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        places = [KEY, *map(key_of, "vwxyz")]
        for number, (old, new) in enumerate(itertools.pairwise(places)):
            _move(scene, _moving(entry, new, key=old), batch=f"B{number}")
            scene.clock.advance(10)
        half = scene.now - 25_000

        first = scene.run(Sweep(now=scene.now, inbox_before=0, outbox_before=0, moves_before=half, limit=2))
        left = [line.batch for line in store.route_moves()]
        second = scene.run(Sweep(now=scene.now, inbox_before=0, outbox_before=0, moves_before=half, limit=2))
        none = scene.run(Sweep(now=scene.now, inbox_before=0, outbox_before=0))

        assert (first.moves, first.more, left) == (2, True, ["B4", "B3", "B2"])
        assert (second.moves, second.more, none.moves) == (1, False, 0)
        assert [line.batch for line in store.route_moves()] == ["B4", "B3"]
        route = store.route(places[-1])
        assert route is not None
        assert route.lineage_id == entry.lineage_id

    def test_of_those_who_claim_at_once_one_wins(self, store: Store, scene: Scene) -> None:
        old = scene.enter(OTHER_KEY)
        wanting = [
            scene.wanting(key_of(f"{team}"), source_at(scope_id=team), claims=(Claim(key=OTHER_KEY),))
            for team in ("T1", "T2", "T3", "T4")
        ]

        entries = [future.result() for future in [store.submit(operation) for operation in wanting]]

        assert [entry.lineage_id for entry in entries].count(old.lineage_id) == 1
        assert len({entry.lineage_id for entry in entries}) == len(wanting)
        assert [line.kind for line in store.route_moves()] == [CLAIMED]


def _asked(scene: Scene, begun: Begun) -> AskApproval:
    return AskApproval(
        fence=fence_of(begun),
        approval_id=ApprovalId("aaaaa"),
        call=ToolCall(id="c1", name="rm"),
        source=source_at(),
        session_key=KEY,
        now=scene.now,
        expires_at=scene.now + 60_000,
    )


def _started(scene: Scene, begun: Begun) -> StartJob:
    return StartJob(
        fence=fence_of(begun),
        job_id=JobId("J1"),
        kind="build",
        label="make all",
        holder=holder_at(),
        source=source_at(),
        session_key=KEY,
        now=scene.now,
    )
