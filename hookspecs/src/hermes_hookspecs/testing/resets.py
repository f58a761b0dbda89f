"""The suite of a reset policy: pure, in the zone it is given, exact to the millisecond, and true to what it said.

Give it the policy, and say what is known of its boundaries::

    class TestMyPolicy(ResetPolicySuite):
        wall_times = ("18:00",)

        @pytest.fixture
        def policy(self):
            return MyPolicy()
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, ClassVar
from zoneinfo import ZoneInfo

import attrs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes_hookspecs.ids import LineageId, SessionId
from hermes_hookspecs.ports.policies import Activity, Defer, Keep, Reset, ResetSettings, ResetView
from hermes_hookspecs.principal import owner_of
from hermes_hookspecs.sessions import Lineage
from hermes_hookspecs.source import SessionSource
from hermes_hookspecs.testing.completeness import CompleteSuite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.ports.policies import ResetPolicy

__all__ = ["CHANGE_DAYS", "ResetPolicySuite"]

CHANGE_DAYS = {
    "Europe/Berlin": ((2026, 3, 29), (2026, 10, 25)),
    "America/New_York": ((2026, 3, 8), (2026, 11, 1)),
    "Australia/Lord_Howe": ((2026, 4, 5), (2026, 10, 4)),  # half an hour
    "Africa/Cairo": ((2026, 4, 24), (2026, 10, 29)),  # at midnight
    "Asia/Shanghai": ((2026, 3, 29),),  # none
}
"""Zone → days on which its clocks change."""

_RESERVED = frozenset({"session_reset", "session_switch", "new_session", "compression"})
_MOST_CHECKS = 100
_MS = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_quick = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None)
"""Search without a deadline or a database; a pure policy keeps no state between examples."""

zones = st.sampled_from(sorted(CHANGE_DAYS))
spans = st.one_of(
    st.timedeltas(timedelta(0), timedelta(hours=30)),
    st.integers(0, 200).map(lambda hours: timedelta(hours=hours)),
)


@st.composite
def instants(draw: st.DrawFn, zone: str) -> datetime:
    """Return an instant (UTC, whole milliseconds) within two days of a change of clocks in ``zone``."""
    day = datetime(*draw(st.sampled_from(CHANGE_DAYS[zone])), tzinfo=UTC)
    return day + timedelta(milliseconds=draw(st.integers(-48 * 3_600_000, 48 * 3_600_000)))


def _at(milliseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=milliseconds)


class ResetPolicySuite(CompleteSuite):
    """What every reset policy keeps to. Subclasses give the fixture ``policy``.

    Attributes:
        reset_settings: what it is shown beside the zone.
        wall_times: ``HH:MM`` of the session's zone at which it ends conversations; ``None`` where it goes by no clock
            on the wall.
        quiet_minutes: minutes of real time without a word after which it does so; ``None`` where it counts none.
        span_days: within how many days it ends a conversation that nobody uses; ``None`` for never.
    """

    reset_settings: ClassVar[ResetSettings] = ResetSettings()
    wall_times: ClassVar[Sequence[str] | None] = None
    quiet_minutes: ClassVar[int | None] = None
    span_days: ClassVar[int | None] = 8

    @pytest.fixture
    def policy(self) -> ResetPolicy:
        """Return the policy under test."""
        raise NotImplementedError("give the suite a policy")

    def view(
        self, zone: str, last_activity: datetime, now: datetime, activities: tuple[Activity, ...] = ()
    ) -> ResetView:
        """Return what a policy is shown of a conversation that was used at ``last_activity``, at ``now``."""
        used = (last_activity - _EPOCH) // _MS
        place = ZoneInfo(zone)
        return ResetView(
            lineage=_lineage(used),
            now=now.astimezone(place),
            last_activity=last_activity.astimezone(place),
            activities=activities,
            settings=attrs.evolve(self.reset_settings, timezone=zone),
        )

    def boundary(self, policy: ResetPolicy, zone: str, last_activity: datetime) -> datetime | None:
        """Return when a conversation that nobody uses any more is ended, by what the policy says of itself."""
        now = last_activity
        for _ in range(_MOST_CHECKS):
            decision = policy.decide(self.view(zone, last_activity, now))
            if not isinstance(decision, Keep) or decision.next_check is None:
                break
            now = max(_at(decision.next_check), now + _MS)
        else:
            return None
        if not isinstance(decision, Reset):
            late = last_activity + timedelta(days=self.span_days or 8)
            decision = policy.decide(self.view(zone, last_activity, late))
        return _at(decision.at) if isinstance(decision, Reset) and decision.at is not None else None

    def test_it_has_a_name_that_a_setting_can_hold(self, policy: ResetPolicy) -> None:
        assert policy.name
        assert policy.name == policy.name.strip().lower()

    def test_the_same_view_gives_the_same_answer_whatever_was_asked_between(self, policy: ResetPolicy) -> None:
        @_quick
        @given(st.data(), zones, spans, spans)
        def run(data: st.DataObject, zone: str, first: timedelta, second: timedelta) -> None:
            used = data.draw(instants(zone))
            views = [self.view(zone, used, used + first), self.view(zone, used + first, used + first + second)]
            once = [policy.decide(view) for view in views]

            assert [policy.decide(view) for view in reversed(views)] == once[::-1]

        run()

    def test_neither_the_machines_zone_nor_its_clock_has_a_say(
        self, policy: ResetPolicy, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if not hasattr(time, "tzset"):
            pytest.skip("this system cannot change the zone of a process")
        answers = []
        for machine in ("UTC", "Pacific/Kiritimati", "America/Los_Angeles"):
            monkeypatch.setenv("TZ", machine)
            time.tzset()
            answers.append([policy.decide(view) for view in self._grid()])
        monkeypatch.undo()
        time.tzset()

        assert answers[0] == answers[1] == answers[2]

    def test_what_was_said_to_end_stays_ended_as_time_goes_on(self, policy: ResetPolicy) -> None:
        for zone, used in _uses():
            boundary = self.boundary(policy, zone, used)
            if boundary is None:
                continue
            first = policy.decide(self.view(zone, used, boundary))
            for hours in (1, 5, 23, 25, 24 * 40):
                after = policy.decide(self.view(zone, used, boundary + timedelta(hours=hours)))
                assert after == first, (zone, used, hours)

    def test_a_word_never_hastens_the_end(self, policy: ResetPolicy) -> None:
        @_quick
        @given(st.data(), zones, spans, spans)
        def run(data: st.DataObject, zone: str, quiet: timedelta, later: timedelta) -> None:
            used = data.draw(instants(zone))
            now = used + quiet + later
            if isinstance(policy.decide(self.view(zone, used, now)), Reset):
                return

            assert not isinstance(policy.decide(self.view(zone, used + quiet, now)), Reset)

        run()

    def test_nothing_ends_in_the_moment_it_is_used(self, policy: ResetPolicy) -> None:
        for zone, used in _uses():
            assert not isinstance(policy.decide(self.view(zone, used, used)), Reset), (zone, used)

    def test_a_boundary_is_exact_to_the_millisecond(self, policy: ResetPolicy) -> None:
        for zone, used in _uses():
            boundary = self.boundary(policy, zone, used)
            if boundary is None:
                continue
            assert boundary > used
            assert isinstance(policy.decide(self.view(zone, used, boundary)), Reset), (zone, used, boundary)
            assert not isinstance(policy.decide(self.view(zone, used, boundary - _MS)), Reset), (zone, used, boundary)

    def test_until_the_next_check_nothing_changes(self, policy: ResetPolicy) -> None:
        for zone, used in _uses():
            decision = policy.decide(self.view(zone, used, used))
            if not isinstance(decision, Keep) or decision.next_check is None:
                continue
            check = _at(decision.next_check)
            assert check > used
            assert not isinstance(policy.decide(self.view(zone, used, check - _MS)), Reset), (zone, used, check)

    def test_boundaries_stand_where_the_clock_on_the_wall_says(self, policy: ResetPolicy) -> None:
        if self.wall_times is None:
            pytest.skip("this policy does not go by the clock on the wall")
        wrong = [
            (zone, str(used), f"{local:%Y-%m-%d %H:%M}")
            for zone, used in _uses()
            for boundary in (self.boundary(policy, zone, used),)
            if boundary is not None
            for local in (boundary.astimezone(ZoneInfo(zone)),)
            if f"{local:%H:%M}" not in self.wall_times and not _clocks_jump_to(local)
        ]

        assert wrong == []

    def test_quiet_time_is_real_time(self, policy: ResetPolicy) -> None:
        if self.quiet_minutes is None:
            pytest.skip("this policy does not count quiet minutes")
        quiet = timedelta(minutes=self.quiet_minutes)
        wrong = [
            (zone, str(used), str(boundary))
            for zone, used in _uses()
            for boundary in (self.boundary(policy, zone, used),)
            if boundary is None or boundary > used + quiet or (self.wall_times is None and boundary != used + quiet)
        ]

        assert wrong == []

    def test_it_ends_what_nobody_uses(self, policy: ResetPolicy) -> None:
        if self.span_days is None:
            for zone, used in _uses():
                assert not isinstance(policy.decide(self.view(zone, used, used + timedelta(days=4000))), Reset)
            return
        for zone, used in _uses():
            late = policy.decide(self.view(zone, used, used + timedelta(days=self.span_days)))
            assert isinstance(late, Reset | Defer), (zone, used)

    def test_a_reason_is_one_line_of_its_own(self, policy: ResetPolicy) -> None:
        for view in self._grid():
            decision = policy.decide(view)
            if isinstance(decision, Reset):
                assert decision.reason
                assert decision.reason == " ".join(decision.reason.split())
                assert len(decision.reason) <= 200
                assert decision.reason not in _RESERVED
                assert decision.at is None or decision.at <= (view.now.astimezone(UTC) - _EPOCH) // _MS

    def _grid(self) -> list[ResetView]:
        hours = (0, 3, 23, 24, 49, 170)
        return [self.view(zone, used, used + timedelta(hours=each)) for zone, used in _uses() for each in hours]


def _uses() -> list[tuple[str, datetime]]:
    """Return ``(zone, last use)``: every 97 minutes from a day before each change of clocks to a day behind it."""
    step = timedelta(minutes=97)
    return [
        (zone, datetime(*day, tzinfo=UTC) - timedelta(days=1) + step * count)
        for zone, days in CHANGE_DAYS.items()
        for day in days
        for count in range(30)
    ]


def _clocks_jump_to(local: datetime) -> bool:
    """Return whether the clocks of a zone jump forward to this very time."""
    before = (local.astimezone(UTC) - _MS).astimezone(local.tzinfo)
    jump = (local.utcoffset() or timedelta(0)) - (before.utcoffset() or timedelta(0))
    return jump > timedelta(0)


def _lineage(used: int) -> Lineage:
    source = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1")
    return Lineage(
        id=LineageId("L20260101_000000_000000000001"),
        tip=SessionId("20260101_000000_00000001"),
        owner=owner_of(source, shared=False),
        source=source,
        shared=False,
        title=None,
        title_origin=None,
        pinned=False,
        archived=False,
        created_at=used,
        last_activity=used,
        message_count=2,
        turn_count=1,
        segments=1,
        preview="hello",
        version=3,
    )
