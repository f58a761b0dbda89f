"""The zone in which a conversation's days are counted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self

__all__ = ["HostZone", "at", "zone_of"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class HostZone(tzinfo):
    """The zone that this machine is set to, with its changes of clocks; the standard library has none that keeps them.

    :func:`time.localtime` knows the rules; a fixed offset, as ``datetime.astimezone()`` gives it, would be an hour off
    on the other side of a change.
    """

    def utcoffset(self, dt: datetime | None) -> timedelta | None:
        """Return the offset at a wall-clock time, ``fold`` telling the two equal ones apart."""
        return None if dt is None else dt.replace(tzinfo=None).astimezone().utcoffset()

    def dst(self, dt: datetime | None) -> timedelta | None:
        """Return nothing: the machine does not say which part of an offset is summer time."""
        return None

    def tzname(self, dt: datetime | None) -> str | None:
        """Return the abbreviation at a wall-clock time."""
        return None if dt is None else dt.replace(tzinfo=None).astimezone().tzname()

    def fromutc(self, dt: datetime) -> datetime:
        """Return the wall-clock time of an instant that is given in UTC under this zone's name."""
        local = dt.replace(tzinfo=UTC).astimezone()
        wall = local.replace(tzinfo=None)
        second = wall.astimezone().utcoffset() != local.utcoffset()
        return wall.replace(tzinfo=self, fold=int(second))

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self


def zone_of(name: str) -> tzinfo:
    """Return the zone with an IANA name; the host's for ``""``.

    :raises ZoneInfoNotFoundError: this host does not know it; settings were checked, so it has lost it since.
    """
    if not name:
        return HostZone()
    from zoneinfo import ZoneInfo

    return ZoneInfo(name)


def at(milliseconds: int, zone: tzinfo) -> datetime:
    """Return an instant (UTC milliseconds) in a zone, exactly."""
    return (_EPOCH + timedelta(milliseconds=milliseconds)).astimezone(zone)
