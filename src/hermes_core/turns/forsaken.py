"""Messages whose senders waited in a process that died: nobody is there to be answered, so they are taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.settling import settled
from hermes_hookspecs.operations import Withdraw

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_core.turns.queue import QueueLook
    from hermes_core.turns.surroundings import Surroundings
    from hermes_hookspecs.ids import InboxId

__all__ = ["MOST_FORSAKEN", "take_back", "take_back_forsaken"]

MOST_FORSAKEN = 8
"""Such messages that a queue may hold: a few are passed over for less than it costs to settle them."""


async def take_back_forsaken(around: Surroundings, look: QueueLook) -> None:
    """Settle the messages of dead waiters that a look has passed over, where they have become many."""
    if len(look.forsaken) > MOST_FORSAKEN:
        await take_back(around, look.forsaken)


async def take_back(around: Surroundings, forsaken: Sequence[InboxId]) -> None:
    """Settle messages of dead waiters; nothing is written where there are none."""
    if forsaken:
        await settled(around.store.perform(Withdraw(ids=tuple(forsaken), now=around.clock.now())))
