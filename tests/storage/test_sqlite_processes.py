"""Several processes on one store: nothing acknowledged is lost, nobody wipes what another wrote."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import apsw
import pytest

from hermes_core.storage.sqlite.backend import SqliteBackend
from hermes_hookspecs.ids import LineageId
from hermes_hookspecs.operations import BindRoute
from hermes_hookspecs.ports.store import StoreOptions
from hermes_hookspecs.testing.scene import ALL, KEY, OTHER_KEY, Scene, key_of, source_at

PREAMBLE = """
import sys
from hermes_core.storage.sqlite.backend import SqliteBackend
from hermes_hookspecs.messages import MessageDraft
from hermes_hookspecs.ports.store import StoreOptions
from hermes_hookspecs.testing.scene import ALL, Scene, asking, holder_at, key_of, result, saying, source_at

path, name = sys.argv[1:3]
def opened():
    return SqliteBackend().open(StoreOptions(path=path))
def wait_for_go():
    print("ready", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "home" / "state.db"


@pytest.fixture
def open_store(path):
    opened = []

    def open_one():
        opened.append(SqliteBackend().open(StoreOptions(path=path)))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def start(path):
    """Start a program on the store; at the end whatever still runs is killed."""
    running = []

    def start_one(program, name):
        process = subprocess.Popen(
            [sys.executable, "-c", PREAMBLE + program, str(path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ,
        )
        running.append(process)
        return process

    yield start_one
    for process in running:
        process.kill()
        process.communicate()


def _outcome(process, message=None):
    out, err = process.communicate(message, timeout=60)
    assert process.returncode == 0, err
    return out.splitlines()


def test_a_fresh_home_is_opened_by_several_processes_at_once(start, open_store):
    program = """
wait_for_go()
store = opened()
scene = Scene(store, f"20260101_00000{name}_")
shared = scene.enter()
own = scene.enter(key_of(f"own-{name}"), source_at(f"own-{name}"))
scene.talk(own)
print(shared.session_id)
store.close()
"""
    processes = [start(program, str(number)) for number in range(5)]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * 5

    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    shared = {_outcome(process)[-1] for process in processes}

    store = open_store()
    assert len(shared) == 1
    assert store.stats().lineages == 6
    assert store.stats().messages == 10
    assert store.integrity() == []


def test_neither_process_wipes_routes_of_the_other(start, open_store):
    """Case B19: the routing index was loaded once and written back as a whole."""
    program = """
store = opened()
scene = Scene(store, f"20260101_00000{name}_")
mine = scene.enter(key_of("theirs"), source_at("theirs"))
wait_for_go()
scene.enter(key_of("more-of-theirs"), source_at("more"))
scene.enter(key_of("theirs"), source_at("theirs"), now=scene.now + 60_000)
print(store.route(key_of("oc_1")).lineage_id)
"""
    first = Scene(open_store())
    mine = first.enter(KEY)
    other = start(program, "2")
    assert other.stdout.readline() == "ready\n"

    moved = first.enter(OTHER_KEY, source_at("oc_2"))
    first.run(
        BindRoute(
            key=KEY, key_version=1, source=source_at(), policy=first.policy, lineage_id=moved.lineage_id, now=first.now
        )
    )
    seen_there = _outcome(other, "go\n")[-1]

    assert seen_there == moved.lineage_id != mine.lineage_id
    reopened = open_store()
    assert {route.key for route in reopened.routes()} == {
        KEY,
        OTHER_KEY,
        key_of("theirs"),
        key_of("more-of-theirs"),
    }
    assert {route.key for route in first.store.routes()} == {route.key for route in reopened.routes()}


def test_two_processes_on_one_lineage_lose_nothing(start, open_store):
    program = """
store = opened()
scene = Scene(store, f"20260101_00000{name}_")
entry = scene.enter()
wait_for_go()
done = 0
while done < 30:
    inbox_id = scene.accept(f"{name}-{done}", lineage_id=entry.lineage_id)
    while True:
        waiting = store.waiting(entry.lineage_id, limit=1)
        if not waiting or waiting[0].id != inbox_id:
            if store.inbox_item(inbox_id).status == "done":
                break
            continue
        begun = scene.try_begin(entry.lineage_id, inbox_id, holder=holder_at(pid=int(name)))
        if type(begun).__name__ == "Begun":
            scene.append(begun, asking("c"), result("c"))
            scene.finish(begun, saying(f"answer to {name}-{done}"))
            break
    done += 1
print("done")
"""
    processes = [start(program, str(number)) for number in (1, 2)]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * 2

    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        assert _outcome(process)[-1] == "done"

    store = open_store()
    (line,) = store.summaries(ALL)
    rows = store.messages(line.lineage_id, ALL)
    assert len(rows) == line.message_count == 60 * 4
    for question, answer in zip(rows[::4], rows[3::4], strict=True):
        assert answer.content == f"answer to {question.content}"
    assert store.lease(line.lineage_id).holder is None


def test_counters_equal_the_rows_after_a_kill(start, open_store, path):
    """Case B08: the stored counter lagged behind the rows when the process died between the two."""
    program = """
store = opened()
scene = Scene(store)
entry = scene.enter()
wait_for_go()
number = 0
while True:
    begun = scene.ask(entry, f"question {number}")
    scene.append(begun, asking("a", "b"), result("a"), result("b"))
    print(begun.turn.lineage_id, flush=True)
    scene.finish(begun, saying("answer"))
    number += 1
"""
    process = start(program, "1")
    assert process.stdout.readline() == "ready\n"
    process.stdin.write("go\n")
    process.stdin.flush()
    acknowledged = 0
    while acknowledged < 25:
        lineage_id = LineageId(process.stdout.readline().strip())
        acknowledged += 1

    os.kill(process.pid, signal.SIGKILL)
    process.wait(30)

    store = open_store()
    lineage, rows = store.lineage(lineage_id, ALL), store.messages(lineage_id, ALL)
    (session,) = store.segments(lineage_id, ALL)
    assert store.integrity() == []
    assert lineage.message_count == session.message_count == store.stats().messages == len(rows) >= 25 * 4
    assert session.tool_call_count == sum(len(row.tool_calls) for row in rows)
    assert lineage.turn_count == len(store.turns(lineage_id, ALL)) >= 25
    inserted = [change.message_id for change in store.changes(None)[0] if change.kind == "insert"]
    assert inserted == [row.id for row in rows][: len(inserted)]
    raw = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    assert raw.execute("SELECT count(*) FROM changes WHERE kind = 'insert'").fetchall() == [(len(rows),)]
    raw.close()


def test_a_forked_child_is_told_to_start_a_fresh_process(start):
    program = """
import os
from hermes_hookspecs.errors import StoreStopped
store = opened()
scene = Scene(store)
begun = scene.ask(scene.enter())
store.submit_read(lambda reader: reader.stats()).result(20)
child = os.fork()
if not child:
    uses = (
        store.stats,
        lambda: scene.append(begun, saying("child")),
        lambda: store.submit(scene.wanting()),
        lambda: store.submit_read(lambda reader: reader.stats()),
    )
    refused = 0
    for use in uses:
        try:
            use()
        except StoreStopped as error:
            refused += "spawn" in str(error)
    store.close()
    os._exit(refused)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
scene.append(begun, saying("parent"))
print(scene.texts(begun.turn.lineage_id))
store.close()
"""

    assert _outcome(start(program, "1")) == ["4", "['hello', 'parent']"]


def test_a_dead_holder_is_taken_over_with_its_open_calls(start, open_store):
    program = """
store = opened()
scene = Scene(store)
begun = scene.ask(scene.enter(), "question")
scene.append(begun, asking("a", "b"), result("a"))
wait_for_go()
"""
    process = start(program, "1")
    assert process.stdout.readline() == "ready\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait(30)

    scene = Scene(open_store(), "20260101_000009_")
    entry = scene.enter()
    dead = scene.lease(entry.lineage_id).stamp
    begun = scene.ask(entry, "next", presumed_dead=dead)

    assert begun.interrupted is not None
    assert begun.interrupted.outcome == "interrupted"
    assert [(row.role, row.kind) for row in scene.rows(entry.lineage_id)] == [
        ("user", ""),
        ("assistant", ""),
        ("tool", ""),
        ("tool", "interrupted"),
        ("assistant", "closing"),
        ("user", ""),
    ]
