"""The thread of the event hooks: in order, off everybody's way, and never stuck behind one listener."""

from __future__ import annotations

import threading

import pytest

from hermes_core import events
from hermes_core.events import EventThread
from hermes_hookspecs.testing.clock import FakeClock

PATIENCE_S = 20


@pytest.fixture
def release():
    event = threading.Event()
    yield event
    event.set()


def stuck(release):
    """Return a call that says that it began and does not return until it may."""
    began = threading.Event()

    def call():
        began.set()
        release.wait(PATIENCE_S)

    return began, call


def test_calls_run_in_order_on_one_thread_that_is_not_the_callers():
    thread, heard = EventThread(10), []
    for number in range(20):
        thread.post("event", lambda number=number: heard.append((number, threading.current_thread())))

    assert thread.flush()
    assert [number for number, _ in heard] == list(range(20))
    assert {where.name for _, where in heard} == {"hermes-events"}
    thread.close()


def test_a_failing_call_is_logged_and_the_next_one_runs(caplog):
    thread, heard = EventThread(10), []
    thread.post("broken", lambda: 1 / 0)
    thread.post("sound", lambda: heard.append(1))

    assert thread.flush()
    assert heard == [1]
    assert "event hook broken failed" in caplog.text
    thread.close()


def test_a_stuck_call_is_left_behind_by_whoever_waits(release, caplog):
    thread, heard = EventThread(0.05), []
    began, call = stuck(release)
    thread.post("stuck", call)
    assert began.wait(PATIENCE_S)
    thread.post("next", lambda: heard.append(1))

    assert not thread.flush()
    assert heard == [1]
    assert "stuck did not return within 0.05 s and was left behind" in caplog.text
    thread.close()


def test_a_stuck_call_is_left_behind_by_the_next_event_and_nobody_needs_to_wait(release):
    clock = FakeClock()
    thread, heard = EventThread(10, clock.monotonic), threading.Event()
    began, call = stuck(release)
    thread.post("stuck", call)
    assert began.wait(PATIENCE_S)
    clock.advance(9)
    thread.post("waits", lambda: None)
    clock.advance(1)

    thread.post("goes on", heard.set)

    assert heard.wait(PATIENCE_S)
    release.set()
    assert thread.flush()
    thread.close()


def test_slow_calls_that_return_in_time_are_all_heard():
    clock = FakeClock()
    thread, heard = EventThread(10, clock.monotonic), []
    for number in range(5):
        thread.post("slow", lambda number=number: (clock.advance(9), heard.append(number)))

    assert thread.flush()
    assert heard == list(range(5))
    thread.close()


def test_a_listener_that_flushes_does_not_wait_for_itself():
    thread, heard = EventThread(PATIENCE_S), []
    thread.post("asks", lambda: heard.append(thread.flush()))

    assert thread.flush()
    assert heard == [False]
    thread.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_a_listener_ended_is_replaced():
    thread, heard = EventThread(0.05), []

    def ends():
        raise SystemExit

    thread.post("ends", ends)
    thread.post("next", lambda: heard.append(1))

    assert not thread.flush()
    assert heard == [1]
    thread.close()


def test_too_many_waiting_events_are_dropped_and_counted(release, monkeypatch):
    monkeypatch.setattr(events, "MOST_WAITING", 3)
    thread = EventThread(10)
    began, call = stuck(release)
    thread.post("stuck", call)
    assert began.wait(PATIENCE_S)

    for _ in range(5):
        thread.post("more", lambda: None)

    assert thread.dropped == 2
    release.set()
    thread.close()


def test_closing_lets_the_rest_be_heard_and_takes_no_more():
    thread, heard = EventThread(10), []
    for number in range(3):
        thread.post("event", lambda number=number: heard.append(number))

    thread.close()
    thread.post("late", lambda: heard.append("late"))

    assert heard == [0, 1, 2]
    assert thread.dropped == 1
