"""The suite of reset policies is worth something: each planted fault is caught by the test that is about it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from hermes_hookspecs.ports.policies import Keep, Reset, ResetSettings
from hermes_hookspecs.testing.resets import ResetPolicySuite

SUITE = """
import pytest
import planted

class TestMutant(planted.suite):
    reset_settings = planted.settings
    wall_times = planted.wall_times
    quiet_minutes = planted.quiet_minutes
    span_days = 2

    @pytest.fixture
    def policy(self):
        return planted.mutant()
"""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _ms(instant):
    return (instant.astimezone(UTC) - EPOCH) // timedelta(milliseconds=1)


class Sound:
    """Four in the morning, every day."""

    name = "sound"

    def used(self, view):
        return view.last_activity

    def now(self, view):
        return view.now

    def boundary(self, view):
        used = self.used(view)
        day = used.date() - timedelta(days=1)
        while True:
            found = datetime(day.year, day.month, day.day, 4, tzinfo=view.now.tzinfo).astimezone(UTC)
            if found > used.astimezone(UTC):
                return found
            day += timedelta(days=1)

    def decide(self, view):
        boundary = self.boundary(view)
        if self.now(view).astimezone(UTC) >= boundary:
            return Reset(reason="four", at=_ms(boundary))
        return Keep(next_check=_ms(boundary))


class OneOffsetForBoth(Sound):
    """Takes the offset of the last use for the boundary behind it: an hour off on a day of change."""

    def boundary(self, view):
        used = self.used(view)
        wall = (used + timedelta(0)).replace(tzinfo=None)
        found = wall.replace(hour=4, minute=0, second=0, microsecond=0)
        found += timedelta(days=1) if found <= wall else timedelta(0)
        return (found - used.utcoffset()).replace(tzinfo=UTC)


class HostZone(Sound):
    """Counts the days of the machine."""

    def boundary(self, view):
        local = self.used(view).astimezone(UTC).astimezone()
        found = local.replace(hour=4, minute=0, second=0, microsecond=0)
        return (found + timedelta(days=1) if found <= local else found).astimezone(UTC)


class MovedByBeingRead(Sound):
    """Takes a look at a conversation for a use of it."""

    def __init__(self):
        self.seen = EPOCH

    def used(self, view):
        return max(view.last_activity, self.seen, key=_ms).astimezone(view.now.tzinfo)

    def decide(self, view):
        decision = super().decide(view)
        self.seen = view.now
        return decision


class ClockOfItsOwn(Sound):
    def now(self, view):
        return datetime.now(UTC)


class LateByAMillisecond(Sound):
    def decide(self, view):
        boundary = self.boundary(view)
        if view.now.astimezone(UTC) > boundary:
            return Reset(reason="four", at=_ms(boundary))
        return Keep(next_check=_ms(boundary))


class OnlyInTheHourBehind(Sound):
    """Forgets what it said: what no sweep met in time goes on."""

    def decide(self, view):
        decision = super().decide(view)
        missed = isinstance(decision, Reset) and _ms(view.now) - decision.at > 3_600_000
        return Keep() if missed else decision


class ChecksTooLate(Sound):
    def decide(self, view):
        decision = super().decide(view)
        return Keep(next_check=decision.next_check + 1000) if isinstance(decision, Keep) else decision


class PassesForThePerson(Sound):
    def decide(self, view):
        decision = super().decide(view)
        return Reset(reason="session_reset", at=decision.at) if isinstance(decision, Reset) else decision


class QuietOnTheWall:
    """Takes one wall-clock time from another: on a day of change 90 minutes are 30, or 150."""

    name = "quiet"

    def decide(self, view):
        end = (view.last_activity + timedelta(minutes=90)).astimezone(UTC)
        if view.now.astimezone(UTC) >= end:
            return Reset(reason="quiet", at=_ms(end))
        return Keep(next_check=_ms(end))


WALL = {"settings": ResetSettings(), "wall_times": ("04:00",), "quiet_minutes": None}


@pytest.mark.parametrize(
    ("mutant", "test"),
    [
        (OneOffsetForBoth, "test_boundaries_stand_where_the_clock_on_the_wall_says"),
        (HostZone, "test_neither_the_machines_zone_nor_its_clock_has_a_say"),
        (MovedByBeingRead, "test_the_same_view_gives_the_same_answer_whatever_was_asked_between"),
        (LateByAMillisecond, "test_a_boundary_is_exact_to_the_millisecond"),
        (OnlyInTheHourBehind, "test_what_was_said_to_end_stays_ended_as_time_goes_on"),
        (ChecksTooLate, "test_until_the_next_check_nothing_changes"),
        (PassesForThePerson, "test_a_reason_is_one_line_of_its_own"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_planted_fault_is_caught(run_suite, mutant, test):
    fates = run_suite(SUITE, only=test, suite=ResetPolicySuite, mutant=mutant, **WALL)

    assert fates.failed == [test]


def test_a_clock_of_its_own_is_caught_whatever_the_year(run_suite):
    fates = run_suite(SUITE, suite=ResetPolicySuite, mutant=ClockOfItsOwn, **WALL)

    assert len(fates.failed) == 1


def test_wall_clock_minutes_are_no_minutes(run_suite):
    things = {"settings": ResetSettings(idle_minutes=90), "wall_times": None, "quiet_minutes": 90}

    fates = run_suite(
        SUITE, only="test_quiet_time_is_real_time", suite=ResetPolicySuite, mutant=QuietOnTheWall, **things
    )

    assert fates.failed == ["test_quiet_time_is_real_time"]


def test_a_sound_policy_passes(run_suite):
    fates = run_suite(SUITE, suite=ResetPolicySuite, mutant=Sound, **WALL)

    assert fates.failed == []
    assert len(fates.passed) >= 11
