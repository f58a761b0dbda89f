"""Writes of turns, all of them behind the lease."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import attrs

from hermes_hookspecs.operations.operation import Operation

if TYPE_CHECKING:
    from hermes_hookspecs.audit import AuditEntry
    from hermes_hookspecs.ids import InboxId, LineageId, MessageId, TurnId
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.messages import Message, MessageDraft
    from hermes_hookspecs.outbox import DeliveryDraft
    from hermes_hookspecs.sessions import Session
    from hermes_hookspecs.turns import Fence, Lease, LeaseHolder, LeaseStamp, Turn, Usage

__all__ = [
    "Append",
    "Begin",
    "BeginResult",
    "Begun",
    "Busy",
    "Changed",
    "Finish",
    "Finished",
    "NotYourTurn",
    "NothingWaiting",
    "RecordUsage",
    "Renew",
    "Revoke",
    "Snapshot",
]


@attrs.frozen(kw_only=True)
class Snapshot:
    """What a session freezes: model, its configuration (JSON) and the system text.

    The first one is kept. Where that had no configuration, a later one adds that alone.
    """

    model: str | None = None
    model_config: str | None = None
    system_prompt: str | None = None


@attrs.frozen(kw_only=True)
class Begun:
    """The lease is taken, the turn is active, its user rows are stored.

    Attributes:
        items: what it answers. rows: their user rows. session: the tip.
        interrupted: the dead turn that was found and closed. version: of the lineage now.
    """

    turn: Turn
    lease: Lease
    session: Session
    items: tuple[InboxItem, ...]
    rows: tuple[Message, ...]
    interrupted: Turn | None
    version: int


@attrs.frozen(kw_only=True)
class NotYourTurn:
    """An older row waits, and somebody else serves its entrance."""

    item: InboxItem


@attrs.frozen(kw_only=True)
class Busy:
    """Somebody holds the lease."""

    lease: Lease


@attrs.frozen(kw_only=True)
class Changed:
    """The rows to be claimed are no longer pending, or no longer of this lineage: look again."""


@attrs.frozen(kw_only=True)
class NothingWaiting:
    """No row to claim."""


BeginResult = Begun | NotYourTurn | Busy | Changed | NothingWaiting


@attrs.frozen(kw_only=True)
class Begin(Operation[BeginResult]):
    """Take the lease, close a dead turn found there, claim rows and store their user rows: one transaction.

    The lease is taken when it is free, or when its stamp equals ``presumed_dead``; else :class:`Busy`. An active
    turn found then is dead by definition: it ends as ``interrupted``, each unanswered call gets a synthetic result
    (:data:`~hermes_hookspecs.messages.KIND_INTERRUPTED`), one closing assistant row follows, its inbox rows are done;
    those in ``again`` wait once more, in their old place, before the oldest row is looked for. Wherever a turn ends
    with a call that was asked for and not approved, the synthetic result says that it did not run
    (:data:`~hermes_hookspecs.messages.NOT_APPROVED_RESULT`), and the audit that it was refused. So it is with a call
    that was to begin behind one without a result (:func:`~hermes_hookspecs.messages.may_have_begun`,
    :data:`~hermes_hookspecs.messages.NOT_BEGUN_RESULT`).

    A draft whose inbox row was begun before finds its user row stored; ``note`` then follows the user rows, once.

    A message from another place than the lineage's room makes it private (``Lineage.room``).

    It need not outlast a power cut (``is_kept``): its holder is gone then, its messages wait as before, and whatever
    the turn does outside follows a step, which is kept together with it.

    Attributes:
        drafts: user rows to store, one per claimed inbox row (``inbox_id`` set), oldest first. The first must be
            the lineage's oldest pending row, rows in ``passed_over`` aside; else :class:`NotYourTurn`. All have one
            key, one participant and one address (:func:`~hermes_hookspecs.outbox.address_of`). Empty with
            ``maintenance``: a turn without an agent (undo, compress, ...) that claims nothing.
        passed_over: pending rows whose entrance has no live owner; they keep their place.
        holder: this process; ``holder.entrance`` and ``holder.session_key`` go into the turn.
        ttl_ms: for the displayed expiry. snapshot: written where the session has none yet.
        touch: moves the lineage's last activity to ``now``.
        again: inbox rows of the dead turn that are to be answered after all. note: the row that marks a retry
            (:data:`~hermes_hookspecs.messages.KIND_RECOVERY`), stored only where a user row is there already.
        deliveries: what the dead turn's other rows are told, stored with its end.

    :raises SessionNotFound: no such lineage.
    """

    is_kept: ClassVar[bool] = False

    lineage_id: LineageId
    turn_id: TurnId
    holder: LeaseHolder
    now: int
    ttl_ms: int
    drafts: tuple[MessageDraft, ...] = ()
    passed_over: frozenset[InboxId] = frozenset()
    presumed_dead: LeaseStamp | None = None
    snapshot: Snapshot | None = None
    maintenance: bool = False
    touch: bool = True
    again: frozenset[InboxId] = frozenset()
    note: MessageDraft | None = None
    deliveries: tuple[DeliveryDraft, ...] = ()


@attrs.frozen(kw_only=True)
class Renew(Operation["Lease"]):
    """Say that the holder lives; after a power cut it does not, so that this need not be kept.

    :raises LeaseLost: the token is no longer the lineage's.
    """

    is_kept: ClassVar[bool] = False

    fence: Fence
    now: int
    ttl_ms: int


@attrs.frozen(kw_only=True)
class Append(Operation["tuple[MessageId, ...]"]):
    """Store rows of the running turn; returns their ids in order. A step is a sign of life: it counts as a renewal.

    A result must answer a call of the newest assistant row with calls, once. A draft with an ``inbox_id`` is a
    steered message: its row must wait in this lineage, is done with this, and belongs to the turn from now on. What
    ``audit`` says of calls is noted as by :class:`~hermes_hookspecs.operations.RecordAudit`, ``usage`` and
    ``side_usage`` are stored as by :class:`Finish`, in the same transaction.

    :raises LeaseLost: the token is no longer the lineage's; nothing was written.
    :raises IllegalMessage: a row would break the transcript; nothing was written.
    :raises Conflict: a steered message does not wait (any more), or not here; nothing was written.
    """

    fence: Fence
    drafts: tuple[MessageDraft, ...]
    now: int
    audit: tuple[AuditEntry, ...] = ()
    usage: tuple[Usage, ...] = ()
    side_usage: tuple[Usage, ...] = ()


@attrs.frozen(kw_only=True)
class Finished:
    """What a finish wrote: ids of its last rows in order, the lineage's version."""

    message_ids: tuple[MessageId, ...]
    version: int


