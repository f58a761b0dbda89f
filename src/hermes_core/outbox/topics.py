"""Who is woken when there is something to deliver, and what the deliverer needs of a waker."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from hermes_hookspecs.source import Entrance
    from hermes_hookspecs.turns import LeaseHolder

__all__ = ["DeliveryWaiter", "DeliveryWaker", "listening", "outbox_topic"]


def outbox_topic(entrance: Entrance) -> str:
    """Return the topic that is woken when a delivery of ``entrance`` was stored, retried or dropped.

    A terminal of an account has the topic of the account: deliveries belong to accounts.
    """
    from hermes_hookspecs.source import Entrance as Door

    return f"outbox:{Door(entrance.platform, entrance.account_id)}"


class DeliveryWaiter(Protocol):
    """One wait of one task."""

    def wake(self) -> None:
        """Wake the task; from any thread."""
        ...

    def watch(self, holder: LeaseHolder | None) -> None:
        """Wake, too, when the process of ``holder`` ends; the one watched before is let go."""
        ...

    async def wait(self, timeout_s: float) -> bool:
        """Return ``True`` when something happened since the last wait, ``False`` after ``timeout_s`` seconds."""
        ...


W = TypeVar("W", bound=DeliveryWaiter)


class DeliveryWaker(Protocol[W]):
    """What wakes the deliverer: :class:`~hermes_core.turns.waker.LocalWaker`, seen from below."""

    def enter(self, topic: str) -> W:
        """Return a waiter that hears every wake from now on."""
        ...

    def leave(self, waiter: W) -> None:
        """Let go of a waiter."""
        ...


def listening(waker: DeliveryWaker[W]) -> Callable[[str], AbstractContextManager[DeliveryWaiter]]:
    """Return a function of a topic: in its ``with`` block there is a waiter, which is let go behind it."""

    @contextmanager
    def listen(topic: str) -> Iterator[DeliveryWaiter]:
        waiter = waker.enter(topic)
        try:
            yield waiter
        finally:
            waker.leave(waiter)

    return listen
