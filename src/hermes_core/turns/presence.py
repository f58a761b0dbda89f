"""Whether anybody alive serves an entrance: who waits for a row, or who said that they answer its door."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from hermes_core.leases import holder_lives

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.inbox import EntranceServer, InboxItem
    from hermes_hookspecs.source import Entrance

__all__ = ["Presence", "door", "has_nobody", "is_forsaken"]


def door(entrance: Entrance) -> tuple[str, str]:
    """Return what is served of an entrance: platform and account."""
    return entrance.platform, entrance.account_id


class Presence:
    """What one process has seen of those that serve entrances. Thread-safe.

    A process that cannot be looked at (another host, another container) lives as long as its beats go on: unchanged
    for one ttl on the own monotonic clock, it is gone.

    :param ttl_s: seconds without a beat.
    """

    def __init__(self, clock: Clock, ttl_s: float) -> None:
        self._clock = clock
        self._ttl_s = ttl_s
        self._seen: dict[tuple[object, ...], tuple[int, float]] = {}
        self._lock = Lock()

    def lives(self, server: EntranceServer) -> bool:
        """Return whether a process that serves an entrance lives, as far as can be known."""
        known = holder_lives(server.holder)
        if known is not None:
            return known
        holder = server.holder
        who = (server.entrance, holder.host, holder.boot_id, holder.pid_namespace, holder.pid, holder.started)
        now = self._clock.monotonic()
        with self._lock:
            beats, since = self._seen.get(who, (-1, now))
            if beats != server.beats:
                self._seen[who] = (server.beats, now)
                return True
        return now - since < self._ttl_s

    def served(self, servers: Sequence[EntranceServer]) -> frozenset[tuple[str, str]]:
        """Return the doors that somebody alive serves."""
        return frozenset(door(one.entrance) for one in servers if self.lives(one))


def has_nobody(item: InboxItem, served: frozenset[tuple[str, str]]) -> bool:
    """Return whether nobody alive answers a row: it keeps its place and is passed over."""
    return is_forsaken(item) if item.waiter is not None else door(item.entrance) not in served


def is_forsaken(item: InboxItem) -> bool:
    """Return whether the sender of a row waited in a process that is known to be dead."""
    return item.waiter is not None and holder_lives(item.waiter) is False
