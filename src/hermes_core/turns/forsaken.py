"""Messages whose senders waited in a process that died: nobody is there to be answered, so they are taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.settling import settled
from hermes_hookspecs.operations import Withdraw

if TYPE_CHECKING:
    from hermes_core.turns.queue import QueueLook
    from hermes_core.turns.surroundings import Surroundings

__all__ = ["MOST_FORSAKEN", "take_back_forsaken"]

MOST_FORSAKEN = 8
"""Such messages that a queue may hold: a few are passed over for less than it costs to settle them."""


async def take_back_forsaken(around: Surroundings, look: QueueLook) -> None:
    """Settle the messages of dead waiters that a look has passed over, where they have become many."""
    if len(look.forsaken) > MOST_FORSAKEN:
        await settled(around.store.perform(Withdraw(ids=look.forsaken, now=around.clock.now())))
