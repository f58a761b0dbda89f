"""What people are told of a conversation that ended by itself: why, in the place where it was, with their next message.

A sweep ends conversations at four in the morning; nobody wants to be woken by that, and some platforms let us write
only to who has just written. So a notice is owed, in the store, until somebody speaks there again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_core.resets.zones import at, zone_of
from hermes_hookspecs.ports.policies import Reset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_core.resets.verdicts import Verdict
    from hermes_hookspecs.ids import LineageId, SessionKey
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.state import StateUpdate

__all__ = ["NAMESPACE", "Owed", "forgetting", "owed", "owing"]

NAMESPACE = "builtin.resets"
"""Of the notices that are owed, by session key."""

_KEPT_MS = 30 * 86_400_000
_HOUR_MIN = 60
_DAY_MIN = 1440


@attrs.frozen(kw_only=True)
class Owed:
    """A notice that is owed to whoever speaks next under a key.

    Attributes:
        lineage_id: what ended. at: UTC milliseconds at which it was ended; with the lineage it names the notice.
    """

    lineage_id: LineageId
    at: int
    text: str


def owing(verdict: Verdict, reason: str) -> Sequence[StateUpdate]:
    """Return the writes that owe a notice of a reset; none where nobody is to be told, or nothing had been said."""
    from json import dumps

    from hermes_hookspecs.state import StateUpdate

    lineage, key = verdict.facts.lineage, verdict.facts.route.key
    if not verdict.effective.notify or lineage.message_count == 0:
        return (forgetting(key),)
    value = {"lineage": lineage.id, "at": verdict.now, "text": _text(verdict, reason)}
    update = StateUpdate(
        namespace=NAMESPACE,
        key=key,
        value=dumps(value, ensure_ascii=False),
        lineage_id=lineage.id,
        expires_at=verdict.now + _KEPT_MS,
    )
    return (update,)


def forgetting(key: SessionKey) -> StateUpdate:
    """Return the write after which nothing is owed under a key."""
    from hermes_hookspecs.state import StateUpdate

    return StateUpdate(namespace=NAMESPACE, key=key, value=None)


def owed(reader: StoreReader, key: SessionKey, now: int) -> Owed | None:
    """Return the notice that is owed under a key."""
    entry = reader.state(NAMESPACE, key, now=now)
    if entry is None:
        return None
    from json import loads

    value = loads(entry.value)
    return Owed(lineage_id=value["lineage"], at=value["at"], text=value["text"])


def _text(verdict: Verdict, reason: str) -> str:
    tip = verdict.facts.lineage.tip
    return f"{_why(verdict, reason)} It is kept: /resume {tip} goes on with it. This message begins a new one."


def _why(verdict: Verdict, reason: str) -> str:
    settings, decision = verdict.effective.settings, verdict.decision
    if reason == "idle" and verdict.policy in ("idle", "both"):
        return f"The conversation before this one ended after {duration(settings.idle_minutes)} without a message."
    boundary = decision.at if isinstance(decision, Reset) else None
    when = "" if boundary is None else f" at {at(boundary, zone_of(settings.timezone)):%H:%M}"
    where = f" ({settings.timezone})" if when and settings.timezone else ""
    if reason == "daily" and verdict.policy in ("daily", "both"):
        return f"The conversation before this one ended{when}{where}, as conversations here do every day."
    return f"The conversation before this one ended{when}{where}: {reason}."


def duration(minutes: int) -> str:
    """Return minutes in words, in the greatest unit that is exact."""
    for size, word in ((_DAY_MIN, "day"), (_HOUR_MIN, "hour")):
        count, rest = divmod(minutes, size)
        if count and not rest and not (size == _DAY_MIN and count == 1):
            return f"{count} {word}{'' if count == 1 else 's'}"
    return f"{minutes} minute{'' if minutes == 1 else 's'}"
