"""Who serves which entrance, and the work that waits there for anybody who does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.inbox import CONTROL, INTERNAL, EntranceServer
from hermes_hookspecs.operations import Append, LeaveEntrances, ServeEntrances, Withdraw
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.testing.scene import KEY, OTHER_KEY, asking, fence_of, holder_at, key_of, result
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures

if TYPE_CHECKING:
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.testing.scene import Scene
    from hermes_hookspecs.turns import LeaseHolder

__all__ = ["PresenceTests", "WorkTests"]

FEISHU, SECOND, SLACK = Entrance("feishu"), Entrance("feishu", "second"), Entrance("slack")
ONE, OTHER = holder_at(pid=1), holder_at(pid=2)


def _serve(scene: Scene, holder: LeaseHolder, *entrances: Entrance) -> None:
    scene.run(ServeEntrances(entrances=entrances, holder=holder, now=scene.now))


def _leave(scene: Scene, *holders: LeaseHolder) -> None:
    scene.run(LeaveEntrances(holders=holders, now=scene.now))


class PresenceTests(StoreFixtures):
    """One row per entrance and process, with a beat for each sign of life."""

    def test_a_process_says_what_it_serves(self, store: Store, scene: Scene) -> None:
        _serve(scene, ONE, SLACK, FEISHU)

        assert store.servers() == (
            EntranceServer(entrance=FEISHU, holder=ONE, beats=1, since=scene.now),
            EntranceServer(entrance=SLACK, holder=ONE, beats=1, since=scene.now),
        )

    def test_a_sign_of_life_is_a_beat_and_no_new_beginning(self, store: Store, scene: Scene) -> None:
        since = scene.now
        _serve(scene, ONE, FEISHU, SLACK)
        scene.clock.advance(10)

        _serve(scene, ONE, FEISHU)

        assert [(each.entrance, each.beats, each.since) for each in store.servers()] == [
            (FEISHU, 2, since),
            (SLACK, 1, since),
        ]

    def test_a_process_is_the_same_at_every_door_and_key(self, store: Store, scene: Scene) -> None:
        _serve(scene, ONE, FEISHU)
        elsewhere = attrs.evolve(ONE, entrance=SLACK, session_key=OTHER_KEY)

        _serve(scene, elsewhere, FEISHU)

        (server,) = store.servers()
        assert server.beats == 2
        _leave(scene, attrs.evolve(ONE, session_key=None))
        assert store.servers() == ()

    def test_processes_are_told_apart_by_all_that_names_them(self, store: Store, scene: Scene) -> None:
        others: list[dict[str, object]] = [
            {"host": "there"},
            {"boot_id": "boot2"},
            {"pid_namespace": "2"},
            {"pid": 9},
            {"started": "78"},
        ]
        for fields in others:
            scene.clock.advance(1)
            _serve(scene, attrs.evolve(ONE, **fields), FEISHU)  # type: ignore[arg-type]  # fields of a holder
        scene.clock.advance(1)
        _serve(scene, ONE, FEISHU)

        assert [each.beats for each in store.servers()] == [1] * 6
        _leave(scene, ONE)
        assert len(store.servers()) == 5

    def test_who_came_first_stands_first(self, store: Store, scene: Scene) -> None:
        _serve(scene, OTHER, FEISHU)
        scene.clock.advance(1)
        _serve(scene, ONE, FEISHU)

        assert [each.holder.pid for each in store.servers()] == [OTHER.pid, ONE.pid]

    def test_who_leaves_is_gone_from_every_door(self, store: Store, scene: Scene) -> None:
        _serve(scene, ONE, FEISHU, SLACK)
        _serve(scene, OTHER, FEISHU)

        _leave(scene, ONE, holder_at(pid=77))

        assert [(each.entrance, each.holder.pid) for each in store.servers()] == [(FEISHU, OTHER.pid)]


class WorkTests(StoreFixtures):
    """A process finds by its entrances what it has to answer, route and apply."""

    def test_lineages_with_waiting_messages_are_work(self, store: Store, scene: Scene) -> None:
        first, second = scene.enter(), scene.enter(OTHER_KEY)
        scene.accept("b", OTHER_KEY)
        scene.accept("a")
        scene.accept("b again", OTHER_KEY, kind=INTERNAL)

        assert store.work([FEISHU]) == (second.lineage_id, first.lineage_id)
        assert store.work([SLACK, FEISHU], limit=1) == (second.lineage_id,)
        assert store.unrouted([FEISHU]) == ()

    def test_what_is_answered_is_no_work(self, store: Store, scene: Scene) -> None:
        entry, other = scene.enter(), scene.enter(OTHER_KEY)
        scene.ask(entry)
        scene.run(Withdraw(ids=(scene.accept("b", OTHER_KEY),), now=scene.now))
        scene.accept("", OTHER_KEY, error="unreadable")

        assert store.work([FEISHU]) == ()
        scene.accept("b", OTHER_KEY)
        assert store.work([FEISHU]) == (other.lineage_id,)

    def test_what_somebody_waits_for_is_his_own_work(self, store: Store, scene: Scene) -> None:
        scene.enter()
        scene.accept(waiter=holder_at())
        scene.accept(key=key_of("nowhere"), waiter=holder_at())
        scene.accept("/stop", kind=CONTROL, waiter=holder_at())

        assert (store.work([FEISHU]), store.unrouted([FEISHU]), store.controls([FEISHU])) == ((), (), ())

    def test_accounts_are_doors_of_their_own_and_terminals_are_not(self, store: Store, scene: Scene) -> None:
        entry, other = scene.enter(), scene.enter(OTHER_KEY)
        scene.accept(entrance=attrs.evolve(FEISHU, terminal="pts-1"))
        scene.accept(key=OTHER_KEY, entrance=SECOND)

        assert store.work([attrs.evolve(FEISHU, terminal="pts-2")]) == (entry.lineage_id,)
        assert store.work([SECOND]) == (other.lineage_id,)
        assert store.work([SLACK]) == ()
        assert store.work([]) == ()

    def test_messages_without_a_lineage_have_to_be_routed(self, store: Store, scene: Scene) -> None:
        ids = [scene.accept(text, key_of(text)) for text in "ab"]
        scene.accept("/new", kind=CONTROL)
        scene.accept("c", key_of("c"), entrance=SLACK)

        assert [item.id for item in store.unrouted([FEISHU])] == ids
        assert [item.id for item in store.unrouted([FEISHU], limit=1)] == ids[:1]
        assert (store.work([FEISHU]), store.unrouted([])) == ((), ())

    def test_commands_are_found_until_they_are_done(self, store: Store, scene: Scene) -> None:
        scene.enter()
        scene.accept("a message")
        waits, applied, done, gone = (scene.accept(text, kind=CONTROL) for text in "abcd")
        slack = scene.accept("/new", kind=CONTROL, entrance=SLACK)
        scene.control(None, inbox_id=applied)
        scene.control(None, inbox_id=done, settle=True)
        scene.run(Withdraw(ids=(gone,), now=scene.now))
        scene.accept("/stop", kind=CONTROL, waiter=holder_at())

        assert [item.id for item in store.controls_of_key(KEY)] == [waits, applied, slack]
        assert [item.id for item in store.controls_of_key(KEY, limit=1)] == [waits]
        assert store.controls_of_key(OTHER_KEY) == ()
        assert store.controls([]) == ()

    def test_the_commands_of_one_key_hide_no_others(self, store: Store, scene: Scene) -> None:
        first, _, _ = (scene.accept(text, kind=CONTROL) for text in "abc")
        slack = scene.accept("/new", kind=CONTROL, entrance=SLACK)
        other = scene.accept("/stop", OTHER_KEY, kind=CONTROL)

        assert [item.id for item in store.controls([FEISHU])] == [first, other]
        assert [item.id for item in store.controls([FEISHU, SLACK])] == [first, slack, other]
        assert [item.id for item in store.controls([FEISHU], limit=1)] == [first]

    def test_what_somebody_waits_for_is_found_by_key(self, store: Store, scene: Scene) -> None:
        scene.accept("nobody waits for that")
        later, first, command = (
            scene.accept("a", OTHER_KEY, waiter=holder_at()),
            scene.accept("b", waiter=holder_at()),
            scene.accept("/c", kind=CONTROL, waiter=holder_at()),
        )
        scene.run(Withdraw(ids=(scene.accept(waiter=holder_at()),), now=scene.now))

        assert [item.id for item in store.attended()] == [first, command, later]
        assert [item.id for item in store.attended(limit=1)] == [first]

    def test_unreadable_items_are_listed_newest_first(self, store: Store, scene: Scene) -> None:
        ids = [scene.accept("", error="broken") for _ in range(3)]
        scene.accept("fine")

        assert [item.id for item in store.quarantined()] == ids[::-1]
        assert [item.id for item in store.quarantined(limit=2)] == ids[:0:-1]

    def test_the_turn_that_runs_is_found_by_its_lineage(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        assert store.active_turn(entry.lineage_id) is None

        begun = scene.ask(entry)

        assert store.active_turn(entry.lineage_id) == begun.turn
        scene.finish(begun)
        assert store.active_turn(entry.lineage_id) is None

    def test_calls_without_a_result_are_found_while_the_turn_is_active(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        assert store.open_calls(entry.lineage_id) == ()
        begun = scene.ask(entry)
        asked = asking("c1", "c2", "c3")
        scene.append(begun, asked)
        scene.run(Append(fence=fence_of(begun), drafts=(result("c2"),), now=scene.now))

        assert store.open_calls(entry.lineage_id) == (asked.tool_calls[0], asked.tool_calls[2])

        scene.revoke(entry.lineage_id)
        assert store.open_calls(entry.lineage_id) == ()
