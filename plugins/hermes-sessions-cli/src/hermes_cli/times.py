"""Points in time, sizes and numbers of things, as people read and write them."""

from __future__ import annotations

import time

__all__ = ["ago", "counted", "local_time", "moment", "size_text", "took_text", "until", "utc_time"]

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_UNITS = {"m": _MINUTE, "h": _HOUR, "d": _DAY, "w": 7 * _DAY}


def _stamp(at_ms: int, form: str, *, local: bool) -> str:
    try:
        return time.strftime(form, (time.localtime if local else time.gmtime)(at_ms // 1000))
    except (OverflowError, ValueError, OSError):
        return str(at_ms)  # an imported row may carry any number


def local_time(at_ms: int) -> str:
    """Return UTC milliseconds as local time: ``2026-09-01 14:03``."""
    return _stamp(at_ms, "%Y-%m-%d %H:%M", local=True)


def utc_time(at_ms: int) -> str:
    """Return UTC milliseconds as ``2026-09-01T12:03:07Z``, without blanks: one field for a program that splits."""
    return _stamp(at_ms, "%Y-%m-%dT%H:%M:%SZ", local=False)


def ago(now_ms: int, at_ms: int) -> str:
    """Return how long ago something was: ``just now``, ``5 min ago``, ``3 h ago``, ``2 d ago``, then the date.

    The future, which a corrected clock leaves behind, is ``just now``.
    """
    seconds = (now_ms - at_ms) // 1000
    if seconds < _MINUTE:
        return "just now"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE} min ago"
    if seconds < _DAY:
        return f"{seconds // _HOUR} h ago"
    if seconds < 30 * _DAY:
        return f"{seconds // _DAY} d ago"
    return _stamp(at_ms, "%Y-%m-%d", local=True)


def until(now_ms: int, at_ms: int) -> str:
    """Return how long it is to a moment: ``now``, ``in 12 s``, ``in 5 min``, ``in 3 h``, ``in 2 d``; rounded up."""
    seconds = -((now_ms - at_ms) // 1000)
    if seconds <= 0:
        return "now"
    for size, sign in ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min")):
        if seconds > 2 * size:
            return f"in {-(-seconds // size)} {sign}"
    return f"in {seconds} s"


def counted(number: int, noun: str) -> str:
    """Return ``1 message``, ``2 messages``; for nouns that take an ``s``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def size_text(size: int | None) -> str:
    """Return a number of bytes as ``812 B``, ``3.4 MiB``; ``unknown`` for ``None``."""
    if size is None:
        return "unknown"
    if size < 1024:
        return f"{size} B"
    amount = float(size)
    for unit in ("KiB", "MiB", "GiB"):
        amount /= 1024
        if amount < 1024:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1024:.1f} TiB"


def took_text(duration_ms: int | None) -> str:
    """Return how long something took: ``12 ms``, ``3.4 s``, ``5 min``, ``3.5 h``; ``-`` for ``None``."""
    if duration_ms is None:
        return "-"
    if duration_ms < 1000:
        return f"{duration_ms} ms"
    seconds = duration_ms / 1000
    if seconds < 10 * _MINUTE:
        return f"{seconds:.1f} s"
    return f"{seconds / _MINUTE:.0f} min" if seconds < 2 * _HOUR else f"{seconds / _HOUR:.1f} h"


def moment(value: object, option: str) -> int | None:
    """Return UTC milliseconds of a date (``2026-09-01``, with a time or without, local) or an age (``7d``, ``12h``).

    :param value: of an option; ``None`` where it was not given.
    :raises ConfigError: it is neither.
    """
    if not isinstance(value, str):
        return None
    text = value.strip()
    if text[:-1].isdecimal() and text[-1:] in _UNITS:
        return int(time.time() * 1000) - int(text[:-1]) * _UNITS[text[-1]] * 1000
    from datetime import datetime

    try:
        return int(datetime.fromisoformat(text).astimezone().timestamp() * 1000)
    except (ValueError, OverflowError, OSError) as error:
        from hermes_cli.parser import usage_error

        wanted = "a date like 2026-09-01 or 2026-09-01T14:00, or an age like 7d, 12h"
        raise usage_error(f"option {option} wants {wanted}, not {value!r}", f"option {option}") from error
