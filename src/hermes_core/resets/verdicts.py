"""What a policy says of one conversation now, and what stands in its way."""

from __future__ import annotations

from logging import getLogger
from typing import TYPE_CHECKING

import attrs

from hermes_core.resets.answers import checked
from hermes_core.resets.effective import EffectiveReset, effective
from hermes_core.resets.zones import at, zone_of
from hermes_hookspecs.errors import PluginError
from hermes_hookspecs.ports.policies import Activity, Defer, Keep, Reset, ResetDecision, ResetView
from hermes_hookspecs.principal import operator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_core.config.sections import Settings
    from hermes_hookspecs.ids import LineageId, SessionKey
    from hermes_hookspecs.ports.policies import ResetPolicy
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.sessions import Lineage, Route

__all__ = ["Facts", "Verdict", "facts_of", "judge", "undecided", "unknown_activity", "young"]

_log = getLogger(__name__)

_HOUR_MS = 3_600_000


@attrs.frozen(kw_only=True)
class Facts:
    """One conversation behind one route, as the store has it.

    Attributes:
        last_activity: last word, or the moment in which somebody led this route to the conversation.
        holder: who runs a turn in it. waiting: whether messages wait.
    """

    route: Route
    lineage: Lineage
    last_activity: int
    holder: str
    waiting: bool


@attrs.frozen(kw_only=True)
class Verdict:
    """What becomes of a conversation at ``now`` (UTC milliseconds).

    Attributes:
        policy: name; known: whether it is installed. decision: what counts, pins and work in progress included.
        pins: activities that hold it; stale: those that are too old to do so.
    """

    facts: Facts
    effective: EffectiveReset
    policy: str
    known: bool
    decision: ResetDecision
    pins: tuple[Activity, ...]
    stale: tuple[Activity, ...]
    now: int


def facts_of(reader: StoreReader, key: SessionKey) -> Facts | None:
    """Return what there is behind a key, ``None`` where it leads nowhere. Reads alone: no clock moves."""
    route = reader.route(key)
    if route is None or route.lineage_id is None:
        return None
    lineage, lease = reader.lineage(route.lineage_id, operator()), reader.lease(route.lineage_id)
    if lineage is None or lease is None:
        return None
    waiting = reader.waiting(lineage.id, limit=1) or reader.waiting_of_key(key, limit=1)
    return Facts(
        route=route,
        lineage=lineage,
        last_activity=max(lineage.last_activity, route.updated_at),
        holder="" if lease.holder is None else lease.holder.describe(),
        waiting=bool(waiting),
    )


def judge(
    facts: Facts,
    settings: Settings,
    policies: Mapping[str, ResetPolicy],
    activities: tuple[Activity, ...],
    now: int,
) -> Verdict:
    """Return the verdict on a conversation. Pure: the same arguments give the same verdict.

    A policy that is not installed, or that fails, resets nothing.
    """
    chosen = effective(settings, facts.route.source, shared=facts.lineage.shared)
    pins, stale = young(activities, now, chosen.settings.bg_process_max_age_hours)
    policy = policies.get(chosen.settings.mode)
    said = Keep() if policy is None else _asked(policy, facts, chosen, pins, now)
    return Verdict(
        facts=facts,
        effective=chosen,
        policy=chosen.settings.mode,
        known=policy is not None,
        decision=_held(said, facts, pins) if isinstance(said, Reset) else said,
        pins=pins,
        stale=stale,
        now=now,
    )


def undecided(verdict: Verdict, error: PluginError) -> Verdict:
    """Return what becomes of a conversation where no policy could be asked: nothing."""
    _log.warning("the reset policies cannot be had, nothing is reset: %s", error)
    return attrs.evolve(verdict, decision=Defer(reason=str(error)))


def young(
    activities: tuple[Activity, ...], now: int, most_hours: float
) -> tuple[tuple[Activity, ...], tuple[Activity, ...]]:
    """Return the activities that pin a conversation, and those that have run too long to do so."""
    oldest = now - most_hours * _HOUR_MS
    pins = tuple(one for one in activities if one.started_at > oldest)
    return pins, tuple(one for one in activities if one.started_at <= oldest)


def _held(said: Reset, facts: Facts, pins: tuple[Activity, ...]) -> Reset | Defer:
    """Return the reset, or what holds it: nothing is ended under somebody who works or waits."""
    if facts.holder:
        return Defer(reason=f"a turn runs in {facts.holder}")
    if facts.waiting:
        return Defer(reason="a message waits to be answered")
    if pins:
        return Defer(reason="; ".join(f"{one.kind} {one.label}" for one in pins))
    return said


def _asked(
    policy: ResetPolicy, facts: Facts, chosen: EffectiveReset, pins: tuple[Activity, ...], now: int
) -> ResetDecision:
    try:
        zone = zone_of(chosen.settings.timezone)
        view = ResetView(
            lineage=facts.lineage,
            now=at(now, zone),
            last_activity=at(facts.last_activity, zone),
            activities=pins,
            settings=chosen.settings,
        )
        said: object = policy.decide(view)
    except Exception as error:  # noqa: BLE001 - a policy is a plugin's code; where it fails nothing is reset
        _log.warning("the reset policy %s failed, nothing is reset: %s", policy.name, error)
        return Defer(reason=f"the policy {policy.name} failed: {type(error).__name__}")
    try:
        return checked(said, policy.name)
    except (TypeError, ValueError) as error:
        _log.warning("the reset policy %s gave no decision, nothing is reset: %s", policy.name, error)
        return Defer(reason=f"the policy {policy.name} gave no decision: {error}")


def unknown_activity(lineage_id: LineageId, error: PluginError, now: int) -> Activity:
    """Return what stands for activities that a plugin could not tell of: it pins, for nobody knows better."""
    _log.warning("whether anything runs for %s is not known, so it is not reset: %s", lineage_id, error)
    return Activity(kind="unknown", label=str(error), started_at=now)
