"""The verdict on a conversation in the words of ``hermes reset explain``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.config.rules import shown
from hermes_core.resets.effective import effective
from hermes_hookspecs.errors import SessionNotFound
from hermes_hookspecs.ports.policies import Defer, Keep
from hermes_hookspecs.ports.resets import ResetExplanation, ResetValue

if TYPE_CHECKING:
    from hermes_core.config.sections import Settings
    from hermes_core.resets.effective import EffectiveReset
    from hermes_core.resets.verdicts import Verdict
    from hermes_hookspecs.ids import SessionKey
    from hermes_hookspecs.ports.policies import Activity
    from hermes_hookspecs.ports.store import StoreReader

__all__ = ["explanation"]


def explanation(reader: StoreReader, settings: Settings, key: SessionKey, verdict: Verdict | None) -> ResetExplanation:
    """Return what people are told of a key. :raises SessionNotFound: no route has it.

    :param verdict: on what the key leads to, ``None`` where it leads nowhere.
    """
    if verdict is not None:
        return _of_verdict(key, verdict)
    route = reader.route(key)
    if route is None:
        raise SessionNotFound(key)
    chosen = effective(settings, route.source, shared=False)
    return ResetExplanation(
        session_key=key,
        lineage_id=None,
        session_id=None,
        title=None,
        values=_values(chosen),
        known=True,
        last_activity=None,
        verdict="nothing",
        reason="the key leads to no conversation; the next message begins one",
        next_at=None,
        pins=(),
        stale=(),
        zone=chosen.settings.timezone,
    )


def _of_verdict(key: SessionKey, verdict: Verdict) -> ResetExplanation:
    decision, lineage = verdict.decision, verdict.facts.lineage
    if isinstance(decision, Keep):
        word, next_at = "keep", decision.next_check
        reason = "" if verdict.known else f"no policy {verdict.policy!r} is installed, so nothing is reset"
    elif isinstance(decision, Defer):
        word, next_at, reason = "defer", decision.until, decision.reason
    else:
        word, next_at, reason = "reset", verdict.now, decision.reason
    return ResetExplanation(
        session_key=key,
        lineage_id=lineage.id,
        session_id=lineage.tip,
        title=lineage.title,
        values=_values(verdict.effective),
        known=verdict.known,
        last_activity=verdict.facts.last_activity,
        verdict=word,
        reason=reason,
        next_at=next_at,
        pins=tuple(map(_words, verdict.pins)),
        stale=tuple(map(_words, verdict.stale)),
        zone=verdict.effective.settings.timezone,
    )


def _words(activity: Activity) -> str:
    return f"{activity.kind} {activity.label}"


def _values(chosen: EffectiveReset) -> tuple[ResetValue, ...]:
    return tuple(
        ResetValue(key=key, value=shown(getattr(chosen.settings, key, chosen.notify)), origin=origin)
        for key, origin in chosen.origins.items()
    )
