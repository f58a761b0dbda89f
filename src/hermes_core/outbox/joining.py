"""Answers that waited for the same place go out together, where the platform's adapter joins them.

Messages are scarce there, and so an answer that was put off takes along what waits behind it by now: in one
transaction, before anything of it is sent, so that whoever sends it after a crash sends the same. Answers of another
conversation go out by themselves: what is joined is erased, and kept, with the one that took it along.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from hermes_hookspecs.outbox import WAITING, address_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_core.outbox.hand import Hand
    from hermes_hookspecs.outbox import Delivery, PartDraft
    from hermes_hookspecs.ports.platform import Sender
    from hermes_hookspecs.ports.store import Store, StoreReader
    from hermes_hookspecs.source import SessionSource

__all__ = ["join_waiting"]

_LOOKED_AT: Final = 1000
"""Waiting deliveries, of all addresses, among which those behind one are looked for."""


async def join_waiting(hand: Hand, sender: Sender, store: Store) -> None:
    """Let a delivery that was put off take along those that wait behind it, as far as its sender joins them."""
    own: Callable[[Sequence[str], SessionSource], tuple[int, Sequence[PartDraft]]] | None
    own = getattr(sender, "join", None)
    delivery = hand.delivery
    if own is None or delivery.attempt < 2 or delivery.uncertain or delivery.files:
        return
    behind = await asyncio.wrap_future(store.submit_read(_behind(delivery)))
    if not behind:
        return
    count, parts = own((_unsent(delivery), *(each.text for each in behind)), delivery.target)
    taken = behind[: max(0, count - 1)]
    if taken and parts:
        text = "\n\n".join((delivery.text, *(each.text for each in taken)))
        await hand.join(tuple(each.id for each in taken), text, tuple(parts))


def _unsent(delivery: Delivery) -> str:
    """Return what is to be sent of a delivery still."""
    if all(part.sent_at is None for part in delivery.parts):
        return delivery.text
    return "\n\n".join(part.text for part in delivery.parts if part.sent_at is None)


def _behind(delivery: Delivery) -> Callable[[StoreReader], Sequence[Delivery]]:
    """Return what reads those of its conversation right behind a delivery, never tried to send, oldest first."""

    def read(reader: StoreReader) -> Sequence[Delivery]:
        address = address_of(delivery.target)
        waiting = reader.deliveries(statuses=(WAITING,), limit=_LOOKED_AT)
        found = []
        for each in sorted(waiting, key=lambda one: one.id):
            if each.id > delivery.id and address_of(each.target) == address:
                if each.attempt or each.files or each.lineage_id != delivery.lineage_id:
                    break
                found.append(each)
        return found

    return read
