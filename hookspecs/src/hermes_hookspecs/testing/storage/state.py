"""State of plugins, the change feed, and what a store does when it is closed or opened again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_hookspecs.errors import Conflict, HermesError, IllegalMessage
from hermes_hookspecs.operations import Append, Delete, PutState, Rename, SetFlags
from hermes_hookspecs.state import ABSENT, Change, StateUpdate
from hermes_hookspecs.testing.scene import ALL, OTHER_KEY, Scene, asking, fence_of, holder_at, key_of, saying
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.state import StateEntry

__all__ = ["FeedTests", "LifeTests", "StateTests"]


def _put(scene: Scene, *updates: StateUpdate) -> Sequence[StateEntry | None]:
    return scene.run(PutState(updates=updates, now=scene.now))


def _update(key: str = "k", value: str | None = "1", **fields: int) -> StateUpdate:
    return StateUpdate(namespace="p", key=key, value=value, **fields)  # type: ignore[arg-type]  # numbers only


class StateTests(StoreFixtures):
    """Namespaced values, compared and set."""

    def test_a_value_is_written_and_read(self, store: Store, scene: Scene) -> None:
        (entry,) = _put(scene, _update(value='{"a": "ü"}'))

        assert entry is not None
        assert store.state("p", "k", now=scene.now) == entry
        assert (entry.namespace, entry.key, entry.value) == ("p", "k", '{"a": "ü"}')
        assert (entry.version, entry.updated_at, entry.expires_at) == (1, scene.now, None)

    def test_namespaces_do_not_meet(self, store: Store, scene: Scene) -> None:
        _put(scene, _update())

        assert store.state("q", "k", now=scene.now) is None
        assert store.states("q", now=scene.now) == ()

    def test_versions_grow_with_every_write(self, scene: Scene) -> None:
        _put(scene, _update())

        (entry,) = _put(scene, _update(value="2"))

        assert entry is not None
        assert (entry.value, entry.version) == ("2", 2)

    def test_a_write_that_expects_another_version_is_refused(self, store: Store, scene: Scene) -> None:
        _put(scene, _update())

        for wrong in (ABSENT, 2):
            with pytest.raises(Conflict):
                _put(scene, _update("free"), _update(value="2", expected_version=wrong))
        with pytest.raises(Conflict):
            _put(scene, _update("missing", expected_version=1))

        assert [(each.key, each.value) for each in store.states("p", now=scene.now)] == [("k", "1")]

    def test_a_write_that_expects_what_is_there_works(self, scene: Scene) -> None:
        _put(scene, _update(expected_version=ABSENT))

        (entry,) = _put(scene, _update(value="2", expected_version=1))

        assert entry is not None
        assert entry.version == 2

    def test_a_value_is_removed(self, store: Store, scene: Scene) -> None:
        _put(scene, _update())

        assert list(_put(scene, _update(value=None), _update("missing", None))) == [None, None]

        assert store.state("p", "k", now=scene.now) is None
        (entry,) = _put(scene, _update(expected_version=ABSENT))
        assert entry is not None
        assert entry.version == 1

    def test_a_removal_compares_too(self, store: Store, scene: Scene) -> None:
        _put(scene, _update())

        with pytest.raises(Conflict):
            _put(scene, _update(value=None, expected_version=2))

        assert store.state("p", "k", now=scene.now) is not None

    def test_an_expired_value_is_not_there(self, store: Store, scene: Scene) -> None:
        end = scene.now + 1000
        _put(scene, _update(expires_at=end), _update("kept"))

        assert store.state("p", "k", now=end - 1) is not None
        assert store.state("p", "k", now=end) is None
        assert [each.key for each in store.states("p", now=end)] == ["kept"]

    def test_an_expired_value_counts_as_absent(self, scene: Scene) -> None:
        _put(scene, _update(expires_at=scene.now + 1000))
        scene.clock.advance(1)

        with pytest.raises(Conflict):
            _put(scene, _update(value="2", expected_version=1))
        (entry,) = _put(scene, _update(value="2", expected_version=ABSENT))

        assert entry is not None
        assert (entry.value, entry.version) == ("2", 1)

    def test_values_are_listed_by_the_beginning_of_their_key(self, store: Store, scene: Scene) -> None:
        _put(scene, *(_update(key) for key in ("b", "a%2", "a_1", "a%1", "A", "日志", "é")))

        def keys(prefix: str = "") -> list[str]:
            return [each.key for each in store.states("p", now=scene.now, prefix=prefix)]

        assert keys() == ["A", "a%1", "a%2", "a_1", "b", "é", "日志"]
        assert keys("a%") == ["a%1", "a%2"]
        assert keys("日") == ["日志"]


class FeedTests(StoreFixtures):
    """Derived data is fed from here: every row is told once, in order."""

    def test_every_stored_row_is_told_in_order(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        scene.append(begun, asking("c1"))
        scene.revoke(entry.lineage_id)

        inserts = [change for change in store.changes(None)[0] if change.kind == "insert"]

        rows = scene.rows(entry.lineage_id)
        assert [change.message_id for change in inserts] == [row.id for row in rows]
        assert {change.lineage_id for change in inserts} == {entry.lineage_id}
        assert {change.session_id for change in inserts} == {entry.session_id}
        assert {change.at for change in inserts} == {scene.now}

    def test_changes_of_a_lineage_are_told(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        cursor = store.changes(None)[1]

        def told() -> list[str]:
            nonlocal cursor
            changes, cursor = store.changes(cursor)
            assert all((each.lineage_id, each.message_id) == (entry.lineage_id, None) for each in changes)
            return [each.kind for each in changes]

        scene.run(Rename(lineage_id=entry.lineage_id, title="plan", origin="user", now=scene.now))
        assert told() == ["lineage"]
        scene.run(SetFlags(lineage_id=entry.lineage_id, now=scene.now, pinned=True))
        assert told() == ["lineage"]
        scene.run(Delete(lineage_id=entry.lineage_id, now=scene.now))
        assert told()[-1] == "delete-lineage"

    def test_a_creation_is_told(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()

        (change,) = store.changes(None)[0]

        assert (change.kind, change.lineage_id, change.message_id) == ("lineage", entry.lineage_id, None)

    def test_what_was_refused_is_not_told(self, store: Store, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        cursor = store.changes(None)[1]

        with pytest.raises(HermesError):
            scene.append(begun, saying("x", role="robot"))

        assert store.changes(cursor) == ((), cursor)

    def test_a_cursor_goes_on_where_it_stopped(self, store: Store, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        scene.append(begun, *(saying(str(number)) for number in range(5)))
        everything, end = store.changes(None)
        seen: list[Change] = []
        cursor: str | None = None

        while True:
            page, cursor = store.changes(cursor, limit=2)
            if not page:
                break
            assert len(page) <= 2
            seen += page

        assert seen == list(everything)
        assert store.changes(end)[0] == ()
        scene.append(begun, saying("new"))
        (fresh,) = store.changes(end)[0]
        assert fresh.message_id == scene.rows(begun.turn.lineage_id)[-1].id

    def test_a_cursor_at_the_beginning_can_be_kept(self, store: Store, scene: Scene) -> None:
        _, start = store.changes(None)

        scene.enter()

        assert store.changes(start) == store.changes(None)

    @pytest.mark.parametrize("garbage", ["", "0", "1", "-1", "x", "a:b:c", "x.1", "\x00", "日志", "9" * 400])
    def test_a_cursor_that_cannot_be_read_is_refused(self, store: Store, scene: Scene, garbage: str) -> None:
        scene.enter()

        with pytest.raises(ValueError, match=r".+"):
            store.changes(garbage)

    def test_a_cursor_of_another_store_is_refused(
        self, store: Store, scene: Scene, another_store: Store | None
    ) -> None:
        if another_store is None:
            pytest.skip("this backend gives no second store: fixture another_store")
        scene.talk(scene.enter())
        other = Scene(another_store)
        other.talk(other.enter())
        _, cursor = another_store.changes(None)

        with pytest.raises(ValueError, match=r".+"):
            store.changes(cursor)


class LifeTests(StoreFixtures):
    """Opening, closing, reading on other threads, knowing that something happened."""

    def test_a_store_says_what_it_is(self, store: Store) -> None:
        assert store.name
        assert store.location
        assert store.durable is self.durable

    def test_the_change_mark_moves_with_a_commit(self, store: Store, scene: Scene) -> None:
        before = store.change_mark()

        scene.enter()

        after = store.change_mark()
        assert after != before
        assert store.change_mark() == after

    def test_a_submitted_operation_ends_as_it_would_have_been_applied(self, store: Store, scene: Scene) -> None:
        good = store.submit(scene.wanting())
        begun = scene.ask(good.result(timeout=30))
        scene.revoke(begun.turn.lineage_id)
        bad = store.submit(Append(fence=fence_of(begun), drafts=(saying("late"),), now=scene.now))

        assert isinstance(bad.exception(timeout=30), HermesError)

    def test_an_operation_is_awaited_from_an_event_loop(self, store: Store, scene: Scene) -> None:
        from asyncio import gather, run, wait_for

        begun = scene.ask(scene.enter())
        good = Append(fence=fence_of(begun), drafts=(saying("a"), saying("b")), now=scene.now)
        bad = Append(fence=fence_of(begun), drafts=(saying("x", role="robot"),), now=scene.now)

        async def scenario() -> list[object]:
            waiting = gather(*(store.perform(each) for each in (good, bad, good)), return_exceptions=True)
            return list(await wait_for(waiting, 60))

        first, refused, last = run(scenario())

        assert isinstance(refused, IllegalMessage)
        assert [first, last] == [tuple(row.id for row in scene.rows(begun.turn.lineage_id)[n : n + 2]) for n in (1, 3)]

    def test_a_submitted_read_gets_the_store(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry)

        rows = store.submit_read(lambda reader: reader.messages(entry.lineage_id, ALL)).result(timeout=30)

        assert rows == scene.rows(entry.lineage_id)

    def test_a_submitted_read_that_raises_says_so(self, store: Store) -> None:
        def fail(_reader: object) -> None:
            raise LookupError("not here")

        assert isinstance(store.submit_read(fail).exception(timeout=30), LookupError)

    def test_a_closed_store_takes_no_more_writes(self, store: Store, scene: Scene) -> None:
        operation = scene.wanting()
        store.close()
        store.close()

        with pytest.raises(HermesError):
            store.apply(operation)

    def test_everything_is_there_after_a_reopen(
        self, store: Store, scene: Scene, reopen: Callable[[], Store] | None
    ) -> None:
        if not self.durable:
            pytest.skip("this backend is not durable")
        assert reopen is not None, "a durable backend gives the fixture reopen"
        entry, other = scene.enter(), scene.enter(OTHER_KEY)
        scene.talk(entry, "hello 日志")
        begun = scene.ask(other, holder=holder_at("pts-3"))
        scene.append(begun, asking("c1"))
        scene.run(Rename(lineage_id=entry.lineage_id, title="plan", origin="user", now=scene.now))
        scene.accept("waits", key_of("oc_3"), identities=("m1",))
        _put(scene, _update())
        before = _everything(store, scene)
        cursor = store.changes(None)[1]

        again = reopen()

        later = Scene(again, prefix="20260102_000000_")
        assert _everything(again, later) == before
        assert again.changes(cursor)[0] == ()
        assert later.accept(key=key_of("oc_4")) > 0
        ids = [row.id for row in later.rows(entry.lineage_id)]
        later.talk(entry)
        assert later.rows(entry.lineage_id)[-1].id > max(ids)
        later.finish(begun, saying("after all"))
        assert later.texts(other.lineage_id)[-1] == "after all"


def _everything(store: Store, scene: Scene) -> dict[str, object]:
    """Return all that can be read of a store."""
    summaries = store.summaries(ALL, limit=None)
    lineages = [summary.lineage_id for summary in summaries]
    return {
        "summaries": summaries,
        "stats": (store.stats().lineages, store.stats().messages, store.stats().waiting),
        "routes": store.routes(),
        "lineages": [store.lineage(each, ALL) for each in lineages],
        "segments": [store.segments(each, ALL) for each in lineages],
        "rows": [store.messages(each, ALL) for each in lineages],
        "turns": [store.turns(each, ALL) for each in lineages],
        "leases": store.leases(),
        "waiting": [store.waiting(each) for each in lineages],
        "state": store.states("p", now=scene.now),
        "feed": store.changes(None)[0],
    }
