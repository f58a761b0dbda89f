"""How a refusal repeats what somebody typed: in quotes, on one line, and never all of something long."""

from __future__ import annotations

from typing import Final

__all__ = ["echoed"]

_LONGEST: Final = 60


def echoed(typed: str) -> str:
    """Return the beginning of what was typed, at most 60 characters of it, in quotes and with nothing invisible."""
    line = " ".join(typed[: 4 * _LONGEST].split())
    cut = line if len(line) <= _LONGEST and len(typed) <= 4 * _LONGEST else f"{line[: _LONGEST - 1]}…"
    return repr(cut)
