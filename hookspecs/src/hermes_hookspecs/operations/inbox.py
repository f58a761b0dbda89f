"""Writes of the inbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.operations.operation import Operation

if TYPE_CHECKING:
    from hermes_hookspecs.ids import InboxId
    from hermes_hookspecs.inbox import (
        AcceptResult,  # noqa: F401 - named in a subscript, which linters do not read
        ControlOutcome,  # noqa: F401 - as above
        InboxDraft,
    )
    from hermes_hookspecs.messages import Attachment
    from hermes_hookspecs.state import StateUpdate

__all__ = [
    "Accept",
    "Attach",
    "Control",
    "Withdraw",
]


@attrs.frozen(kw_only=True)
class Accept(Operation["tuple[AcceptResult, ...]"]):
    """Store a batch and the adapter's state in one transaction; results in order of ``drafts``.

    A draft with a known identity is a duplicate, also of an earlier draft of the same batch; its other identities are
    remembered with the row that was there. Rows of a key whose route leads to a lineage get it at once. A full queue
    refuses the single draft, visibly; so does a busy lineage where the draft asks for that
    (``InboxDraft.only_if_idle``).

    Deliveries that await an inbound message from the address of an accepted draft are due from ``now``. One that is
    being sent there will not await another message when its attempt is deferred (:class:`DeferDelivery`). A draft of
    kind ``internal`` is no message in this sense.

    Attributes:
        max_waiting: most pending messages of one key, and most pending control rows of it. state: cursor and other
            state of the adapter.
    """

    drafts: tuple[InboxDraft, ...]
    now: int
    max_waiting: int = 100
    state: tuple[StateUpdate, ...] = ()


@attrs.frozen(kw_only=True)
class Attach(Operation[bool]):
    """Write down what was fetched of a message that waits; return whether it still waited. Idempotent.

    Attributes:
        attachments: all of the row's, in their order: with hash and size, or with the text that stands for one that
            there is no use in fetching again.
    """

    inbox_id: InboxId
    attachments: tuple[Attachment, ...]
    now: int


@attrs.frozen(kw_only=True)
class Withdraw(Operation[int]):
    """Take back pending rows whose entrance leaves; return how many were still pending."""

    ids: tuple[InboxId, ...]
    now: int


@attrs.frozen(kw_only=True)
class Control(Operation["ControlOutcome"]):
    """Run the effect of a control row and mark the row *applied*, in one transaction; exactly once.

    A second call with the same row runs nothing and answers what the first did. :class:`Deliver` with the reply makes
    the row done; a row without a reply to send is settled by ``settle``.

    Attributes:
        effect: ``ReleaseRoute``, ``BindRoute``, ``Branch``, ``Revoke``, ``Rename``, ``SetFlags``, ``Compress``,
            ``Hide``, ``Withdraw`` or ``AnswerApproval``; ``None`` for a command that changes nothing here.
        settle: nothing will be delivered for it: the row is done at once.

    :raises Conflict: the row is no control row, or was withdrawn or superseded. :raises HermesError: of the effect;
        then the row waits as before.
    """

    inbox_id: InboxId
    effect: Operation[object] | None
    now: int
    settle: bool = False
