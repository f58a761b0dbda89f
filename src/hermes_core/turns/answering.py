"""Where the answer of a turn goes, and what becomes of its messages when it does not come to one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from hermes_core.turns.recovery import Verdict, notice_for, verdict_on
from hermes_hookspecs.outbox import DeliveryDraft, delivery_key
from hermes_hookspecs.turns import FAILED, INTERRUPTED, STOPPED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.messages import Attachment, ToolCall
    from hermes_hookspecs.turns import Turn

__all__ = ["Answering", "ToTheOutbox", "ToTheWaiter"]


class Answering(Protocol):
    """How a turn's messages get their answer."""

    when_cancelled: tuple[str, str]
    """Outcome and reason of a turn whose task is cancelled."""
    waits: bool
    """Whether somebody hears of it in the same call when the end of a turn cannot be stored."""

    def answer(self, turn: Turn, text: str, files: tuple[Attachment, ...]) -> tuple[DeliveryDraft, ...]:
        """Return what is stored for delivery together with the end of a turn that is done."""
        ...

    def broken_off(self, turn: Turn, outcome: str, open_calls: Sequence[ToolCall]) -> Verdict:
        """Return what becomes of the messages of a turn that did not end by itself."""
        ...


class ToTheWaiter:
    """The sender waits in the same call and takes the answer, or the error, from there."""

    when_cancelled = (STOPPED, "cancelled")
    waits = True

    def answer(self, turn: Turn, text: str, files: tuple[Attachment, ...]) -> tuple[DeliveryDraft, ...]:
        """Return nothing: nobody has to be sent anything."""
        return ()

    def broken_off(self, turn: Turn, outcome: str, open_calls: Sequence[ToolCall]) -> Verdict:
        """Return the empty verdict: the caller is told by an exception."""
        return Verdict()


class ToTheOutbox:
    """The answer is a delivery to where the messages came from.

    A process that is asked to leave cancels its turns: they are interrupted, as if it had died, and the next one that
    serves the entrance goes on by the rules of recovery.

    :param items: the messages, oldest first. recovery_attempts: retries of an interrupted turn.
    """

    when_cancelled = (INTERRUPTED, "its process was asked to leave")
    waits = False

    def __init__(self, items: Sequence[InboxItem], recovery_attempts: int) -> None:
        self._items = tuple(items)
        self._recovery_attempts = recovery_attempts

    def answer(self, turn: Turn, text: str, files: tuple[Attachment, ...]) -> tuple[DeliveryDraft, ...]:
        """Return the answer's delivery: one outcome for the oldest message, sent where the newest came from."""
        if not text and not files:
            return ()
        oldest, newest = self._items[0], self._items[-1]
        return (
            DeliveryDraft(
                key=delivery_key(turn.lineage_id, oldest.id),
                target=newest.source,
                text=text,
                session_key=oldest.session_key,
                lineage_id=turn.lineage_id,
                turn_id=turn.id,
                inbox_id=oldest.id,
                files=files,
            ),
        )

    def broken_off(self, turn: Turn, outcome: str, open_calls: Sequence[ToolCall]) -> Verdict:
        """Return a retry or a notice for an interrupted turn, a notice for one that failed."""
        if outcome == INTERRUPTED:
            return verdict_on(turn, self._items, open_calls, self._recovery_attempts)
        if outcome == FAILED:
            text = f"This could not be answered; what went wrong is noted in turn {turn.id}. Send it again to retry."
            return Verdict(deliveries=(notice_for(turn, self._items, text),))
        return Verdict()
