"""Whose delivery it is that is *being sent*, and whether its sender is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.leases import holder_here, holder_lives

if TYPE_CHECKING:
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ids import DeliveryId
    from hermes_hookspecs.outbox import Delivery
    from hermes_hookspecs.source import Entrance

__all__ = ["OwnerWatch"]


class OwnerWatch:
    """What one deliverer has seen of deliveries that are being sent. For one event loop.

    A sender says nothing while it waits for the platform, but every step of it ends within a known time. Where nobody
    here can know whether its process lives, the same attempt with the same parts sent, unchanged for longer than such a
    step on the watcher's own monotonic clock, is what makes it dead.

    :param silence_s: longest time that a living sender changes nothing.
    """

    def __init__(self, clock: Clock, entrance: Entrance, silence_s: float) -> None:
        self._clock = clock
        self._entrance = entrance
        self._silence_s = silence_s
        self._own: dict[DeliveryId, int] = {}
        self._seen: dict[DeliveryId, tuple[tuple[int, int], float]] = {}

    def claimed(self, delivery: Delivery) -> None:
        """Note an attempt of our own."""
        self._own[delivery.id] = delivery.attempt

    def let_go(self, delivery_id: DeliveryId) -> None:
        """Note that an attempt of our own has ended, and that this is written."""
        self._own.pop(delivery_id, None)

    def presumed_dead(self, delivery: Delivery) -> bool:
        """Return whether nobody sends a delivery any more; ask only about one that no task here works on."""
        if self._own.get(delivery.id) == delivery.attempt:
            return True  # our own attempt, whose end could not be written
        owner = delivery.owner
        if owner is None:
            return True
        lives = holder_lives(owner)
        if lives is False:
            return True
        me = holder_here(self._entrance, None)
        own_process = (owner.boot_id, owner.pid_namespace, owner.pid, owner.started) == (
            me.boot_id,
            me.pid_namespace,
            me.pid,
            me.started,
        )
        # another deliverer of this process may have it: it is alive, or left it behind, and only time can tell
        if lives and not own_process:
            return False
        return self._silent(delivery)

    def forget_others(self, deliveries: frozenset[DeliveryId]) -> None:
        """Keep what was seen of ``deliveries`` alone; the others are not being sent any more."""
        self._seen = {each: seen for each, seen in self._seen.items() if each in deliveries}

    def _silent(self, delivery: Delivery) -> bool:
        now = self._clock.monotonic()
        state = (delivery.attempt, sum(part.sent_at is not None for part in delivery.parts))
        seen = self._seen.get(delivery.id)
        if seen is None or seen[0] != state:
            self._seen[delivery.id] = (state, now)
            return False
        return now - seen[1] >= self._silence_s
