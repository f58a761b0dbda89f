"""What those are told whose turn somebody else stops: one outcome per message, also where there is no answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.turns.recovery import notice_for
from hermes_hookspecs.inbox import CLAIMED

if TYPE_CHECKING:
    from hermes_hookspecs.ids import LineageId, SessionKey
    from hermes_hookspecs.outbox import DeliveryDraft
    from hermes_hookspecs.ports.store import StoreReader

__all__ = ["STOPPED_TEXT", "stop_notices"]

STOPPED_TEXT = "The work on your message was stopped. Send a message to go on."


def stop_notices(reader: StoreReader, lineage_id: LineageId, by: SessionKey | None) -> tuple[DeliveryDraft, ...]:
    """Return the notice for the messages of the turn that runs, where their sender does not wait.

    :param by: key of whoever stops it: in the same chat the reply to the command says it already.
    """
    turn = reader.active_turn(lineage_id)
    found = [] if turn is None else [reader.inbox_item(inbox_id) for inbox_id in turn.inbox_ids]
    owed = [item for item in found if item is not None and item.status == CLAIMED and item.waiter is None]
    if turn is None or not owed or owed[0].session_key == by:
        return ()
    return (notice_for(turn, owed, STOPPED_TEXT),)
