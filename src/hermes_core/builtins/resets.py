"""The reset policies that the core ships: ``none``, ``idle``, ``daily`` and ``both``.

Pure functions of what they are shown. Times are compared as instants: two aware times with the same zone would be
compared as wall clocks, an hour off on the days on which clocks change.
"""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Final

from hermes_hookspecs.ports.policies import Keep, Reset

if TYPE_CHECKING:
    from hermes_hookspecs.ports.policies import ResetDecision, ResetPolicy, ResetView

__all__ = ["BUILTIN_POLICIES", "DAILY", "IDLE", "BothPolicy", "DailyPolicy", "IdlePolicy", "NonePolicy"]

IDLE: Final = "idle"
"""Why a conversation ended in which nobody spoke for ``idle_minutes``."""
DAILY: Final = "daily"
"""Why a conversation ended that had not been used since the last ``at_hour``."""


class NonePolicy:
    """Never ends a conversation."""

    name = "none"

    def decide(self, view: ResetView) -> ResetDecision:
        """Return keep, for ever."""
        return Keep()


class IdlePolicy:
    """Ends a conversation once ``idle_minutes`` have passed since it was last used, to the millisecond."""

    name = IDLE

    def decide(self, view: ResetView) -> ResetDecision:
        """Return reset from the boundary on, keep until then."""
        return _crossed(view, _idle_end(view), IDLE)


class DailyPolicy:
    """Ends a conversation at the first ``at_hour`` of its zone behind its last use.

    An hour that a day does not have is the moment at which its clocks jump; of one that it has twice the first counts.
    """

    name = DAILY

    def decide(self, view: ResetView) -> ResetDecision:
        """Return reset from the boundary on, keep until then."""
        return _crossed(view, _day_end(view), DAILY)


class BothPolicy:
    """Ends a conversation at whichever of ``idle`` and ``daily`` comes first, and says which."""

    name = "both"

    def decide(self, view: ResetView) -> ResetDecision:
        """Return reset from the first boundary on, keep until then."""
        idle, day = _idle_end(view), _day_end(view)
        return _crossed(view, idle, IDLE) if idle <= day else _crossed(view, day, DAILY)


BUILTIN_POLICIES: Final[tuple[ResetPolicy, ...]] = (NonePolicy(), IdlePolicy(), DailyPolicy(), BothPolicy())
"""By rising strictness."""


def _crossed(view: ResetView, boundary: datetime, reason: str) -> ResetDecision:
    at = _milliseconds(boundary)
    if view.now.astimezone(UTC) >= boundary:
        return Reset(reason=reason, at=at)
    return Keep(next_check=at)


def _idle_end(view: ResetView) -> datetime:
    return view.last_activity.astimezone(UTC) + timedelta(minutes=view.settings.idle_minutes)


def _day_end(view: ResetView) -> datetime:
    """Return the first boundary behind the last use, in UTC."""
    used, zone = view.last_activity.astimezone(UTC), view.now.tzinfo
    hour = time(view.settings.at_hour)
    # In its zone the last use may stand on another date than the boundary's instant: a zone once left a day out.
    day = view.last_activity.date() - timedelta(days=1)
    while True:
        # fold=0 takes the first of two equal hours, and moves one that is not there to where the clock jumps.
        boundary = datetime.combine(day, hour, tzinfo=zone).astimezone(UTC)
        if boundary > used:
            return boundary
        day += timedelta(days=1)


def _milliseconds(instant: datetime) -> int:
    return (instant - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
