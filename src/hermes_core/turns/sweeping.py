"""Closing the turns of dead processes where nobody begins one."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from hermes_core.outbox.topics import outbox_topic
from hermes_core.turns.presence import is_forsaken
from hermes_core.turns.topics import WORK
from hermes_hookspecs.operations import Revoke, Withdraw
from hermes_hookspecs.turns import DEAD, INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_core.turns.queue import LineageQueue, QueueLook
    from hermes_core.turns.surroundings import Surroundings
    from hermes_hookspecs.ids import InboxId, LineageId

__all__ = ["DeadTurnSweep", "close_dead"]


class DeadTurnSweep:
    """Finds turns without a living holder and ends them by the verdict on their messages. Thread-safe; blocks.

    Messages whose sender waited in a process that died are taken back: they would make a session busy for nobody.

    A holder that cannot be looked at from here is dead once two rounds, one ttl apart, see the same lease: what was
    seen is remembered from round to round.
    """

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._queues: dict[LineageId, LineageQueue] = {}
        self._lock = Lock()

    def close_dead_turns(self) -> int:
        """Close what is dead now; return how many turns were."""
        self._take_back_the_forsaken()
        store = self._around.store
        held = [lease.lineage_id for lease in store.leases()]
        with self._lock:
            known, self._queues = self._queues, {}
            for lineage_id in held:
                self._queues[lineage_id] = known.get(lineage_id) or self._around.queue(lineage_id)
            queues = tuple(self._queues.values())
        return sum(self._close(queue) for queue in queues)

    def make_way(self, lineage_ids: Sequence[LineageId]) -> None:
        """End in some lineages what dead processes left there: their turns, and what they waited for."""
        for lineage_id in lineage_ids:
            look = self._around.store.submit_read(self._around.queue(lineage_id).look).result()
            self._take_back(look.forsaken)
            close_dead(self._around, look)

    def _take_back_the_forsaken(self) -> None:
        self._take_back([item.id for item in self._around.store.attended() if is_forsaken(item)])

    def _take_back(self, forsaken: Sequence[InboxId]) -> None:
        if forsaken:
            self._around.store.apply(Withdraw(ids=tuple(forsaken), now=self._around.clock.now()))
            self._around.waker.wake(WORK)

    def _close(self, queue: LineageQueue) -> bool:
        look = self._around.store.submit_read(queue.look).result()
        return close_dead(self._around, look)


def close_dead(around: Surroundings, look: QueueLook) -> bool:
    """End a turn whose holder is gone, by the verdict on its messages; return whether it was still there. Blocks.

    What its *begin* would do, for a queue in which nobody begins now: one transaction that compares the lease.
    """
    dead = look.dead
    if dead is None or look.presumed_dead is None:
        return False
    operation = Revoke(
        lineage_id=dead.turn.lineage_id,
        now=around.clock.now(),
        reason=DEAD,
        outcome=INTERRUPTED,
        expected=look.presumed_dead,
        again=dead.verdict.again,
        deliveries=dead.verdict.deliveries,
    )
    ended = around.store.apply(operation)
    for topic in (dead.turn.lineage_id, WORK, *(outbox_topic(item.entrance) for item in dead.items)):
        around.waker.wake(topic)
    if ended is None:
        return False
    around.hooks.turn_ended(ended)
    return True
