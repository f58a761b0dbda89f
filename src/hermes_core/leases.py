"""Who holds a lease, and whether that process still lives (``design.md`` section 7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.processes import ProcessIdentity, current_process, is_alive
from hermes_hookspecs.turns import LeaseHolder

if TYPE_CHECKING:
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.errors import LeaseBusy
    from hermes_hookspecs.ids import SessionKey
    from hermes_hookspecs.source import Entrance
    from hermes_hookspecs.turns import Lease, LeaseStamp

__all__ = ["ELSEWHERE", "LeaseWatch", "busy_words", "dead_stamp", "holder_here", "holder_lives", "lease_state"]

ELSEWHERE = "another entrance"
"""What a chat is told of a holder: which host and process it is, is for the operator alone."""


def holder_here(entrance: Entrance, session_key: SessionKey | None) -> LeaseHolder:
    """Return this process as a holder that serves ``entrance`` for ``session_key``."""
    me = current_process()
    return LeaseHolder(
        host=me.host,
        boot_id=me.boot_id,
        pid_namespace=me.pid_namespace,
        pid=me.pid,
        started=str(me.started),
        entrance=entrance,
        session_key=session_key,
    )


def holder_lives(holder: LeaseHolder) -> bool | None:
    """Return whether the holder's process lives; ``None`` where this process cannot know."""
    return is_alive(
        ProcessIdentity(
            host=holder.host,
            boot_id=holder.boot_id,
            pid_namespace=holder.pid_namespace,
            pid=holder.pid,
            started=int(holder.started),
        )
    )


def dead_stamp(lease: Lease) -> LeaseStamp | None:
    """Return the stamp of a lease whose holder is known to be gone, ``None`` otherwise."""
    if lease.holder is not None and holder_lives(lease.holder) is False:
        return lease.stamp
    return None


def lease_state(lease: Lease | None) -> str:
    """Return a lease in words: ``""`` when it is free, who holds it, or that its holder's process is gone."""
    if lease is None or lease.holder is None:
        return ""
    if holder_lives(lease.holder) is False:
        return f"interrupted in {lease.holder.describe()}: its process is gone"
    return f"running in {lease.holder.describe()}"


def busy_words(error: LeaseBusy) -> str:
    """Return what a chat is told of a session that is busy."""
    return str(error).replace(error.holder, ELSEWHERE) if error.holder else str(error)


class LeaseWatch:
    """What one waiter has seen of a lease: it may take it over after one ttl without a sign of life. Thread-safe.

    Wall clocks of other hosts are not asked: the same (token, renewals), unchanged for one ttl on the waiter's own
    monotonic clock, is what makes a holder dead.

    :param ttl_s: seconds a lease lives without renewal, by this process's settings; a holder that promised to renew
        less often is given its own time.
    """

    def __init__(self, clock: Clock, ttl_s: float) -> None:
        self._clock = clock
        self._ttl_s = ttl_s
        self._seen: tuple[LeaseStamp, float] | None = None

    def presumed_dead(self, lease: Lease) -> LeaseStamp | None:
        """Return the stamp to take over, ``None`` while the holder lives or may live."""
        if lease.holder is None:
            self._seen = None
            return None
        gone = dead_stamp(lease)
        if gone is not None:
            return gone
        now = self._clock.monotonic()
        seen, since = self._seen or (None, now)
        if lease.stamp != seen:
            self._seen = (lease.stamp, now)
            return None
        promised_s = (lease.ttl_ms or 0) / 1000
        return lease.stamp if now - since >= max(self._ttl_s, promised_s) else None
