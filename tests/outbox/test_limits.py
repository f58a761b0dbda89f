"""When something may be sent next."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_core.outbox.limits import AccountPace, retry_delay_s, sound_hint_s


def test_so_many_parts_a_minute_go_to_one_address_and_others_are_not_held_up(clock):
    pace = AccountPace(clock, 2)
    pace.note("a")
    clock.advance(10)
    pace.note("a")

    assert pace.wait_s("a") == 50
    assert pace.wait_s("b") == 0

    clock.advance(50)

    assert pace.wait_s("a") == 0


def test_no_minute_ever_has_more_parts_than_allowed(clock):
    pace, sent = AccountPace(clock, 3), []

    for _ in range(20):
        clock.advance(pace.wait_s("a"))
        pace.note("a")
        sent.append(clock.monotonic())
        clock.advance(7)

    assert all(later - earlier >= 60 for earlier, later in zip(sent, sent[3:], strict=False))


def test_a_platform_without_a_limit_never_waits(clock):
    pace = AccountPace(clock, None)

    for _ in range(1000):
        pace.note("a")

    assert pace.wait_s("a") == 0


def test_a_pause_holds_up_every_address_and_a_shorter_one_does_not_end_it(clock):
    pace = AccountPace(clock, None)
    pace.pause(30)
    pace.pause(5)

    clock.advance(10)

    assert pace.wait_s("a") == pace.wait_s("b") == 20


def test_hints_for_two_addresses_pause_the_account_for_the_shorter(clock):
    pace = AccountPace(clock, None)

    told = [pace.hint("a", 60, "first"), pace.hint("a", 50, "same address"), pace.hint("b", 40, "second")]

    assert told == [False, False, True]
    assert (pace.wait_s("c"), pace.reason) == (40, "second")


@pytest.mark.parametrize("between_s", [3.0, 61.0])
def test_a_hint_that_is_over_or_long_ago_says_nothing_of_the_account(clock, between_s):
    pace = AccountPace(clock, None)
    pace.hint("a", 2 if between_s < 60 else 3600, "first")
    clock.advance(between_s)

    assert not pace.hint("b", 10, "second")

    assert pace.wait_s("c") == 0


def test_addresses_that_are_quiet_are_forgotten(clock):
    pace = AccountPace(clock, 1)

    for number in range(3000):
        pace.note(str(number))
        clock.advance(1)

    assert len(pace._sent) <= 1001


@given(st.text(max_size=8), st.integers(1, 5000), st.floats(0.01, 10), st.floats(10, 5000))
def test_the_back_off_grows_to_its_limit_and_is_the_same_for_everybody(key, failures, first_s, most_s):
    delay = retry_delay_s(key, failures, first_s=first_s, most_s=most_s)

    assert delay == retry_delay_s(key, failures, first_s=first_s, most_s=most_s)
    assert 0.7 * min(first_s, most_s) <= delay <= most_s
    assert retry_delay_s(key, failures + 4, first_s=first_s, most_s=most_s) >= min(delay, most_s * 0.75)


def test_the_back_off_differs_between_deliveries():
    delays = {retry_delay_s(str(number), 3, first_s=1, most_s=900) for number in range(50)}

    assert len(delays) > 25
    assert all(3 <= delay <= 5 for delay in delays)


@pytest.mark.parametrize("hint_s", [0.5, 7200])
def test_the_hint_of_a_platform_wins(hint_s):
    assert retry_delay_s("k", 5, first_s=1, most_s=900, hint_s=sound_hint_s(hint_s)) == hint_s


@pytest.mark.parametrize("after_s", [None, 0, -1, float("nan")])
def test_a_hint_that_says_nothing_is_none(after_s):
    assert sound_hint_s(after_s) is None


@pytest.mark.parametrize("after_s", [86_401, float("inf")])
def test_a_hint_is_at_most_a_day(after_s):
    assert sound_hint_s(after_s) == 86_400
