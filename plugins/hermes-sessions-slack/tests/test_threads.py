"""What is remembered of threads, by several processes at once."""

from __future__ import annotations

import attrs
import pytest

from hermes_hookspecs.source import SessionSource
from hermes_hookspecs.testing.adapters import MemoryState
from hermes_hookspecs.testing.clock import FakeClock
from hermes_slack.config import SlackConfig
from hermes_slack.threads import ThreadBook

ONE = SessionSource(platform="slack", scope_id="T1", chat_id="C1", chat_type="group", thread_id="1.1", message_id="1.2")
TWO = attrs.evolve(ONE, chat_id="C2", message_id="1.5")


@pytest.fixture
def state():
    return MemoryState("slack", FakeClock())


@pytest.fixture
def books(state):
    return [ThreadBook("default", state, FakeClock(), SlackConfig()) for _ in range(2)]


def test_b19_a_thread_that_another_process_wrote_in_is_ours_without_a_restart(state, books):
    mine, theirs = books
    assert not mine.is_ours(ONE)

    state.take(theirs.wrote(ONE))

    assert mine.is_ours(ONE)


def test_b19_neither_process_takes_the_others_rows_away(state, books):
    mine, theirs = books
    for book, source in ((mine, ONE), (theirs, TWO), (mine, ONE)):
        state.take((*book.wrote(source), *book.saw(source)))

    again = ThreadBook("default", state, FakeClock(), SlackConfig())

    assert [(again.is_ours(each), again.seen(each)) for each in (ONE, TWO)] == [(True, "1.2"), (True, "1.5")]


def test_what_a_session_saw_is_what_either_process_showed_it_last(state, books):
    mine, theirs = books
    state.take(mine.saw(ONE))
    state.take(theirs.saw(attrs.evolve(ONE, message_id="1.9")))

    assert mine.seen(ONE) == "1.9"
    assert mine.saw(attrs.evolve(ONE, message_id="1.5")) == ()
