"""Reading what Slack sends: whatever is not of the expected shape is as if it were not there."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["flag", "mapping", "mappings", "milliseconds", "text"]


def text(entry: Mapping[str, object], key: str) -> str:
    """Return a text, ``""`` for anything else."""
    value = entry.get(key)
    return value if isinstance(value, str) else ""


def flag(entry: Mapping[str, object], key: str) -> bool:
    """Return whether it is true. Slash commands say so in words."""
    return entry.get(key) in (True, "true", "1")


def mapping(entry: Mapping[str, object], key: str) -> Mapping[str, object]:
    """Return an object, an empty one for anything else."""
    value = entry.get(key)
    return value if isinstance(value, Mapping) else {}


def mappings(entry: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    """Return the objects of a list, in order."""
    value = entry.get(key)
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []


def milliseconds(ts: str, now: int) -> int:
    """Return when a message was written, by its id (``1790000000.000100``), in UTC milliseconds.

    :param now: what holds where the id is no time, or one that is a day or more away.
    """
    seconds, _, rest = ts.partition(".")
    if not (seconds.isascii() and seconds.isdigit() and len(seconds) < 12):
        return now
    fraction = int(rest[:3].ljust(3, "0")) if rest.isascii() and rest.isdigit() else 0
    found = int(seconds) * 1000 + fraction
    return found if abs(found - now) < 86_400_000 else now
