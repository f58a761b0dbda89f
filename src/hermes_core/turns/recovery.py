"""What becomes of the messages of a turn that died: they are tried again, or their sender is told.

A retry is bounded, and never blind: it happens only where every call without a result may be repeated, or did not run
since nobody had approved it or one before it had no result, and at most ``gateway.recovery_attempts`` times. Otherwise
the conversation waits for its user, with a notice that stands in the answer's own place of the outbox, so that there is
one outcome per message. Messages whose sender waited in the same process died with it: nobody is there to be answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.approvals import APPROVED
from hermes_hookspecs.inbox import CLAIMED
from hermes_hookspecs.messages import KIND_RECOVERY, USER, MessageDraft, may_have_begun, preview_of
from hermes_hookspecs.outbox import NOTICE, DeliveryDraft, delivery_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.ids import InboxId, LineageId
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.messages import ToolCall
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.turns import Turn

__all__ = ["DeadTurn", "Verdict", "dead_turn", "notice_for", "recovery_note", "verdict_on"]

REPEATABLE = ("read", "idempotent")
"""Effects of calls whose repetition changes nothing."""


@attrs.frozen(kw_only=True)
class Verdict:
    """What is written with the end of a dead turn.

    Attributes:
        again: its messages that wait once more, in their old place. deliveries: what the senders of others are told.
    """

    again: frozenset[InboxId] = frozenset()
    deliveries: tuple[DeliveryDraft, ...] = ()


@attrs.frozen(kw_only=True)
class DeadTurn:
    """A turn without a living holder, its messages, and what is to become of them."""

    turn: Turn
    items: tuple[InboxItem, ...]
    verdict: Verdict

    @property
    def again(self) -> tuple[InboxItem, ...]:
        """Return the messages that wait once more, oldest first."""
        return tuple(item for item in self.items if item.id in self.verdict.again)


def dead_turn(reader: StoreReader, lineage_id: LineageId, recovery_attempts: int) -> DeadTurn | None:
    """Return the active turn of a lineage whose holder is dead, with its verdict; ``None`` where none is active."""
    turn = reader.active_turn(lineage_id)
    if turn is None:
        return None
    found = [reader.inbox_item(inbox_id) for inbox_id in turn.inbox_ids]
    # What was steered into the turn is in its transcript and done; it is not claimed any more.
    items = tuple(item for item in found if item is not None and item.status == CLAIMED)
    unapproved = {one.call_id for one in reader.approvals(turn_id=turn.id) if one.status != APPROVED}
    begun = may_have_begun(reader.open_calls(lineage_id))
    unknown = [call for call in begun if call.id not in unapproved]  # the others never ran
    verdict = verdict_on(turn, items, unknown, recovery_attempts)
    return DeadTurn(turn=turn, items=items, verdict=verdict)


def verdict_on(
    turn: Turn, items: Sequence[InboxItem], open_calls: Sequence[ToolCall], recovery_attempts: int
) -> Verdict:
    """Return what becomes of the messages of a turn that will not end by itself.

    :param open_calls: those without a result that may have run.
    """
    owed = [item for item in items if item.waiter is None]
    if not owed:
        return Verdict()
    blind = [call for call in open_calls if call.effect not in REPEATABLE]
    if not blind and turn.attempt <= recovery_attempts:
        return Verdict(again=frozenset(item.id for item in owed))
    return Verdict(deliveries=(notice_for(turn, owed, _parked(turn, blind)),))


def _parked(turn: Turn, blind: Sequence[ToolCall]) -> str:
    if blind:
        names = ", ".join(dict.fromkeys(call.name for call in blind))
        return (
            f"The work on your message was interrupted while {names} ran, and whether that took effect is not known. "
            "It is not repeated by itself: look, then send a message to go on."
        )
    tries = "once" if turn.attempt == 1 else f"{turn.attempt} times"
    return f"The work on your message was interrupted {tries}. Send a message to go on."


def notice_for(turn: Turn, items: Sequence[InboxItem], text: str) -> DeliveryDraft:
    """Return a notice in the place of the answer to these messages; it goes where the newest of them came from."""
    oldest, newest = items[0], items[-1]
    return DeliveryDraft(
        key=delivery_key(turn.lineage_id, oldest.id),
        target=newest.source,
        text=text,
        session_key=oldest.session_key,
        lineage_id=turn.lineage_id,
        turn_id=turn.id,
        inbox_id=oldest.id,
        kind=NOTICE,
    )


def recovery_note(items: Sequence[InboxItem], now: int) -> MessageDraft | None:
    """Return the row with which a retry begins; ``None`` for messages that no turn has begun with."""
    tried = max((item.attempts for item in items), default=0)
    if not tried:
        return None
    text = (
        f"[Attempt {tried + 1} to answer “{preview_of(items[0].text)}”: the one before was interrupted. What it "
        "finished stands above and is not to be done again.]"
    )
    return MessageDraft(role=USER, content=text, timestamp=now, kind=KIND_RECOVERY)
