"""Many callers at once: one session, one writer, and a fence that holds in every interleaving."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from threading import Barrier, Event, Semaphore, Thread
from typing import TYPE_CHECKING, TypeVar

from hermes_hookspecs.errors import LeaseLost
from hermes_hookspecs.messages import KIND_CLOSING
from hermes_hookspecs.operations import Accept, Append, Begun, Finish, Revoke
from hermes_hookspecs.testing.scene import ALL, KEY, Scene, fence_of, key_of, saying
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_hookspecs.ports.store import Store

__all__ = ["ConcurrencyTests"]

T = TypeVar("T")
_PATIENCE_S = 60
_MOST_APPENDS = 5000


def _at_once(calls: Sequence[Callable[[], T]]) -> list[T]:
    """Run calls on a thread each, let all begin at the same moment, return their results in order."""
    barrier = Barrier(len(calls))

    def begin(call: Callable[[], T]) -> T:
        barrier.wait(_PATIENCE_S)
        return call()

    with ThreadPoolExecutor(len(calls)) as threads:
        futures = [threads.submit(begin, call) for call in calls]
        return [future.result(_PATIENCE_S) for future in futures]


class _Race:
    """Appends of one turn against the revoke of its lease, which comes when ``head_start`` appends have landed."""

    def __init__(self, store: Store, begun: Begun, *, head_start: int) -> None:
        self._store = store
        self._fence = fence_of(begun)
        self._head_start = head_start
        self._landed = Semaphore(0)
        self._revoked = Event()

    def write(self) -> list[str]:
        """Append until the lease is lost; return what became of each append."""
        fates = []
        while "lost" not in fates:
            was_revoked = self._revoked.is_set()
            append = Append(fence=self._fence, drafts=(saying("x"),), now=1)
            try:
                self._store.submit(append).result(_PATIENCE_S)
            except LeaseLost:
                fates.append("lost")
            else:
                fates.append("after" if was_revoked else "in time")
                self._landed.release()
                if len(fates) > _MOST_APPENDS:
                    break
        return fates

    def revoke(self) -> list[str]:
        """Take the lease away while the writers are at it."""
        for _ in range(self._head_start):
            assert self._landed.acquire(timeout=_PATIENCE_S)
        revoke = Revoke(lineage_id=self._fence.lineage_id, now=2, reason="/stop")
        self._store.submit(revoke).result(_PATIENCE_S)
        self._revoked.set()
        return []


class ConcurrencyTests(StoreFixtures):
    """One conversation, one writer, however many callers there are."""

    def test_fifty_callers_of_one_key_get_one_session(self, store: Store, scene: Scene) -> None:
        operations = [scene.wanting() for _ in range(50)]

        entries = _at_once([partial(store.apply, operation) for operation in operations])

        assert len({entry.session_id for entry in entries}) == 1
        assert sum(entry.created for entry in entries) == 1
        assert store.stats().lineages == 1

    def test_fifty_callers_that_force_get_one_new_session(self, store: Store, scene: Scene) -> None:
        old = scene.enter()
        operations = [scene.wanting(force_new=True, observed=old.lineage_id) for _ in range(50)]

        entries = _at_once([partial(store.apply, operation) for operation in operations])

        assert {entry.session_id for entry in entries} == {scene.enter().session_id} != {old.session_id}
        assert sum(entry.created for entry in entries) == 1

    def test_submitted_operations_run_in_order(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry, "0")
        futures = [
            store.submit(Append(fence=fence_of(begun), drafts=(saying(str(number)),), now=scene.now))
            for number in range(1, 40)
        ]

        ids = [future.result(_PATIENCE_S)[0] for future in futures]

        assert ids == sorted(ids)
        assert scene.texts(entry.lineage_id) == [str(number) for number in range(40)]

    def test_appends_of_many_lineages_lose_nothing(self, store: Store, scene: Scene) -> None:
        turns = [scene.ask(scene.enter(key_of(str(number)))) for number in range(8)]

        def write(begun: Begun) -> None:
            for number in range(10):
                store.apply(Append(fence=fence_of(begun), drafts=(saying(str(number)),), now=scene.now))

        _at_once([partial(write, begun) for begun in turns])

        for begun in turns:
            assert scene.texts(begun.turn.lineage_id) == ["hello", *map(str, range(10))]
            assert scene.lineage(begun.turn.lineage_id).message_count == 11
            assert scene.tip(begun.turn.lineage_id).message_count == 11

    def test_one_of_many_begins_gets_the_lease(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        inbox_id = scene.accept()
        operations = [scene.beginning(entry.lineage_id, inbox_id) for _ in range(16)]
        operations += [scene.beginning(entry.lineage_id, maintenance=True) for _ in range(4)]

        results = _at_once([partial(store.apply, operation) for operation in operations])

        begun = [each for each in results if isinstance(each, Begun)]
        assert len({each.turn.id for each in begun}) == 1
        assert len([turn for turn in store.turns(entry.lineage_id, ALL) if turn.outcome == "active"]) == 1

    def test_one_of_many_deliveries_of_a_message_is_stored(self, store: Store, scene: Scene) -> None:
        operation = Accept(drafts=(scene.incoming(identities=("m1",)),), now=scene.now)

        results = [taken for (taken,) in _at_once([partial(store.apply, operation)] * 16)]

        assert len({taken.id for taken in results}) == 1
        assert sum(not taken.duplicate for taken in results) == 1
        assert len(store.waiting_of_key(KEY)) == 1

    def test_no_append_lands_behind_a_revoke(self, store: Store, scene: Scene) -> None:
        """A revoke between the check and the commit of a write refuses the write."""
        entry = scene.enter()
        for round_number in range(25):
            begun = scene.ask(entry)
            race = _Race(store, begun, head_start=round_number % 9)

            first, second, _ = _at_once([race.write, race.write, race.revoke])

            assert "after" not in first + second
            assert first[-1] == second[-1] == "lost"
            rows = [row for row in scene.rows(entry.lineage_id) if row.turn_id == begun.turn.id]
            assert rows[-1].kind == KIND_CLOSING
            assert len(rows) == 2 + first.count("in time") + second.count("in time")
            assert scene.lineage(entry.lineage_id).message_count == len(scene.rows(entry.lineage_id))

    def test_queued_appends_behind_a_queued_revoke_are_refused(self, store: Store, scene: Scene) -> None:
        """The check happens in the write's own transaction, not when it is queued."""
        entry = scene.enter()
        for before in (0, 1, 5):
            begun = scene.ask(entry)
            append = Append(fence=fence_of(begun), drafts=(saying("x"),), now=scene.now)
            finish = Finish(fence=fence_of(begun), outcome="done", drafts=(saying("y"),), now=scene.now)
            early = [store.submit(append) for _ in range(before)]
            revoke = store.submit(Revoke(lineage_id=entry.lineage_id, now=scene.now, reason=""))
            late = [store.submit(append) for _ in range(5)]
            last = store.submit(finish)

            assert [future.exception(_PATIENCE_S) for future in early] == [None] * before
            assert revoke.exception(_PATIENCE_S) is None
            assert all(isinstance(future.exception(_PATIENCE_S), LeaseLost) for future in late)
            assert isinstance(last.exception(_PATIENCE_S), LeaseLost)
            rows = [row for row in scene.rows(entry.lineage_id) if row.turn_id == begun.turn.id]
            assert [row.content for row in rows[1:-1]] == ["x"] * before
            assert rows[-1].kind == KIND_CLOSING

    def test_a_refused_operation_takes_no_neighbour_along(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        good = Append(fence=fence_of(begun), drafts=(saying("good"),), now=scene.now)
        bad = Append(fence=fence_of(begun), drafts=(saying("half"), saying("bad", role="robot")), now=scene.now)

        futures = [store.submit(bad if number % 3 == 1 else good) for number in range(9)]
        wait(futures, _PATIENCE_S)

        assert [future.exception() is None for future in futures] == [True, False, True] * 3
        assert scene.texts(entry.lineage_id) == ["hello", *["good"] * 6]

    def test_readers_see_whole_writes_only(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        done, looked = Event(), Semaphore(0)
        seen: set[int] = set()

        def look() -> None:
            while not done.is_set():
                lineage, rows = store.submit_read(
                    lambda reader: (reader.lineage(entry.lineage_id, ALL), reader.messages(entry.lineage_id, ALL))
                ).result(_PATIENCE_S)
                assert lineage is not None
                seen.add(lineage.message_count - len(rows))
                seen.add((len(rows) - 1) % 3)
                looked.release()

        reader = Thread(target=look)
        reader.start()
        try:
            for _ in range(30):
                scene.append(begun, saying("a"), saying("b"), saying("c"))
                assert looked.acquire(timeout=_PATIENCE_S)
        finally:
            done.set()
            reader.join(_PATIENCE_S)

        assert seen == {0}
