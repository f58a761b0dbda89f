"""Which texts are rules, and what they mean."""

from __future__ import annotations

import pytest

from hermes_hookspecs.errors import ConfigError
from hermes_reset_cron.config import ResetCronConfig
from hermes_reset_cron.rules import RuleError, read_rule


@pytest.mark.parametrize(
    ("text", "expressions"),
    [
        ("weekdays at 18:00", ["0 18 * * 1-5"]),
        ("Weekdays  18:00", ["0 18 * * 1-5"]),
        ("Monday 04:00", ["0 4 * * 1"]),
        ("mondays at 4:00", ["0 4 * * 1"]),
        ("mon,thu 4:05", ["5 4 * * 1,4"]),
        ("Mon and Sun at 4:00", ["0 4 * * 0,1"]),
        ("Monday-Thursday at 22:30", ["30 22 * * 1,2,3,4"]),
        ("fri-mon 8:00", ["0 8 * * 0,1,5,6"]),
        ("weekend at 8:00", ["0 8 * * 0,6"]),
        ("daily at 04:00", ["0 4 * * *"]),
        ("every day at 04:00", ["0 4 * * *"]),
        ("weekdays 09:00-18:00", ["0 9 * * 1-5", "0 18 * * 1-5"]),
        ("weekdays at 12:00 and 18:00", ["0 12 * * 1-5", "0 18 * * 1-5"]),
        ("daily at 6:00, 14:00, 22:00", ["0 6 * * *", "0 14 * * *", "0 22 * * *"]),
        ("1. of the month at 4:00", ["0 4 1 * *"]),
        ("the 15th of every month at 4:00", ["0 4 15 * *"]),
        ("last day of the month at 23:59", ["59 23 l * *"]),
        ("0 18 * * 1-5", ["0 18 * * 1-5"]),
        ("*/30 9-17 * * MON-FRI", ["*/30 9-17 * * mon-fri"]),
    ],
)
def test_a_rule_means(text, expressions):
    assert list(read_rule(text).expressions) == expressions


@pytest.mark.parametrize(
    "text",
    [
        "",
        "18:00",
        "sometimes at 18:00",
        "weekdays at 24:00",
        "weekdays at 18",
        "0 18 * *",
        "0 18 30 2 *",
        "99 18 * * 1",
        "weekdays at 18:00 or so",
        "monday-someday 4:00",
        "32. of the month at 4:00",
        "0 0 0 18 * * 1",
        "m 4:00",
    ],
)
def test_what_is_no_rule_is_refused(text):
    with pytest.raises(RuleError):
        read_rule(text)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"rule": []}, "rule is unknown; there are rules, timezone"),
        ({"rules": "weekdays at 18:00"}, "is no list"),
        ({"rules": [1]}, "which is no text"),
        ({"rules": ["weekdays at 25:00"]}, "'weekdays at 25:00': 25:00 is no time of the day"),
        ({"rules": ["fryday 18:00"]}, "'fryday' is no day"),
        ({"rules": ["daily at 4:00"] * 51}, "at most 50"),
        ({"timezone": "Mars/Olympus"}, "is no time zone known to this host"),
        ({"timezone": 1}, "is no text"),
    ],
)
def test_a_wrong_setting_is_named(table, said):
    with pytest.raises(ConfigError, match=said):
        ResetCronConfig.of(table)
