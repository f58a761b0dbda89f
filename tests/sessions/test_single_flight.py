"""Callers at once get one session: made once, told once; an error is everybody's, and is over."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from hermes_core.sessions.single_flight import SingleFlight
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import SessionSource

COUNT = 50
SOURCE = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1")
PATIENCE_S = 20


class Held:
    """A store whose first get-or-create waits until all the others wait for it."""

    def __init__(self, store, flights, error=None):
        self._store, self._flights, self._error = store, flights, error
        self.calls = 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    def apply(self, operation):
        self.calls += 1
        wait_for_followers(self._flights, COUNT - 1)
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        return self._store.apply(operation)


def wait_for_followers(flights, count):
    """Return once ``count`` callers wait for the flight that is under way."""
    pause = threading.Event()
    for _ in range(PATIENCE_S * 1000):
        with flights._lock:
            if sum(len(flight.landed._cond._waiters) for flight in flights._flights.values()) >= count:
                return
        pause.wait(0.001)
    raise AssertionError("the others did not come")


def all_at_once(call):
    """Run ``call`` on many threads; return what each returned or raised."""
    start, outcomes = threading.Barrier(COUNT), []

    def run():
        start.wait(PATIENCE_S)
        try:
            outcomes.append(call())
        except Exception as error:  # noqa: BLE001 - what was raised is what is looked at
            outcomes.append(error)

    threads = [threading.Thread(target=run) for _ in range(COUNT)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    return outcomes


def test_fifty_callers_get_one_session_that_one_of_them_made(app, ear):
    entries = all_at_once(lambda: app.get_or_create_session(SOURCE))

    app.hooks.flush()
    assert len(entries) == COUNT
    assert len({entry.session_id for entry in entries}) == 1
    assert [entry.created for entry in entries].count(True) == 1
    assert len(ear.told("after_session_start")) == 1
    assert len(app.store.summaries(operator(), limit=None)) == 1


def test_fifty_callers_who_force_at_once_get_one_new_session(app, ear):
    old = app.get_or_create_session(SOURCE)
    app._store = held = Held(app.store, app.desk._flights)

    entries = all_at_once(lambda: app.get_or_create_session(SOURCE, force_new=True))

    app.hooks.flush()
    assert held.calls == 1
    assert len({entry.session_id for entry in entries} - {old.session_id}) == 1
    assert [entry.created for entry in entries].count(True) == 1
    assert [one["reason"] for one in ear.told("after_session_end")] == ["new_session"]
    assert app.store.session(old.session_id, operator()).end_reason == "new_session"


def test_the_error_of_the_first_is_everybodys_and_the_next_call_works(app):
    fault = OSError("the disk is gone")
    app._store = Held(app.store, app.desk._flights, fault)

    outcomes = all_at_once(lambda: app.get_or_create_session(SOURCE))

    assert Counter(map(id, outcomes)) == {id(fault): COUNT}
    app._store = app._store._store
    assert app.get_or_create_session(SOURCE).created


def test_different_keys_do_not_wait_for_each_other():
    flights = SingleFlight()
    inside = threading.Barrier(2)

    def call():
        inside.wait(PATIENCE_S)
        return "made"

    results = []
    threads = [threading.Thread(target=lambda n=n: results.append(flights.do(n, call))) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)

    assert results == ["made", "made"]


def test_nothing_is_remembered_of_a_flight_that_is_over():
    flights = SingleFlight()
    answers = iter(["one", "two", None])

    assert [flights.do("k", lambda: next(answers)) for _ in range(3)] == ["one", "two", None]
    with pytest.raises(StopIteration):
        flights.do("k", lambda: next(answers))
    assert flights._flights == {}
