"""What a look at a store's surroundings finds: leases, entrances, the outbox, the log, plugins.

Each check is a function that reads and yields findings; none changes anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_core.leases import holder_lives
from hermes_hookspecs.errors import HermesError
from hermes_hookspecs.outbox import FAILED, SENDING, WAITING
from hermes_hookspecs.ports.care import Finding
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import Entrance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hermes_hookspecs.inbox import EntranceServer
    from hermes_hookspecs.outbox import Delivery
    from hermes_hookspecs.ports.app import PluginRow
    from hermes_hookspecs.ports.care import StoreHealth
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.turns import Lease

__all__ = [
    "DEAD_LEASE",
    "DEAD_SOCKET",
    "UNFINISHED_COPY",
    "after_repair",
    "check_entrances",
    "check_health",
    "check_leases",
    "check_outbox",
    "check_plugins",
    "check_quarantined",
    "dead_servers",
]

DEAD_LEASE = "dead-lease"
DEAD_SERVER = "dead-server"
DEAD_SOCKET = "dead-socket"
UNFINISHED_COPY = "unfinished-copy"
LONG_LOG = 64 * 1024 * 1024
"""Bytes of a write-ahead log from which on something keeps it from starting anew."""
OVERDUE_MS = 600_000
"""How long a delivery may be due before it counts as late where a process serves its entrance; elsewhere not at all."""
PUT_OFF_MS = 60_000
"""From how far ahead on a delivery that was put off is told."""
MOST = 1000
"""Rows of the outbox, and of the inbox, that are looked at."""
_DONE = {
    DEAD_LEASE: "the turn was closed",
    DEAD_SERVER: "its word was taken back",
    DEAD_SOCKET: "removed",
    UNFINISHED_COPY: "removed",
}
"""What a repair did, by the kind of finding."""
_ADVISED = (DEAD_LEASE, DEAD_SERVER)
"""Kinds whose text ends, behind its last semicolon, with what happens or is to be done without a repair."""


def after_repair(finding: Finding) -> Finding:
    """Return a finding that was repaired, its advice replaced by what was done."""
    done = _DONE.get(finding.kind)
    if done is None:
        return finding
    what = finding.text.rpartition("; ")[0] if finding.kind in _ADVISED else finding.text
    return attrs.evolve(finding, text=f"{what}; {done}")


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
    served = _served(reader)
    for server in dead_servers(reader):
        entrance = server.entrance
        severity = "warning"
        if _door(entrance) in served:
            advice, severity = "another process serves it", "note"
        elif reader.work([entrance]) or reader.unrouted([entrance]):
            advice = "messages wait there and nobody else serves it, start a process that does"
        else:
            advice = "nobody else serves it, and no message waits there"
        text = f"process {server.holder.pid} on {server.holder.host} said to serve {entrance}, and is gone; {advice}"
        yield Finding(kind=DEAD_SERVER, subject=str(entrance), text=text, fixable=True, severity=severity)


def _served(reader: StoreReader) -> set[tuple[str, str]]:
    """Return the platforms and accounts that a process serves which is not known to be dead."""
    dead = dead_servers(reader)
    return {_door(server.entrance) for server in reader.servers() if server not in dead}


def check_quarantined(reader: StoreReader, now: int) -> Iterator[Finding]:
    """Yield what platforms sent and nobody could read: it is kept, and never answered."""
    found = reader.quarantined(limit=MOST)
    if not found:
        return
    newest = found[0]
    many = "1 item" if len(found) == 1 else f"{len(found)}{' or more' if len(found) == MOST else ''} items"
    minutes = max(now - newest.accepted_at, 0) // 60_000
    text = (
        f"{many} from platforms could not be read and will not be answered; the newest came {minutes} min ago at "
        f"{newest.entrance}: {newest.error or 'no reason'}"
    )
    yield Finding(kind="quarantined", subject=str(newest.id), text=text, severity="note")


def _door(entrance: Entrance) -> tuple[str, str]:
    return entrance.platform, entrance.account_id


def check_outbox(reader: StoreReader, now: int) -> Iterator[Finding]:
    """Yield what was given up, what is late or put off, and what a dead process was sending."""
    failed = reader.deliveries(statuses=(FAILED,), limit=MOST)
    if failed:
        text = (
            f"{_many(failed)} given up, the newest with: {failed[0].error or 'no reason'}; "
            "`hermes outbox list` shows them, `hermes outbox retry` and `drop` decide"
        )
        yield Finding(kind="failed-delivery", subject=str(failed[0].id), text=text)
    waiting = [one for one in reader.deliveries(statuses=(WAITING,), limit=MOST) if not one.awaits_inbound]
    yield from _late(waiting, _served(reader), now)
    yield from _put_off(waiting, now)
    for one in reader.deliveries(statuses=(SENDING,), limit=MOST):
        if one.owner is not None and holder_lives(one.owner) is False:
            text = (
                f"delivery {one.id} was being sent by process {one.owner.pid} on {one.owner.host}, which is gone; "
                f"who serves {Entrance(one.target.platform, one.target.account_id)} goes on with it"
            )
            yield Finding(kind="dead-sender", subject=str(one.id), text=text)


def _late(waiting: Sequence[Delivery], served: set[tuple[str, str]], now: int) -> Iterator[Finding]:
    late: dict[Entrance, list[Delivery]] = {}
    for one in waiting:
        entrance = Entrance(one.target.platform, one.target.account_id)
        if now - one.due_at > OVERDUE_MS or (one.is_due(now) and _door(entrance) not in served):
            late.setdefault(entrance, []).append(one)
    for entrance, found in sorted(late.items(), key=lambda item: str(item[0])):
        minutes = max(now - min(one.due_at for one in found), 0) // 60_000
        why = "look at the process that serves it" if _door(entrance) in served else "no process serves it, start one"
        text = f"{_many(found)} due at {entrance}, the oldest for {minutes} min; {why}"
        yield Finding(kind="overdue-delivery", subject=str(entrance), text=text)


def _put_off(waiting: Sequence[Delivery], now: int) -> Iterator[Finding]:
    """Yield what a failure or a pause of the platform keeps back for longer, once per entrance."""
    late: dict[str, list[Delivery]] = {}
    for one in waiting:
        if one.error and one.due_at - now > PUT_OFF_MS:
            late.setdefault(str(Entrance(one.target.platform, one.target.account_id)), []).append(one)
    for entrance, found in sorted(late.items()):
        last = max(found, key=lambda one: one.due_at)
        minutes = -((now - last.due_at) // 60_000)
        text = f"{_many(found)} put off at {entrance}, up to {minutes} min from now: {last.error}"
        yield Finding(kind="put-off-delivery", subject=entrance, text=text, severity="note")


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
