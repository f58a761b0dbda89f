"""The outbox for people: what is on its way, what failed, and what becomes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.leases import holder_lives
from hermes_core.outbox.topics import outbox_topic
from hermes_hookspecs.errors import DeliveryNotFound
from hermes_hookspecs.operations import DropDelivery, RetryDelivery
from hermes_hookspecs.outbox import SENDING
from hermes_hookspecs.source import Entrance

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ids import DeliveryId
    from hermes_hookspecs.outbox import Delivery
    from hermes_hookspecs.ports.store import Store

__all__ = ["OutboxDesk"]


class OutboxDesk:
    """Answers on their way, for people (:class:`~hermes_hookspecs.ports.desks.Outbox`). Every method blocks.

    :param store: returns the open store. wake: wakes who waits for a topic, here or in other processes.
    """

    def __init__(self, store: Callable[[], Store], clock: Clock, wake: Callable[[str], None]) -> None:
        self._store = store
        self._clock = clock
        self._wake = wake

    def list(self, *, statuses: Sequence[str] = (), limit: int = 100) -> Sequence[Delivery]:
        """Return deliveries with one of these statuses (all when empty), newest first."""
        return self._store().deliveries(statuses=statuses, limit=limit)

    def retry(self, delivery_id: DeliveryId) -> Delivery:
        """Let a delivery be sent as soon as its turn comes; parts that went out stay sent.

        One whose sender died is taken from it.

        :raises Conflict: it is sent, or being sent. :raises DeliveryNotFound: no such row.
        """
        store, dead = self._store(), self._dead_attempt(delivery_id)
        return self._told(
            store.apply(RetryDelivery(delivery_id=delivery_id, now=self._clock.now(), presumed_dead=dead))
        )

    def drop(self, delivery_id: DeliveryId) -> Delivery:
        """Never send a delivery; those behind it go on. One whose sender died may be dropped.

        :raises Conflict: it is sent, or being sent. :raises DeliveryNotFound: no such row.
        """
        store, dead = self._store(), self._dead_attempt(delivery_id)
        return self._told(store.apply(DropDelivery(delivery_id=delivery_id, now=self._clock.now(), presumed_dead=dead)))

    def _dead_attempt(self, delivery_id: DeliveryId) -> int | None:
        """Return the attempt that sends a delivery although its process is gone, ``None`` where none does."""
        found = self._store().delivery(delivery_id)
        if found is None:
            raise DeliveryNotFound(delivery_id)
        return found.attempt if self.has_dead_sender(found) else None

    def has_dead_sender(self, delivery: Delivery) -> bool:
        """Return whether a delivery is being sent by a process that is known to be gone."""
        return delivery.status == SENDING and delivery.owner is not None and holder_lives(delivery.owner) is False

    def _told(self, delivery: Delivery) -> Delivery:
        self._wake(outbox_topic(Entrance(delivery.target.platform, delivery.target.account_id)))
        return delivery
