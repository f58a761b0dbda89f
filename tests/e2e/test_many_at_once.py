"""One key, many callers: one session, in one process and in four."""

from __future__ import annotations

import subprocess
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from hermes_core import SessionSource, open_app
from hermes_hookspecs.errors import StoreFull
from hermes_hookspecs.principal import operator

ALL = operator()
SOURCE = SessionSource(platform="feishu", chat_id="oc_1", user_id="u")
CALLERS = 50

CALL = """
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from hermes_core import SessionSource, open_app

source = SessionSource(platform="feishu", chat_id="oc_1", user_id="u")
force, callers = sys.argv[2] == "force", int(sys.argv[3])
with open_app(sys.argv[1], plugins=False) as app:
    app.store
    barrier = Barrier(callers)

    def call(_):
        barrier.wait(30)
        return app.get_or_create_session(source, force_new=force).session_id

    print("ready", flush=True)
    sys.stdin.readline()
    with ThreadPoolExecutor(callers) as threads:
        print(*set(threads.map(call, range(callers))), flush=True)
"""


@pytest.fixture
def app(home):
    with open_app(home, plugins=False) as opened:
        yield opened


def at_once(count, call):
    """Let ``count`` threads call at the same moment and return what each got, or raised."""
    barrier = Barrier(count)

    def begin(_):
        barrier.wait(30)
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - whatever it is, the test looks at it
            return error

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(begin, range(count)))


def wait_for_all(app, monkeypatch):
    """Return an event that is set once all callers have called."""
    called, all_called = [], Event()
    look = app.desk._flights.do

    def counting(key, call):
        called.append(key)
        if len(called) == CALLERS:
            all_called.set()
        return look(key, call)

    monkeypatch.setattr(app.desk._flights, "do", counting)
    return all_called


def test_fifty_threads_get_one_session(app):
    got = at_once(CALLERS, lambda: app.get_or_create_session(SOURCE))

    assert len({entry.session_id for entry in got}) == 1
    assert len(app.store.summaries(ALL, limit=None)) == 1


def test_fifty_threads_that_force_get_one_new_session(app, monkeypatch):
    before = app.get_or_create_session(SOURCE)
    all_called = wait_for_all(app, monkeypatch)
    apply = type(app.store).apply

    def late(self, operation):
        assert all_called.wait(30)
        return apply(self, operation)

    monkeypatch.setattr(type(app.store), "apply", late)
    got = at_once(CALLERS, lambda: app.get_or_create_session(SOURCE, force_new=True))

    assert len({entry.session_id for entry in got}) == 1
    assert [entry.created for entry in got].count(True) == 1
    assert got[0].session_id != before.session_id
    assert len(app.store.summaries(ALL, limit=None)) == 2
    assert app.get_or_create_session(SOURCE, force_new=True).session_id != got[0].session_id


def test_the_owner_raises_and_all_followers_raise_and_the_next_call_works(app, monkeypatch):
    store, asked = app.store, []
    all_called = wait_for_all(app, monkeypatch)
    apply = type(store).apply

    def failing(self, operation):
        asked.append(operation)
        assert all_called.wait(30)
        raise StoreFull("no space left")

    monkeypatch.setattr(type(store), "apply", failing)
    errors = at_once(CALLERS, lambda: app.get_or_create_session(SOURCE))
    monkeypatch.setattr(type(store), "apply", apply)

    assert [type(error) for error in errors] == [StoreFull] * CALLERS
    assert len(asked) < CALLERS
    assert app.get_or_create_session(SOURCE).created
    assert len(app.store.summaries(ALL, limit=None)) == 1


HOLD = """
import sys
import apsw
connection = apsw.Connection(sys.argv[1] + "/state.db")
connection.set_busy_timeout(20_000)
connection.execute("BEGIN IMMEDIATE")
print("held", flush=True)
sys.stdin.readline()
connection.execute("ROLLBACK")
"""


@pytest.mark.slow
@pytest.mark.parametrize("force", ["reuse", "force"])
def test_four_processes_at_once_get_one_session(home, python, force):
    """All of them call while somebody else holds the store's lock, so that none is done before the last has called."""
    with open_app(home, plugins=False) as app:
        _ = app.get_or_create_session(SOURCE) if force == "force" else app.store
    processes = [python(CALL, force, "13") for _ in range(4)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    holder = python(HOLD)
    assert holder.stdout.readline() == "held\n"

    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.6)
    holder.communicate("go\n", timeout=60)
    got = [process.communicate(timeout=60) for process in processes]

    assert [process.returncode for process in processes] == [0] * 4, got
    sessions = {word for out, _ in got for word in out.split()}
    with open_app(home, plugins=False) as app:
        there = {summary.session_id for summary in app.store.summaries(ALL, limit=None)}
        current = app.get_or_create_session(SOURCE)
    assert sessions == {current.session_id}
    assert len(there) == (2 if force == "force" else 1)