@attrs.frozen(kw_only=True)
class Finish(Operation[Finished]):
    """Store the last rows and the usage, settle the inbox rows, end the turn and free the lease.

    Calls that are still unanswered get synthetic results before the last rows.

    Attributes:
        outcome: one of :data:`~hermes_hookspecs.turns.OUTCOMES`. reason: one line, ``""`` for ``done``.
        deliveries: the answer, for whoever does not wait in the same call.
        again: inbox rows of the turn that wait once more, in their old place (a process that has to leave).
        side_usage: of models other than the agent's, stored behind ``usage`` and marked late: it measures no prompt.

    :raises LeaseLost: the token is no longer the lineage's; nothing was written.
    :raises IllegalMessage: a row would break the transcript; nothing was written.
    """

    fence: Fence
    outcome: str
    now: int
    reason: str = ""
    drafts: tuple[MessageDraft, ...] = ()
    usage: tuple[Usage, ...] = ()
    side_usage: tuple[Usage, ...] = ()
    touch: bool = True
    deliveries: tuple[DeliveryDraft, ...] = ()
    again: frozenset[InboxId] = frozenset()


@attrs.frozen(kw_only=True)
class Revoke(Operation["Turn | None"]):
    """Take the lease away: token + 1, no holder, the active turn ends as ``outcome``, its inbox rows are done.

    Unanswered calls get synthetic results and one closing row follows. Returns the turn that ended, ``None`` where
    none was active (the token grows all the same).

    Attributes:
        expected: revoke only while this is the lease's stamp; else nothing happens and ``None`` is returned.
        again, deliveries: as in :class:`Begin`, written only where a turn ended.

    :raises SessionNotFound: no such lineage.
    """

    lineage_id: LineageId
    now: int
    reason: str
    outcome: str = "stopped"
    expected: LeaseStamp | None = None
    again: frozenset[InboxId] = frozenset()
    deliveries: tuple[DeliveryDraft, ...] = ()


@attrs.frozen(kw_only=True)
class RecordUsage(Operation[None]):
    """Add usage of a turn that may have lost its lease already; such rows are marked late."""

    turn_id: TurnId
    usage: Usage
    now: int
