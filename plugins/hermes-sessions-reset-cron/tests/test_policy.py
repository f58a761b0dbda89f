"""The policy keeps what every reset policy promises, in its own zone or the conversation's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from hermes_hookspecs.ports.policies import Keep, Reset
from hermes_hookspecs.testing.resets import ResetPolicySuite
from hermes_reset_cron.config import ResetCronConfig
from hermes_reset_cron.policy import CalendarPolicy


def policy_of(*rules, timezone=""):
    return CalendarPolicy(ResetCronConfig.of({"rules": rules, "timezone": timezone}))


class TestWeekdayEvenings(ResetPolicySuite):
    wall_times = ("18:00",)
    span_days = 4

    @pytest.fixture
    def policy(self):
        return policy_of("weekdays at 18:00")


class TestTheHourOfTheChange(ResetPolicySuite):
    wall_times = ("02:30", "00:15")
    span_days = 2

    @pytest.fixture
    def policy(self):
        return policy_of("daily at 2:30", "every day at 00:15")


class TestWithoutRules(ResetPolicySuite):
    span_days = None

    @pytest.fixture
    def policy(self):
        return policy_of()


def decide(policy, zone, used, now):
    place = ZoneInfo(zone)
    at = [datetime.fromisoformat(text).replace(tzinfo=place).astimezone(UTC) for text in (used, now)]
    return policy.decide(ResetPolicySuite().view(zone, *at))


@pytest.mark.parametrize(
    ("used", "now", "ends"),
    [
        ("2026-03-13T17:59:59.999", "2026-03-13T18:00", True),  # a Friday
        ("2026-03-13T18:00", "2026-03-16T17:59:59.999", False),
        ("2026-03-13T18:00", "2026-03-16T18:00", True),
        ("2026-03-14T10:00", "2026-03-15T22:00", False),
    ],
)
def test_a_weekend_is_not_interrupted(used, now, ends):
    decision = decide(policy_of("weekdays at 18:00"), "Asia/Shanghai", used, now)

    assert isinstance(decision, Reset) is ends


def test_the_first_of_several_rules_ends_and_gives_its_words_as_the_reason():
    policy = policy_of("weekdays  at 18:00", "Monday 04:00")

    assert decide(policy, "Europe/Berlin", "2026-03-14T10:00", "2026-03-16T05:00").reason == "Monday 04:00"
    assert decide(policy, "Europe/Berlin", "2026-03-16T10:00", "2026-03-17T05:00").reason == "weekdays at 18:00"


def test_a_zone_of_its_own_stands_above_that_of_the_conversation():
    policy = policy_of("daily at 04:00", timezone="Asia/Shanghai")

    assert isinstance(decide(policy, "Europe/Berlin", "2026-03-10T20:59", "2026-03-10T21:00"), Reset)
    assert isinstance(decide(policy, "Europe/Berlin", "2026-03-10T21:00", "2026-03-11T20:59"), Keep)


def test_in_an_hour_that_is_there_twice_a_time_counts_once():
    policy, first = policy_of("daily at 02:30"), datetime(2026, 10, 25, 0, 30, tzinfo=UTC)
    view = ResetPolicySuite().view("Europe/Berlin", first - timedelta(minutes=1), first)
    between = ResetPolicySuite().view("Europe/Berlin", first + timedelta(minutes=50), first + timedelta(hours=3))

    assert isinstance(policy.decide(view), Reset)
    assert isinstance(policy.decide(between), Keep)


def test_a_time_that_is_jumped_over_is_the_moment_behind_the_jump():
    policy, jump = policy_of("daily at 02:30"), datetime(2026, 3, 29, 1, tzinfo=UTC)

    decision = policy.decide(ResetPolicySuite().view("Europe/Berlin", jump - timedelta(hours=1), jump))

    assert decision == Reset(reason="daily at 02:30", at=int(jump.timestamp() * 1000))
