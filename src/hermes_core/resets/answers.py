"""What a policy answered, looked at before anything trusts it: a plugin's answer must never hold a message up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from hermes_hookspecs.ports.policies import Defer, Keep, Reset

if TYPE_CHECKING:
    from hermes_hookspecs.ports.policies import ResetDecision

__all__ = ["OF_THE_STORE", "checked"]

OF_THE_STORE: Final = frozenset({"session_reset", "session_switch", "new_session", "compression"})
"""End reasons that say what a person or the store did; no policy may pass for one of them."""

_REASON_CHARACTERS: Final = 200
_LAST_MS: Final = 253_402_214_400_000
"""The last day of the year 9999, in UTC milliseconds: what lies behind it cannot be shown in every zone."""


def checked(said: object, policy: str) -> ResetDecision:
    """Return a decision whose times can be shown and compared, and whose reason is one line.

    :raises TypeError: it is none, or one of its values is of another kind. :raises ValueError: a time is out of range.
    """
    if isinstance(said, Keep):
        _look_at("next_check", said.next_check)
        return said
    if isinstance(said, Reset):
        _look_at("at", said.at)
        line = _line(said.reason)
        # Where a policy gives no reason of its own, its name is one.
        return attrs.evolve(said, reason=policy if not line or line in OF_THE_STORE else line)
    if isinstance(said, Defer):
        _look_at("until", said.until)
        return attrs.evolve(said, reason=_line(said.reason) or policy)
    raise TypeError(f"it gave {type(said).__name__}, which is no decision")


def _look_at(name: str, value: object) -> None:
    """Let a time pass that is UTC milliseconds."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"its {name} is {type(value).__name__}, not UTC milliseconds")
    if not 0 <= value <= _LAST_MS:
        raise ValueError(f"its {name} = {value} is no time in UTC milliseconds")


def _line(reason: object) -> str:
    if not isinstance(reason, str):
        raise TypeError(f"its reason is {type(reason).__name__}, not a text")
    seen = "".join(each if each.isprintable() else " " for each in reason)
    return " ".join(seen.split())[:_REASON_CHARACTERS]
