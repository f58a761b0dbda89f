"""The queue of a lineage as one process sees it: whose turn it is, who is in the way, what a dead turn leaves.

One look reads everything on one view of the store; *begin* then decides in one transaction.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import attrs

from hermes_core.context.opening import user_draft
from hermes_core.leases import LeaseWatch
from hermes_core.turns.presence import has_nobody
from hermes_core.turns.recovery import DeadTurn, Verdict, dead_turn, recovery_note
from hermes_hookspecs.ids import new_turn_id
from hermes_hookspecs.inbox import INTERNAL
from hermes_hookspecs.operations import Begin
from hermes_hookspecs.outbox import address_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_core.context.opening import Opened
    from hermes_core.turns.presence import Presence
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ids import InboxId, LineageId
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.operations import Snapshot
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.turns import Lease, LeaseHolder, LeaseStamp

__all__ = ["LeaseTimes", "LineageQueue", "QueueLook", "same_address"]

_LOOKED_AT = 50
"""Messages that whoever answers several together looks at."""
_HEAD = 4
"""Messages that whoever waits for one of them looks at: all that counts is who is first."""


@attrs.frozen(kw_only=True)
class LeaseTimes:
    """Seconds: life of a lease, its renewal, when a waiter is told, when it gives up."""

    ttl_s: float
    renew_s: float
    notice_s: float
    wait_s: float

    @property
    def ttl_ms(self) -> int:
        """Return the life of a lease in milliseconds."""
        return int(self.ttl_s * 1000)


@attrs.frozen(kw_only=True)
class QueueLook:
    """What one look saw.

    Attributes:
        waiting: messages that wait for an answer, oldest first: without those that nobody alive serves, with those
            of a dead turn that are tried again. passed_over: the ones left out. is_whole: there are no others.
        lease: ``None`` where there is no such lineage. presumed_dead: its stamp, when its holder is gone.
        dead: the turn that it left. forsaken: those passed over whose sender waited in a process that died.
        if_dies: what :attr:`dead` would be, should the living holder of another process die with nothing written in
            between; ``None`` where that cannot be told yet.
    """

    waiting: tuple[InboxItem, ...]
    passed_over: frozenset[InboxId]
    is_whole: bool
    lease: Lease | None
    presumed_dead: LeaseStamp | None
    dead: DeadTurn | None
    forsaken: tuple[InboxId, ...]
    if_dies: DeadTurn | None = None

    @property
    def oldest(self) -> InboxItem | None:
        """Return the message whose turn it is."""
        return self.waiting[0] if self.waiting else None

    @property
    def is_held(self) -> bool:
        """Return whether somebody alive runs a turn."""
        return self.lease is not None and self.lease.holder is not None and self.presumed_dead is None

    def after_death(self) -> QueueLook | None:
        """Return what a look would see once the holder has died; ``None`` where only another look can tell.

        The stamp of this one vouches for it: whatever the holder has written since counts as a sign of life, and the
        begin that names this stamp is refused then.
        """
        if self.lease is None or self.if_dies is None:
            return None
        return attrs.evolve(self, presumed_dead=self.lease.stamp, dead=self.if_dies, if_dies=None)


class LineageQueue:
    """Looks at the queue of one lineage, again and again, and begins turns of it. Thread-safe.

    :param presence: who serves which entrance. recovery_attempts: retries of an interrupted turn.
    """

    def __init__(
        self, lineage_id: LineageId, *, clock: Clock, times: LeaseTimes, presence: Presence, recovery_attempts: int
    ) -> None:
        self.lineage_id = lineage_id
        self._clock = clock
        self._times = times
        self._presence = presence
        self._recovery_attempts = recovery_attempts
        self._watch = LeaseWatch(clock, times.ttl_s)

    def presumed_dead(self, lease: Lease) -> LeaseStamp | None:
        """Return the stamp of the lineage's lease when its holder is gone, as far as was seen by now."""
        return self._watch.presumed_dead(lease)

    def look(self, reader: StoreReader, own: InboxId | None = None) -> QueueLook:
        """Return what there is now.

        :param own: a row that the caller itself waits for: never passed over.
        """
        lease = reader.lease(self.lineage_id)
        stamp = None if lease is None else self.presumed_dead(lease)
        dead = None if stamp is None else dead_turn(reader, self.lineage_id, self._recovery_attempts)
        again = () if dead is None else dead.again
        passed = _PassedOver(reader, self._presence, own)
        limit = _HEAD if own is not None else _LOOKED_AT
        while True:
            pending = reader.waiting(self.lineage_id, limit=limit)
            if len(pending) < limit or not all(map(passed, pending)):
                break
            limit *= 8  # nothing but rows of the dead so far
        found = sorted((*again, *pending), key=lambda item: item.id)
        left_out = tuple(item for item in found if passed(item))
        passed_over = frozenset(item.id for item in left_out)
        return QueueLook(
            waiting=tuple(item for item in found if item.id not in passed_over),
            passed_over=passed_over,
            is_whole=len(pending) < limit,
            lease=lease,
            presumed_dead=stamp,
            dead=dead,
            forsaken=tuple(item.id for item in left_out if item.waiter is not None),
            if_dies=None if own is None or stamp is not None else self._if_dies(reader, lease),
        )

    def _if_dies(self, reader: StoreReader, lease: Lease | None) -> DeadTurn | None:
        """What the turn of another process would leave, where neither time nor a third process can change that.

        Such is a turn whose senders wait in its own process: whatever calls it has made, nobody is left to be answered.
        """
        if lease is None or lease.holder is None or lease.holder.pid == os.getpid():
            return None
        dead = dead_turn(reader, self.lineage_id, self._recovery_attempts)
        return dead if dead is not None and dead.verdict == Verdict() else None

    def begin(
        self,
        look: QueueLook,
        items: Sequence[InboxItem],
        *,
        holder: LeaseHolder,
        shared: bool,
        snapshot: Snapshot | None,
        opened: Opened | None = None,
    ) -> Begin:
        """Return the operation that begins a turn with these messages and ends a dead one that was seen.

        :param opened: what the user rows hold beside the messages' text.
        """
        now = self._clock.now()
        verdict = None if look.dead is None else look.dead.verdict
        return Begin(
            lineage_id=self.lineage_id,
            turn_id=new_turn_id(now),
            holder=holder,
            now=now,
            ttl_ms=self._times.ttl_ms,
            drafts=tuple(
                user_draft(item, shared=shared, opened=opened, first=not number) for number, item in enumerate(items)
            ),
            passed_over=look.passed_over,
            presumed_dead=look.presumed_dead,
            snapshot=snapshot,
            touch=any(item.kind != INTERNAL for item in items),
            again=frozenset() if verdict is None else verdict.again,
            note=recovery_note(items, now),
            deliveries=() if verdict is None else verdict.deliveries,
        )


class _PassedOver:
    """Whether a message has nobody who answers it, on one view of the store; who serves what is read when it matters.

    :param own: a row that the caller itself waits for.
    """

    def __init__(self, reader: StoreReader, presence: Presence, own: InboxId | None) -> None:
        self._reader = reader
        self._presence = presence
        self._own = own
        self._served: frozenset[tuple[str, str]] | None = None

    def __call__(self, item: InboxItem) -> bool:
        """Return whether the message is passed over."""
        if item.id == self._own:
            return False
        if item.waiter is None and self._served is None:
            self._served = self._presence.served(self._reader.servers())
        return has_nobody(item, self._served or frozenset())


def same_address(one: InboxItem, other: InboxItem) -> bool:
    """Return whether two messages may be answered together: one key, sender, role, address, way of answering."""
    return (
        one.session_key == other.session_key
        and one.source.participant == other.source.participant
        and one.source.roles == other.source.roles
        and address_of(one.source) == address_of(other.source)
        and one.entrance == other.entrance
        and one.waiter == other.waiter
    )
