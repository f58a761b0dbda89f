"""Messages that are put into the turn that runs, behind its newest tool result (busy policy ``steer``)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hermes_core.context.opening import user_draft
from hermes_core.settling import settled
from hermes_core.turns.control_work import barrier
from hermes_core.turns.presence import door
from hermes_core.turns.queue import same_address
from hermes_hookspecs.commands import STEERED
from hermes_hookspecs.errors import Conflict
from hermes_hookspecs.operations import Append

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_core.turns.surroundings import Surroundings
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.turns import Fence

__all__ = ["SteeringWheel"]

_MOST = 20


class SteeringWheel:
    """Takes waiting messages of the turn's own sender and place into the turn.

    What a sender says reaches the turn in the order in which it was said, and never before older messages of others:
    those directly at the head of the queue are taken, one write each time, and none that stands behind a command that
    is not done: it may be about what comes after. Only texts: an agent sees the attachments
    of the messages that its turn began with, so one that brings some waits, and what stands behind it waits, too.

    :param first: the message that the turn answers. shared: whether the sender's name is put before a text.
    :param only_marked: takes only what somebody sent with ``/steer``; else whatever waits (busy policy ``steer``).
    """

    def __init__(
        self, around: Surroundings, fence: Fence, first: InboxItem, *, shared: bool, only_marked: bool = False
    ) -> None:
        self._around = around
        self._fence = fence
        self._first = first
        self._shared = shared
        self._only_marked = only_marked
        self._texts: list[str] = []

    def take(self) -> Sequence[str]:
        """Return the texts that were put in since the last call."""
        taken, self._texts = self._texts, []
        return tuple(taken)

    async def turn(self) -> None:
        """Put in what waits; a message that somebody else took meanwhile is left to him.

        :raises LeaseLost: the turn is not ours any more.
        """
        items = await asyncio.wrap_future(self._around.store.submit_read(self._waiting))
        if not items:
            return
        drafts = tuple(user_draft(item, shared=self._shared) for item in items)
        operation = Append(fence=self._fence, drafts=drafts, now=self._around.clock.now())
        try:
            await settled(self._around.store.perform(operation))
        except Conflict:
            return
        self._texts += [draft.content if draft.sent is None else draft.sent for draft in drafts]

    def _waiting(self, reader: StoreReader) -> tuple[InboxItem, ...]:
        found: list[InboxItem] = []
        first = self._first
        command = barrier(reader, first.session_key, frozenset({door(first.entrance)}))
        for item in reader.waiting(self._fence.lineage_id, limit=_MOST):
            if item.attachments or not same_address(item, self._first) or (command is not None and item.id > command):
                break
            if self._only_marked and not _is_marked(item):
                break
            found.append(item)
        return tuple(found)


def _is_marked(item: InboxItem) -> bool:
    """Return whether a message was sent to be put into the turn that runs."""
    from hermes_core.inbox.identities import own_part

    return any(own_part(identity).startswith(f"{STEERED}:") for identity in item.identities)
