"""The machine's own zone keeps its changes of clocks, as a named one does."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from hermes_core.resets.zones import HostZone, at, zone_of


@pytest.fixture(params=["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Shanghai"])
def machine(request, monkeypatch):
    """A machine that is set to a zone."""
    if not hasattr(time, "tzset"):
        pytest.skip("this system cannot change the zone of a process")
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield ZoneInfo(request.param)
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("month", [3, 4, 10, 11])
def test_the_machines_zone_agrees_with_the_named_one(machine, month):
    host = zone_of("")
    start = datetime(2026, month, 1, tzinfo=UTC)

    for step in range(31 * 48):
        instant = start + timedelta(minutes=30 * step)
        here, there = instant.astimezone(host), instant.astimezone(machine)
        assert (here.replace(tzinfo=None), here.fold, here.utcoffset()) == (
            there.replace(tzinfo=None),
            there.fold,
            there.utcoffset(),
        )
        assert here.astimezone(UTC) == instant
        wall = there.replace(tzinfo=None)
        assert wall.replace(tzinfo=host).astimezone(UTC) == wall.replace(tzinfo=machine).astimezone(UTC)


def test_a_wall_clock_time_that_is_jumped_over_is_read_alike(machine):
    for hour in range(24):
        for day in (datetime(2026, 3, 29), datetime(2026, 3, 8), datetime(2026, 10, 4)):  # noqa: DTZ001 - a wall clock
            wall = day.replace(hour=hour, minute=15)
            assert wall.replace(tzinfo=HostZone()).astimezone(UTC) == wall.replace(tzinfo=machine).astimezone(UTC)


def test_milliseconds_are_exact():
    assert at(1_700_000_000_123, UTC) == datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=UTC)
    assert zone_of("Asia/Shanghai") == ZoneInfo("Asia/Shanghai")
