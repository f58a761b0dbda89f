"""Who tells that a turn ended: its own process while it lives, whoever ended it otherwise; never both."""

from __future__ import annotations

import subprocess
import sys

import attrs
import pytest

from hermes_core.leases import holder_here
from hermes_core.sessions.endings import Endings
from hermes_core.storage.sqlite.backend import SqliteBackend
from hermes_hookspecs.inbox import ControlOutcome
from hermes_hookspecs.ports.store import StoreOptions
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.testing.scene import Scene

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


class Telling:
    """Hooks that write down whose end was told."""

    def __init__(self):
        self.ended = []

    def turn_ended(self, turn):
        self.ended.append(turn.id)


@pytest.fixture
def store(tmp_path):
    store = SqliteBackend().open(StoreOptions(path=tmp_path / "state.db", durability="normal"))
    yield store
    store.close()


@pytest.fixture
def child():
    process = subprocess.Popen([sys.executable, "-c", "print(flush=True); input()"], stdin=-1, stdout=-1, text=True)
    process.stdout.readline()
    yield process
    process.kill()
    process.communicate()


def holder_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        started = stat.read().rpartition(")")[2].split()[19]
    return attrs.evolve(holder_here(Entrance("cli"), None), pid=pid, started=started)


def test_a_holder_that_dies_behind_the_end_of_its_turn_has_told_it_itself(store, child):
    scene, told = Scene(store), Telling()
    entry = scene.enter()
    begun = scene.ask(entry, holder=holder_of(child.pid))
    endings = Endings(lambda: store, told)

    held = endings.left_by_the_dead(entry.lineage_id)
    ended = scene.revoke(entry.lineage_id)
    child.kill()
    child.wait(20)
    endings.tell_dead(ControlOutcome(lineage_id=entry.lineage_id, stopped=ended.id), held)

    assert ended.id == begun.turn.id
    assert told.ended == []


def test_the_end_of_a_turn_whose_process_was_gone_before_is_told(store, child):
    scene, told = Scene(store), Telling()
    entry = scene.enter()
    scene.ask(entry, holder=holder_of(child.pid))
    endings = Endings(lambda: store, told)
    child.kill()
    child.wait(20)

    held = endings.left_by_the_dead(entry.lineage_id)
    ended = scene.revoke(entry.lineage_id)
    endings.tell_dead(ControlOutcome(lineage_id=entry.lineage_id, stopped=ended.id), held)

    assert told.ended == [ended.id]
