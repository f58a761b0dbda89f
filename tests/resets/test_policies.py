"""The policies that are built in: the suite of the kit, and their boundaries to the millisecond."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import attrs
import pytest

from hermes_core.builtins.resets import BUILTIN_POLICIES, BothPolicy, DailyPolicy, IdlePolicy, NonePolicy
from hermes_hookspecs.ports.policies import Keep, Reset, ResetSettings
from hermes_hookspecs.testing.resets import ResetPolicySuite


class TestNone(ResetPolicySuite):
    span_days = None

    @pytest.fixture
    def policy(self):
        return NonePolicy()


class TestIdle(ResetPolicySuite):
    reset_settings = ResetSettings(idle_minutes=90)
    quiet_minutes = 90

    @pytest.fixture
    def policy(self):
        return IdlePolicy()


class TestDaily(ResetPolicySuite):
    wall_times = ("04:00",)
    span_days = 2

    @pytest.fixture
    def policy(self):
        return DailyPolicy()


class TestDailyInTheHourOfTheChange(ResetPolicySuite):
    """Two o'clock is not there in spring in Berlin and New York, and is there twice in autumn."""

    reset_settings = ResetSettings(at_hour=2)
    wall_times = ("02:00",)
    span_days = 2

    @pytest.fixture
    def policy(self):
        return DailyPolicy()


class TestDailyAtMidnight(ResetPolicySuite):
    reset_settings = ResetSettings(at_hour=0)
    wall_times = ("00:00",)
    span_days = 2

    @pytest.fixture
    def policy(self):
        return DailyPolicy()


class TestBoth(ResetPolicySuite):
    reset_settings = ResetSettings(idle_minutes=600)
    wall_times = None
    span_days = 1

    @pytest.fixture
    def policy(self):
        return BothPolicy()


def _at(zone, text):
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


def _decide(policy, zone, used, now, **settings):
    view = ResetPolicySuite().view(zone, used, now)
    return policy.decide(attrs.evolve(view, settings=attrs.evolve(view.settings, **settings)))


@pytest.mark.parametrize(
    ("used", "now", "is_reset"),
    [
        ("2026-03-09T05:00", "2026-03-10T03:00", False),
        ("2026-03-09T03:30", "2026-03-10T03:00", True),
        ("2026-03-10T03:50", "2026-03-10T04:10", True),
        ("2026-03-10T04:00", "2026-03-10T04:10", False),
        ("2026-03-10T04:00", "2026-03-11T03:59:59.999", False),
        ("2026-03-10T04:00", "2026-03-11T04:00", True),
    ],
)
def test_the_day_ends_at_the_hour_of_the_configured_zone(used, now, is_reset):
    """Case E10, and the worked example of the original."""
    decision = _decide(DailyPolicy(), "Asia/Shanghai", _at("Asia/Shanghai", used), _at("Asia/Shanghai", now))

    assert isinstance(decision, Reset) is is_reset


@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"])
def test_on_both_change_days_the_hour_is_the_one_on_the_wall(day):
    used = _at("Europe/Berlin", f"{day}T01:30")

    assert isinstance(_decide(DailyPolicy(), "Europe/Berlin", used, _at("Europe/Berlin", f"{day}T03:30")), Keep)
    assert isinstance(_decide(DailyPolicy(), "Europe/Berlin", used, _at("Europe/Berlin", f"{day}T04:30")), Reset)


def test_an_hour_that_is_there_twice_counts_once():
    first = _at("Europe/Berlin", "2026-10-25T02:00")
    decision = _decide(DailyPolicy(), "Europe/Berlin", first - timedelta(hours=1), first, at_hour=2)

    assert decision == Reset(reason="daily", at=int(first.timestamp() * 1000))
    again = _decide(DailyPolicy(), "Europe/Berlin", first, first + timedelta(hours=2), at_hour=2)
    assert isinstance(again, Keep)


def test_both_says_which_came_first():
    used = _at("Asia/Shanghai", "2026-03-10T01:00")
    late = used + timedelta(days=1)

    assert _decide(BothPolicy(), "Asia/Shanghai", used, late, idle_minutes=60).reason == "idle"
    assert _decide(BothPolicy(), "Asia/Shanghai", used, late, idle_minutes=600).reason == "daily"


def test_a_day_that_a_zone_left_out_still_ends():
    """Samoa had no 30 December 2011."""
    used = datetime(2011, 12, 30, 8, tzinfo=UTC)
    boundary = datetime(2011, 12, 30, 14, tzinfo=UTC)

    decision = _decide(DailyPolicy(), "Pacific/Apia", used, used + timedelta(days=1))

    assert decision.at == int(boundary.timestamp() * 1000)


def test_names_are_those_of_the_setting():
    assert [policy.name for policy in BUILTIN_POLICIES] == ["none", "idle", "daily", "both"]
