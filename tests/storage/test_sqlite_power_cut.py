"""What a power cut takes: nothing that was answered as kept, and a begin only together with all that hangs on it."""

from __future__ import annotations

import shutil
import threading

import pytest

from hermes_core.storage.sqlite import wal
from hermes_core.storage.sqlite.backend import SqliteBackend
from hermes_hookspecs.inbox import PENDING
from hermes_hookspecs.operations import Accept, Renew, ServeEntrances
from hermes_hookspecs.ports.store import StoreOptions
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.testing.scene import Scene, asking, fence_of, holder_at
from hermes_hookspecs.turns import ACTIVE, INTERRUPTED


class Disk:
    """The medium under a store: of the log, only what was synced is on it."""

    def __init__(self, folder, monkeypatch):
        self.path = folder / "home" / "state.db"
        self.syncs = 0
        self._folder = folder
        self._opened = []
        monkeypatch.setattr(wal, "sync_to_disk", self._keep)

    def open(self, path=None):
        self._opened.append(SqliteBackend().open(StoreOptions(path=path or self.path)))
        return self._opened[-1]

    def _keep(self, descriptor):
        self.syncs += 1
        kept = self._folder / "kept"
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir()
        for name in ("state.db", "state.db-wal"):
            shutil.copy(self.path.with_name(name), kept / name)

    def after_a_power_cut(self):
        """Another store, which has what was on the medium."""
        return Scene(self.open(self._folder / "kept" / "state.db"), prefix="20260102_000000_")

    def close(self):
        for store in self._opened:
            store.close()


@pytest.fixture
def disk(tmp_path, monkeypatch):
    disk = Disk(tmp_path, monkeypatch)
    yield disk
    disk.close()


@pytest.fixture
def scene(disk):
    return Scene(disk.open())


def test_a_begin_answers_once_everybody_sees_it_and_waits_for_no_disk(disk, scene):
    entry = scene.enter()
    inbox_id = scene.accept(lineage_id=entry.lineage_id)
    before = disk.syncs

    begun = scene.begin(entry.lineage_id, inbox_id)

    assert disk.syncs == before
    seen = Scene(disk.open()).lease(entry.lineage_id)
    assert seen.token == begun.turn.token


def test_a_power_cut_behind_a_begin_leaves_its_message_waiting(disk, scene):
    entry = scene.enter()
    inbox_id = scene.accept("how are you?", lineage_id=entry.lineage_id)
    scene.begin(entry.lineage_id, inbox_id)

    found = disk.after_a_power_cut()

    assert found.store.inbox_item(inbox_id).status == PENDING
    assert found.rows(entry.lineage_id) == ()
    begun = found.begin(entry.lineage_id, inbox_id)
    assert found.texts(entry.lineage_id) == ["how are you?"]
    assert begun.interrupted is None


def test_a_step_is_kept_together_with_the_begin_before_it(disk, scene):
    entry = scene.enter()
    begun = scene.ask(entry)
    scene.append(begun, asking("call-1"))

    found = disk.after_a_power_cut()

    assert found.store.turn(begun.turn.id).outcome == ACTIVE
    again = found.begin(entry.lineage_id, maintenance=True, presumed_dead=found.lease(entry.lineage_id).stamp)
    assert again.interrupted.outcome == INTERRUPTED
    assert again.turn.token > begun.turn.token


@pytest.mark.parametrize(
    "sign_of_life",
    [
        lambda scene, begun: Renew(fence=fence_of(begun), now=scene.now, ttl_ms=30_000),
        lambda scene, begun: ServeEntrances(entrances=(Entrance("feishu"),), holder=holder_at(), now=scene.now),
    ],
    ids=["renew", "serve"],
)
def test_a_sign_of_life_waits_for_no_disk(disk, scene, sign_of_life):
    begun = scene.ask(scene.enter())
    before = disk.syncs

    scene.run(sign_of_life(scene, begun))

    assert disk.syncs == before


def test_what_shares_a_commit_with_a_begin_is_kept_as_ever(disk, scene):
    entry = scene.enter()
    inbox_id = scene.accept(lineage_id=entry.lineage_id)
    inside, go = threading.Event(), threading.Event()
    held = scene.store.sqlite_access()._database.submit(lambda t: (inside.set(), go.wait(10)))
    assert inside.wait(10)
    begun = scene.store.submit(scene.beginning(entry.lineage_id, inbox_id))
    taken = scene.store.submit(Accept(drafts=(scene.incoming("and you?"),), now=scene.now))
    go.set()
    held.result(10)
    begun.result(10)
    (accepted,) = taken.result(10)

    assert disk.after_a_power_cut().store.inbox_item(accepted.id).text == "and you?"
