"""Writes of the outbox. A write of the attempt that sends names that attempt, and is refused once it is another's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.operations.operation import Operation

if TYPE_CHECKING:
    from hermes_hookspecs.ids import DeliveryId, InboxId
    from hermes_hookspecs.outbox import (
        Delivery,  # noqa: F401 - as below
        DeliveryDraft,
        OpenedThread,
        PartDraft,
        StoredPart,  # noqa: F401 - named in a subscript, which linters do not read
    )
    from hermes_hookspecs.state import StateUpdate
    from hermes_hookspecs.turns import LeaseHolder

__all__ = [
    "ClaimDelivery",
    "DeferDelivery",
    "Deliver",
    "DropDelivery",
    "FailDelivery",
    "JoinDeliveries",
    "MarkSent",
    "RetryDelivery",
    "SplitDelivery",
]


@attrs.frozen(kw_only=True)
class Deliver(Operation["tuple[DeliveryId, ...]"]):
    """Store deliveries that no turn brings (a command's reply, a notice); return their rows in order.

    A known key is not stored again: its row is returned.

    Attributes:
        settle: control row whose reply this is: from :data:`~hermes_hookspecs.inbox.PENDING` or
            :data:`~hermes_hookspecs.inbox.APPLIED` to done, in the same transaction.
    """

    drafts: tuple[DeliveryDraft, ...]
    now: int
    settle: InboxId | None = None


@attrs.frozen(kw_only=True)
class ClaimDelivery(Operation["Delivery | None"]):
    """Take a delivery to send it; ``None`` when somebody else has it by now, or it has to wait.

    Claimable is a row without an older open one at its address that is *waiting*, due, and awaits no inbound message;
    or is *sending* with ``presumed_dead``. The attempt counts up; of a row that was *sending* and is split, the first
    unsent part becomes uncertain.

    Attributes:
        expected_attempt: attempts as the caller saw them; other ones mean that somebody was quicker.
    """

    delivery_id: DeliveryId
    owner: LeaseHolder
    expected_attempt: int
    now: int
    presumed_dead: bool = False


@attrs.frozen(kw_only=True)
class SplitDelivery(Operation["tuple[StoredPart, ...]"]):
    """Store the parts of a claimed delivery, each with its key, before the first of them is sent.

    A delivery that has parts keeps them: they are returned.

    :raises Conflict: the attempt is not the row's.
    """

    delivery_id: DeliveryId
    attempt: int
    parts: tuple[PartDraft, ...]
    now: int


@attrs.frozen(kw_only=True)
class JoinDeliveries(Operation["Delivery | None"]):
    """Let deliveries that wait behind a claimed one go out with it; ``None`` where that cannot be, and nothing happens.

    What is unsent of the claimed one is replaced by ``parts``, with keys of their own; the others are *joined*, and
    settled. It can be where no unsent part may have gone out, nothing has files, and ``joined`` are the rows directly
    behind the claimed one at its address, in order, each of its lineage, waiting and never claimed: erasing another
    lineage neither leaves its text here nor takes what is said here along.

    Attributes:
        joined, parts: at least one. text: what the claimed one says from now on, the others' texts in it.

    :raises Conflict: the attempt is not the row's.
    """

    delivery_id: DeliveryId
    attempt: int
    joined: tuple[DeliveryId, ...]
    text: str
    parts: tuple[PartDraft, ...]
    now: int


@attrs.frozen(kw_only=True)
class MarkSent(Operation["Delivery"]):
    """Write down that a part went out; with the last one the delivery is *sent*.

    Attributes:
        state: what the adapter has to remember of it. opened: the thread that it opened; a command's reply opens
            none for its lineage, which the command may have left.

    :raises Conflict: the attempt is not the row's, or the part was marked already by another attempt.
    """

    delivery_id: DeliveryId
    attempt: int
    index: int
    now: int
    platform_message_id: str | None = None
    possible_repeat: bool = False
    state: tuple[StateUpdate, ...] = ()
    opened: OpenedThread | None = None


@attrs.frozen(kw_only=True)
class DeferDelivery(Operation["Delivery"]):
    """Put a claimed delivery back to *waiting*.

    Attributes:
        due_at: not before. awaits_inbound: only after the next message from its address was accepted; one that was
            accepted since the claim is that message, and the row awaits nothing.
        failed: counts as a failure. maybe_sent: the part in hand may have gone out.

    :raises Conflict: the attempt is not the row's.
    """

    delivery_id: DeliveryId
    attempt: int
    now: int
    due_at: int
    error: str
    awaits_inbound: bool = False
    failed: bool = True
    maybe_sent: bool = False


@attrs.frozen(kw_only=True)
class FailDelivery(Operation["Delivery"]):
    """Give a claimed delivery up for good; those behind it go on.

    :raises Conflict: the attempt is not the row's.
    """

    delivery_id: DeliveryId
    attempt: int
    now: int
    error: str
    maybe_sent: bool = False


@attrs.frozen(kw_only=True)
class RetryDelivery(Operation["Delivery"]):
    """Let a delivery that failed, was dropped or waits be sent as soon as its turn comes; failures count anew.

    Parts that went out stay sent; of a row that was *sending* and is split, the first unsent one becomes uncertain.

    Attributes:
        presumed_dead: attempt of a row that is *sending* whose owner is known to be dead.

    :raises Conflict: it is sent, being sent, or joined. :raises DeliveryNotFound: no such row.
    """

    delivery_id: DeliveryId
    now: int
    presumed_dead: int | None = None


@attrs.frozen(kw_only=True)
class DropDelivery(Operation["Delivery"]):
    """Never send a delivery; those behind it go on.

    Attributes:
        presumed_dead: attempt of a row that is *sending* whose owner is known to be dead.

    :raises Conflict: it is sent, being sent, or joined. :raises DeliveryNotFound: no such row.
    """

    delivery_id: DeliveryId
    now: int
    presumed_dead: int | None = None
