"""Rules as people write them: days, then times; or a cron expression.

==========================================  ========================================
``weekdays at 18:00``                       Monday to Friday
``Monday 04:00``, ``mon,thu 4:00``          those days
``Monday-Thursday at 22:30``                from one day to the other
``weekend at 8:00``, ``daily at 04:00``     Saturday and Sunday; every day
``weekdays 09:00-18:00``                    both ends of the working hours
``weekdays at 12:00 and 18:00``             both times
``1. of the month at 4:00``                 a day of the month; ``last`` for its last one
``0 18 * * 1-5``                            cron: minute, hour, day, month, day of the week
==========================================  ========================================
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final

import attrs
from cronsim import CronSim, CronSimError

__all__ = ["Rule", "RuleError", "read_rule"]

_DAYS: Final = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_SETS: Final = {
    "daily": "*",
    "every day": "*",
    "weekday": "1-5",
    "weekdays": "1-5",
    "weekend": "0,6",
    "weekends": "0,6",
}
_TIMES: Final = r"\d{1,2}:\d{2}(?:(?:\s*-\s*|\s*,\s*|\s+and\s+)\d{1,2}:\d{2})*"
_RULE: Final = re.compile(rf"(?P<days>.*?[^\d:])\s*(?:\bat\s+)?(?P<times>{_TIMES})")
_TIME: Final = re.compile(r"(\d{1,2}):(\d{2})")
_MONTH: Final = re.compile(r"(?P<day>\d{1,2}|last)(?:\.|st|nd|rd|th)?(?: day)? of (?:the|every|each) month")


class RuleError(ValueError):
    """A rule that cannot be read; the text says what is wrong with it."""


@attrs.frozen(kw_only=True)
class Rule:
    """One rule: its text on one line, and the cron expressions (one for each time) that it means."""

    text: str
    expressions: tuple[str, ...]


def read_rule(text: str) -> Rule:
    """Return the rule that a text means.

    :raises RuleError: it is neither days and times nor a cron expression, or names no moment of any year.
    """
    line = " ".join(text.split())
    words = line.lower()
    expressions = (words,) if len(words.split()) == 5 and re.match(r"[\d*]", words) and ":" not in words else None
    found = tuple(_expressions(words)) if expressions is None else expressions
    for expression in found:
        _check(expression)
    return Rule(text=line, expressions=found)


def _expressions(words: str) -> list[str]:
    match = _RULE.fullmatch(words)
    if match is None:
        raise RuleError('write days and times, as in "weekdays at 18:00", or five fields of cron')
    day_of_month, day_of_week = _days(match["days"].removesuffix("at ").strip(" ,"))
    return [f"{minute} {hour} {day_of_month} * {day_of_week}" for hour, minute in _times(match["times"])]


def _times(text: str) -> list[tuple[int, int]]:
    times = [(int(hour), int(minute)) for hour, minute in _TIME.findall(text)]
    for hour, minute in times:
        if hour > 23 or minute > 59:
            raise RuleError(f"{hour}:{minute:02} is no time of the day; there are 0:00 to 23:59")
    return times


def _days(text: str) -> tuple[str, str]:
    """Return the fields *day of the month* and *day of the week*."""
    if text in _SETS:
        return "*", _SETS[text]
    month = _MONTH.fullmatch(text.removeprefix("the "))
    if month is not None:
        return ("l" if month["day"] == "last" else month["day"]), "*"
    days: set[int] = set()
    for part in re.split(r"\s*,\s*|\s+and\s+", text):
        first, _, last = part.partition("-")
        start, end = _day(first), _day(last or first)
        days.update((start + step) % 7 for step in range((end - start) % 7 + 1))
    return "*", ",".join(map(str, sorted(days)))


def _day(word: str) -> int:
    word = word.strip().removesuffix("s") or word
    for number, name in enumerate(_DAYS):
        if word == name or (len(word) >= 3 and name.startswith(word)):
            return number
    raise RuleError(f"{word!r} is no day; there are monday to sunday, weekdays, weekend and daily")


def _check(expression: str) -> None:
    try:
        next(CronSim(expression, datetime(2026, 1, 1, tzinfo=UTC)))
    except (CronSimError, StopIteration) as error:
        raise RuleError(f"{expression!r} names no time: {str(error) or 'no year has such a day'}") from None
