"""Whether the last message of a conversation got its answer, and who will give it where it did not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli.safe_text import safe_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.ports.app import App
    from hermes_hookspecs.turns import Turn

__all__ = ["RUNNING", "state_word", "what_next"]

RUNNING = "running in "
"""How ``App.turn_state`` begins where a living process is at work."""
_REPEATABLE = ("read", "idempotent")
"""Effects of calls whose repetition changes nothing."""


def state_word(state: str) -> str:
    """Return what ``App.turn_state`` says in one word: ``running``, ``interrupted``, ``""``."""
    return state.partition(" ")[0]


def what_next(app: App, lineage_id: LineageId, turns: Sequence[Turn], state: str) -> str:
    """Return one line for people when the last message has no answer: who will give it; ``""`` otherwise.

    A message from a chat platform is tried again, or its sender is told, by whoever serves its entrance; one whose
    sender waited in the same call has to be sent again.

    :param turns: of the conversation, oldest first.
    :param state: what ``App.turn_state`` says: a turn of a living process is still to come to its end.
    """
    if not turns or state.startswith(RUNNING):
        return ""
    from hermes_hookspecs.turns import ACTIVE, DONE, FAILED, INTERRUPTED, STOPPED  # a list needs none of them

    ends = {FAILED: "failed", STOPPED: "was stopped", INTERRUPTED: "was interrupted", ACTIVE: "was interrupted"}
    last = turns[-1]
    if last.outcome == DONE:
        return ""
    reason = f" ({safe_line(last.reason)})" if last.reason else ""
    end = ends.get(last.outcome, last.outcome)
    return f"The last turn {end}{reason}; {_next(app, lineage_id, last)}."


def _next(app: App, lineage_id: LineageId, turn: Turn) -> str:
    from hermes_hookspecs.inbox import CLAIMED, PENDING
    from hermes_hookspecs.turns import ACTIVE

    found = [app.store.inbox_item(inbox_id) for inbox_id in turn.inbox_ids]
    owed = [item for item in found if item is not None and item.waiter is None]
    if not owed:
        return "send the message again to have it answered"
    entrance = safe_line(str(owed[0].entrance))
    if any(item.status == PENDING for item in owed):
        return f"the message is answered again when somebody serves {entrance}"
    if turn.outcome == ACTIVE and any(item.status == CLAIMED for item in owed):
        if _is_retried(app, lineage_id, turn):
            return f"the message is answered again when somebody serves {entrance}"
        return f"it is not tried again by itself, and its sender is told so when somebody serves {entrance}"
    return f"{_told(app, lineage_id, owed[0])}; a new message from there goes on"


def _is_retried(app: App, lineage_id: LineageId, turn: Turn) -> bool:
    """Return whether recovery will try again a turn that nobody has closed yet."""
    from hermes_hookspecs.approvals import APPROVED
    from hermes_hookspecs.messages import may_have_begun

    attempts = app.setting("gateway", "recovery_attempts")
    unapproved = {one.call_id for one in app.store.approvals(turn_id=turn.id) if one.status != APPROVED}
    begun = [call for call in may_have_begun(app.store.open_calls(lineage_id)) if call.id not in unapproved]
    blind = any(call.effect not in _REPEATABLE for call in begun)
    return not blind and isinstance(attempts, int) and turn.attempt <= attempts


def _told(app: App, lineage_id: LineageId, item: InboxItem) -> str:
    """Return whether the sender of a message was told, by what stands in the place of its answer."""
    from hermes_hookspecs.outbox import JOINED, OPEN_STATES, SENT, delivery_key

    found = app.store.delivery_by_key(delivery_key(lineage_id, item.id))
    if found is None:
        return "it is not tried again by itself"
    if found.status == SENT:
        return "its sender was told"
    if found.status in OPEN_STATES:
        return f"its sender is told (delivery {found.id})"
    if found.status == JOINED:
        return f"what its sender is told waited: {found.error}"
    return f"its sender could not be told (delivery {found.id})"
