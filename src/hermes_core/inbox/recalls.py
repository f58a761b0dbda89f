"""A message that its sender took back: withdrawn while it waits; one that is being answered is left, and that is told.

The identity of the recalled message is taken in either case, so that a recall that overtakes its message keeps it out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_core.inbox.door import entrance_of
from hermes_core.inbox.identities import identities_of
from hermes_hookspecs.inbox import CLAIMED, CONTROL, AcceptResult, InboxDraft
from hermes_hookspecs.operations import Accept, Deliver, Withdraw
from hermes_hookspecs.outbox import NOTICE, DeliveryDraft, delivery_key

if TYPE_CHECKING:
    from hermes_core.sessions.desk import SessionDesk
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.inbox import MessageEvent
    from hermes_hookspecs.ports.store import Store

__all__ = ["take_back"]

_TOLD = "That message is being answered already. /stop ends that."


async def take_back(event: MessageEvent, *, store: Store, clock: Clock, desk: SessionDesk) -> AcceptResult:
    """Withdraw the message that ``event`` recalls; idempotent. Return its row.

    :raises KeyBuildError: the event does not say whose it is. :raises StorageError: nothing is certain; try it again.
    """
    source, now = desk.at_home(event.source), clock.now()
    key = desk.key(source)
    (identity,) = identities_of(attrs.evolve(event, identities=(event.recalls,)))
    draft = InboxDraft(
        session_key=key,
        source=source,
        entrance=entrance_of(source),
        text="",
        accepted_at=now,
        identities=(identity,),
        kind=CONTROL,  # what comes to an empty command, should nobody come to withdraw it: nothing
    )
    (found,) = await store.perform(Accept(drafts=(draft,), now=now))
    if found.id is None:  # so many commands wait that not even this was taken: the message, if it came, is there
        return AcceptResult(id=None, refused=found.refused)
    withdrawn = await store.perform(Withdraw(ids=(found.id,), now=now))
    if found.duplicate and not withdrawn:
        item = store.inbox_item(found.id)
        if item is not None and item.status == CLAIMED:
            notice = DeliveryDraft(
                key=delivery_key(key, f"recalled:{identity}"), target=source, text=_TOLD, session_key=key, kind=NOTICE
            )
            await store.perform(Deliver(drafts=(notice,), now=now))
    return found
