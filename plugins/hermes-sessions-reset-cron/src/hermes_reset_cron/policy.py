"""The policy: a conversation ends at the first time of a rule behind its last use."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cronsim import CronSim

from hermes_hookspecs.ports.policies import Keep, Reset

if TYPE_CHECKING:
    from datetime import tzinfo

    from hermes_hookspecs.ports.policies import ResetDecision, ResetView
    from hermes_reset_cron.config import ResetCronConfig
    from hermes_reset_cron.rules import Rule

__all__ = ["CalendarPolicy"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class CalendarPolicy:
    """``[session_reset] mode = "reset-cron"``.

    Without rules it ends nothing. A time that a day does not have, since its clocks jump over it, is the moment right
    behind the jump; of one that a day has twice the first counts.
    """

    name = "reset-cron"

    def __init__(self, config: ResetCronConfig) -> None:
        self._config = config

    def decide(self, view: ResetView) -> ResetDecision:
        """Return reset from the boundary on, keep until then."""
        zone = self._zone(view)
        # Compared as instants: times of one zone would be compared as clocks on the wall.
        ends = [
            (_after(expression, view.last_activity.astimezone(zone)), rule)
            for rule in self._config.rules
            for expression in rule.expressions
        ]
        if not ends:
            return Keep()
        boundary, rule = min(ends, key=_instant)
        if view.now.astimezone(UTC) >= boundary:
            return Reset(reason=rule.text, at=_milliseconds(boundary))
        return Keep(next_check=_milliseconds(boundary))

    def _zone(self, view: ResetView) -> tzinfo:
        if not self._config.timezone:
            return view.now.tzinfo or UTC
        from zoneinfo import ZoneInfo

        return ZoneInfo(self._config.timezone)


def _after(expression: str, used: datetime) -> datetime:
    """Return the first time of an expression behind an instant, in UTC."""
    for found in CronSim(expression, used):
        instant = found.astimezone(UTC)
        if instant > used.astimezone(UTC):  # in an hour that is there twice it may still be the first one
            return instant
    raise ValueError(f"{expression!r} names no time any more")  # not within fifty years


def _instant(end: tuple[datetime, Rule]) -> datetime:
    return end[0]


def _milliseconds(instant: datetime) -> int:
    return (instant - _EPOCH) // timedelta(milliseconds=1)
