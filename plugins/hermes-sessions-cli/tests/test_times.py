"""Points in time and sizes, as people read them."""

from __future__ import annotations

import pytest

from hermes_cli.times import ago, counted, local_time, size_text, until, utc_time

NOW = 1_788_000_000_000
MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("before", "text"),
    [
        (-HOUR, "just now"),
        (0, "just now"),
        (59_999, "just now"),
        (MINUTE, "1 min ago"),
        (HOUR - 1, "59 min ago"),
        (HOUR, "1 h ago"),
        (DAY, "1 d ago"),
        (30 * DAY - 1, "29 d ago"),
    ],
)
def test_how_long_ago(before, text):
    assert ago(NOW, NOW - before) == text


def test_what_is_long_past_has_a_date():
    assert ago(NOW, 0).startswith(("1969", "1970"))


def test_utc_time_is_one_field():
    assert utc_time(1_700_000_000_123) == "2023-11-14T22:13:20Z"


def test_a_time_beyond_every_calendar_is_shown_as_its_number():
    assert local_time(10**30) == str(10**30)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (None, "unknown"),
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (5 * 1024**3, "5.0 GiB"),
        (2**50, "1024.0 TiB"),
    ],
)
def test_sizes(size, text):
    assert size_text(size) == text


def test_one_thing_and_several_are_counted_as_people_do():
    assert [counted(number, "message") for number in (0, 1, 2)] == ["0 messages", "1 message", "2 messages"]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-5, "now"),
        (0, "now"),
        (0.2, "in 1 s"),
        (90, "in 90 s"),
        (121, "in 3 min"),
        (3600, "in 60 min"),
        (8000, "in 3 h"),
    ],
)
def test_how_long_it_is_to_a_moment_is_never_too_short(seconds, said):
    assert until(1_000_000, 1_000_000 + int(seconds * 1000)) == said
