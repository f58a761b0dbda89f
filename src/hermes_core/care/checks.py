"""What a look at a store's surroundings finds: leases, entrances, the outbox, the log, plugins, settings.

Each check is a function that reads and yields findings; none changes anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.leases import holder_lives
from hermes_hookspecs.errors import HermesError
from hermes_hookspecs.outbox import FAILED, SENDING, WAITING
from hermes_hookspecs.ports.care import Finding
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import Entrance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hermes_core.config.sections import SessionResetSettings
    from hermes_hookspecs.inbox import EntranceServer
    from hermes_hookspecs.outbox import Delivery
    from hermes_hookspecs.ports.app import PluginRow
    from hermes_hookspecs.ports.care import StoreHealth
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.turns import Lease

__all__ = [
    "DEAD_LEASE",
    "check_entrances",
    "check_health",
    "check_leases",
    "check_outbox",
    "check_plugins",
    "check_reset",
    "dead_servers",
]

DEAD_LEASE = "dead-lease"
LONG_LOG = 64 * 1024 * 1024
"""Bytes of a write-ahead log from which on something keeps it from starting anew."""
OVERDUE_MS = 600_000
MOST = 1000
"""Rows of the outbox that are looked at."""


def check_health(health: StoreHealth) -> Iterator[Finding]:
    """Yield what is odd about the file: another journal, a log that does not end."""
    if health.journal_mode is not None and health.journal_mode != "wal":
        text = (
            f"the journal mode is {health.journal_mode} and not wal: a crash may lose rows; open it with this program"
        )
        yield Finding(kind="journal-mode", subject=health.journal_mode, text=text, severity="error")
    if health.wal_size is not None and health.wal_size > LONG_LOG:
        size = health.wal_size // (1024 * 1024)
        text = f"the write-ahead log has {size} MiB: a program reads for very long, or the disk is full; look for both"
        yield Finding(kind="long-log", subject=str(health.wal_size), text=text)


def check_leases(reader: StoreReader, now: int) -> Iterator[Finding]:
    """Yield turns whose process is gone, and turns whose process lives and does nothing."""
    for lease in reader.leases():
        finding = _of_lease(reader, lease, now)
        if finding is not None:
            yield finding


def _of_lease(reader: StoreReader, lease: Lease, now: int) -> Finding | None:
    holder = lease.holder
    if holder is None:
        return None
    lives = holder_lives(holder)
    if lives is False:
        name = _name(reader, lease)
        text = f"the turn of {name} was interrupted: {holder.describe()} is gone; the next message closes it"
        return Finding(kind=DEAD_LEASE, subject=lease.lineage_id, text=text, fixable=True)
    late_s = 0 if lease.expires_at is None else (now - lease.expires_at) // 1000
    if late_s <= 0:
        return None
    if lives is None:
        text = (
            f"the lease of {_name(reader, lease)} ran out {late_s} s ago, and {holder.describe()} cannot be looked at "
            "from here; the next message takes over"
        )
        return Finding(kind="lost-lease", subject=lease.lineage_id, text=text)
    text = (
        f"the turn of {_name(reader, lease)} should have shown life {late_s} s ago, though {holder.describe()} lives; "
        f"look at it there, ending process {holder.pid} lets the next message go on"
    )
    return Finding(kind="stuck-turn", subject=lease.lineage_id, text=text)


def _name(reader: StoreReader, lease: Lease) -> str:
    lineage = reader.lineage(lease.lineage_id, operator())
    if lineage is None:
        return lease.lineage_id
    return f"{lineage.tip} ({lineage.title})" if lineage.title else lineage.tip


def dead_servers(reader: StoreReader) -> Sequence[EntranceServer]:
    """Return who said to serve an entrance and is known to be dead."""
    return [server for server in reader.servers() if holder_lives(server.holder) is False]


def check_entrances(reader: StoreReader) -> Iterator[Finding]:
    """Yield entrances whose server is dead, and say whether their messages wait for it."""
    dead = dead_servers(reader)
    served = {_door(server.entrance) for server in reader.servers() if server not in dead}
    for server in dead:
        entrance = server.entrance
        text = f"process {server.holder.pid} on {server.holder.host} said to serve {entrance}, and is gone"
        if _door(entrance) not in served and (reader.work([entrance]) or reader.unrouted([entrance])):
            text += "; messages wait there and nobody else serves it, start a process that does"
        yield Finding(kind="dead-server", subject=str(entrance), text=text, fixable=True)


def _door(entrance: Entrance) -> tuple[str, str]:
    return entrance.platform, entrance.account_id


def check_outbox(reader: StoreReader, now: int) -> Iterator[Finding]:
    """Yield what was given up, what is late, and what a dead process was sending."""
    failed = reader.deliveries(statuses=(FAILED,), limit=MOST)
    if failed:
        text = (
            f"{_many(failed)} given up, the newest with: {failed[0].error or 'no reason'}; "
            "`hermes outbox list` shows them, `hermes outbox retry` and `drop` decide"
        )
        yield Finding(kind="failed-delivery", subject=str(failed[0].id), text=text)
    late: dict[str, list[Delivery]] = {}
    for one in reader.deliveries(statuses=(WAITING,), limit=MOST):
        if not one.awaits_inbound and now - one.due_at > OVERDUE_MS:
            late.setdefault(str(Entrance(one.target.platform, one.target.account_id)), []).append(one)
    for entrance, found in sorted(late.items()):
        minutes = (now - min(one.due_at for one in found)) // 60_000
        text = f"{_many(found)} due at {entrance}, the oldest for {minutes} min; does a process serve it?"
        yield Finding(kind="overdue-delivery", subject=entrance, text=text)
    for one in reader.deliveries(statuses=(SENDING,), limit=MOST):
        if one.owner is not None and holder_lives(one.owner) is False:
            text = (
                f"delivery {one.id} was being sent by process {one.owner.pid} on {one.owner.host}, which is gone; "
                f"who serves {Entrance(one.target.platform, one.target.account_id)} goes on with it"
            )
            yield Finding(kind="dead-sender", subject=str(one.id), text=text)


def _many(found: Sequence[Delivery]) -> str:
    if len(found) == 1:
        return "1 delivery is"
    return f"{len(found)}{' or more' if len(found) == MOST else ''} deliveries are"


def check_plugins(rows: Callable[[], Sequence[PluginRow]]) -> Iterator[Finding]:
    """Yield plugins that are not loaded against the will of the settings, or not called any more."""
    try:
        found = rows()
    except HermesError as error:
        yield Finding(kind="plugin-failed", subject="plugins", text=str(error), severity="error")
        return
    for row in found:
        if row.quarantined:
            text = (
                f"plugin {row.name} failed {row.failures} times and is not called any more; see `hermes plugins list`"
            )
            yield Finding(kind="plugin-quarantined", subject=row.name, text=text)
        elif row.stage not in ("loaded", "blocked"):
            text = f"plugin {row.name} is not loaded, {row.stage}: {row.reason or 'no reason'}"
            yield Finding(kind="plugin-failed", subject=row.name, text=text)


def check_reset(settings: SessionResetSettings) -> Iterator[Finding]:
    """Yield that a daily reset follows the host's clock where nobody said which."""
    if settings.mode in ("daily", "both") and not settings.timezone:
        text = (
            f"sessions are reset at {settings.at_hour}:00 by the clock of this host, which may move; "
            "set [session_reset] timezone"
        )
        yield Finding(kind="timezone-unset", subject="session_reset.timezone", text=text, severity="note")
