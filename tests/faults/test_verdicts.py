"""What is decided about a dead turn must hold for everything that it did before it died."""

from __future__ import annotations

import os
import subprocess
import sys

from hermes_core.leases import holder_here
from hermes_core.storage.sqlite.backend import SqliteBackend
from hermes_core.turns.presence import Presence
from hermes_core.turns.queue import LeaseTimes, LineageQueue
from hermes_hookspecs.clock import SystemClock
from hermes_hookspecs.operations import Begun, ServeEntrances
from hermes_hookspecs.ports.store import StoreOptions
from hermes_hookspecs.testing.scene import KEY, Scene

DYING = """
import os, sys
from hermes_core.leases import holder_here
from hermes_core.storage.sqlite.backend import SqliteBackend
from hermes_hookspecs.ports.store import StoreOptions
from hermes_hookspecs.testing.scene import KEY, Scene, asking

path, lineage_id, inbox_id = sys.argv[1:]
store = SqliteBackend().open(StoreOptions(path=path))
scene = Scene(store, "20260101_000001_")
item = store.inbox_item(int(inbox_id))
begun = scene.begin(lineage_id, item.id, holder=holder_here(item.entrance, KEY))
print("begun", flush=True)
sys.stdin.readline()
scene.append(begun, asking("c1"))  # a tool that writes, unless it says otherwise
os._exit(0)
"""


def test_a_message_is_not_tried_again_after_a_step_that_came_behind_the_look(tmp_path):
    path = tmp_path / "home" / "state.db"
    store = SqliteBackend().open(StoreOptions(path=path))
    scene = Scene(store)
    entry = scene.enter()
    inbox_id = scene.accept("one")
    item = store.inbox_item(inbox_id)
    me = holder_here(item.entrance, KEY)
    store.apply(ServeEntrances(entrances=(item.entrance,), holder=me, now=scene.now))
    dying = subprocess.Popen(
        [sys.executable, "-c", DYING, str(path), entry.lineage_id, str(inbox_id)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    assert dying.stdout.readline() == "begun\n"
    clock = SystemClock()
    times = LeaseTimes(ttl_s=30, renew_s=10, notice_s=30, wait_s=60)
    queue = LineageQueue(entry.lineage_id, clock=clock, times=times, presence=Presence(clock, 30), recovery_attempts=2)

    def look(reader):
        reader.lease(entry.lineage_id)  # from here on the view is what it is
        dying.communicate("go\n", timeout=20)
        return queue.look(reader)

    seen = store.submit_read(look).result(30)
    taken = (
        store.apply(queue.begin(seen, seen.waiting, holder=me, shared=False, snapshot=None)) if seen.waiting else None
    )
    status = store.inbox_item(inbox_id).status
    store.close()

    assert dying.returncode == 0
    assert not isinstance(taken, Begun) or inbox_id not in taken.turn.inbox_ids
    assert status == "claimed"  # nobody has decided about it yet: the next look does
