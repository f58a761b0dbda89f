"""What a sender says, made sound: whatever it returns or raises, the store takes what is written of it."""

from __future__ import annotations

from logging import getLogger
from math import isfinite
from typing import TYPE_CHECKING

from hermes_hookspecs.errors import RetryLater
from hermes_hookspecs.ports.platform import Deferred, Sent
from hermes_hookspecs.state import StateUpdate

if TYPE_CHECKING:
    from hermes_hookspecs.ports.platform import SendResult

__all__ = ["hint_of", "one_line", "sound_result"]

_log = getLogger(__name__)

_LONGEST_ERROR = 300
_LONGEST_ID = 1000
_LARGEST = 2**62
"""Numbers beyond it no store takes."""


def one_line(error: BaseException) -> str:
    """Return what failed in one line, for the row and the log; the type's name where the error does not say."""
    try:
        text = _on_a_line(str(error))
    except Exception:  # noqa: BLE001 - the text of a stranger's error is a stranger's code
        text = ""
    return text or type(error).__name__


def hint_of(error: BaseException) -> float | None:
    """Return the seconds that a platform asked to wait, ``None`` where it asked for none, or for nonsense."""
    return _number(getattr(error, "after_s", None))


def sound_result(result: object) -> SendResult:
    """Return what a sender returned, with values that the store takes.

    Of a part that went out, what makes no sense is left out: that it went out must be written.

    :raises TypeError: it is no result.
    :raises RetryLater: it was put off to a time that is none.
    """
    if isinstance(result, Sent):
        return Sent(
            platform_message_id=_id(result.platform_message_id),
            opened_thread_id=_id(result.opened_thread_id) or None,
            possible_repeat=result.possible_repeat is True,
            state=_state(result.state),
        )
    if not isinstance(result, Deferred):
        raise TypeError(f"the sender returned {type(result).__name__}, not Sent or Deferred")
    said: object = result.reason
    reason = _on_a_line(said) if isinstance(said, str) else ""
    if result.at is None:
        return Deferred(reason=reason)
    at = _number(result.at)
    if at is None:
        raise RetryLater(f"it was put off to no time that there is: {reason}".removesuffix(": "))
    return Deferred(reason=reason, at=int(at))


def _on_a_line(text: str) -> str:
    return " ".join(text.split())[:_LONGEST_ERROR]


def _number(value: object) -> float | None:
    """Return a number that can be reckoned with, ``None`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int):
        return float(max(-_LARGEST, min(value, _LARGEST)))
    return max(-float(_LARGEST), min(value, float(_LARGEST))) if isfinite(value) else None


def _id(value: object) -> str | None:
    """Return an id as text, ``None`` for what is none."""
    if isinstance(value, str):
        return str(value) if len(value) <= _LONGEST_ID else None
    if isinstance(value, bytes):
        return _id(value.decode("utf-8", "replace"))
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return str(value) if value.bit_length() <= _LONGEST_ID else None


def _state(state: object) -> tuple[StateUpdate, ...]:
    """Return what an adapter wants to remember: all of it, or nothing where a piece makes no sense."""
    updates = tuple(state) if isinstance(state, tuple | list) else None
    if updates is not None and all(isinstance(each, StateUpdate) and _is_sound(each) for each in updates):
        return updates
    _log.warning("a sender's state is not kept: it is no tuple of sound updates")
    return ()


def _is_sound(update: StateUpdate) -> bool:
    texts: tuple[object, ...] = (update.namespace, update.key)
    optional: tuple[object, ...] = (update.value, update.person, update.lineage_id)
    numbers: tuple[object, ...] = (update.expected_version, update.expires_at)
    return (
        all(isinstance(text, str) for text in texts)
        and all(text is None or isinstance(text, str) for text in optional)
        and all(number is None or _is_whole(number) for number in numbers)
    )


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and abs(number) <= _LARGEST
