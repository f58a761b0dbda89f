"""One key, many callers: one session, in one process and in four."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

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
    if force:
        observed = app.store.route(app.session_key(source)).lineage_id
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
        except Exception as error:
            return error

    with ThreadPoolExecutor(count) as threads:
        return list(threads.map(begin, range(count)))


def test_fifty_threads_get_one_session(app):
    got = at_once(CALLERS, lambda: app.get_or_create_session(SOURCE))

    assert len({entry.session_id for entry in got}) == 1
    assert len(app.store.summaries(ALL, limit=None)) == 1


def test_fifty_threads_that_force_get_one_new_session(app):
    before = app.get_or_create_session(SOURCE)

    got = at_once(CALLERS, lambda: app.get_or_create_session(SOURCE, force_new=True))

    assert len({entry.session_id for entry in got}) == 1
    assert got[0].session_id != before.session_id
    assert len(app.store.summaries(ALL, limit=None)) == 2


def test_the_owner_raises_and_all_followers_raise_and_the_next_call_works(app, monkeypatch):
    store, asked = app.store, []
    arrived = Barrier(2)
    apply = type(store).apply

    def failing(self, operation):
        asked.append(operation)
        arrived.wait(30)
        raise StoreFull("no space left")

    monkeypatch.setattr(type(store), "apply", failing)
    with ThreadPoolExecutor(CALLERS) as threads:
        futures = [threads.submit(app.get_or_create_session, SOURCE) for _ in range(CALLERS)]
        while len(_waiting_in_flight(app)) == 0:
            pass
        arrived.wait(30)
        # Whoever comes after the first flight has landed owns a flight of their own.
        while not all(future.done() for future in futures):
            try:
                arrived.wait(0.2)
            except Exception:
                arrived.reset()
        errors = [future.exception(30) for future in futures]
    monkeypatch.setattr(type(store), "apply", apply)

    assert [type(error) for error in errors] == [StoreFull] * CALLERS
    assert len(asked) < CALLERS
    assert app.get_or_create_session(SOURCE).created
    assert len(app.store.summaries(ALL, limit=None)) == 1


def _waiting_in_flight(app):
    return app._desk._flights._flights


@pytest.mark.slow
@pytest.mark.parametrize("force", ["reuse", "force"])
def test_four_processes_at_once_get_one_session(home, python, force):
    if force == "force":
        with open_app(home, plugins=False) as app:
            app.get_or_create_session(SOURCE)
    processes = [python(CALL, force, "13") for _ in range(4)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"

    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    got = [process.communicate(timeout=60) for process in processes]

    assert [process.returncode for process in processes] == [0] * 4, got
    sessions = {word for out, _ in got for word in out.split()}
    with open_app(home, plugins=False) as app:
        there = {summary.session_id for summary in app.store.summaries(ALL, limit=None)}
        current = app.get_or_create_session(SOURCE)
    if force == "reuse":
        assert sessions == there == {current.session_id}
    else:
        assert len(there) == 2
        assert sessions == {current.session_id}
