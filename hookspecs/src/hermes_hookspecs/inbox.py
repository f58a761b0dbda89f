"""Messages accepted and not yet consumed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from hermes_hookspecs.ids import InboxId, LineageId, SessionId, SessionKey, TurnId
    from hermes_hookspecs.messages import Attachment
    from hermes_hookspecs.source import Entrance, SessionSource
    from hermes_hookspecs.turns import LeaseHolder

__all__ = [
    "APPLIED",
    "CLAIMED",
    "CONTROL",
    "INTERNAL",
    "MESSAGE",
    "PENDING",
    "QUARANTINED",
    "SETTLED",
    "SUPERSEDED",
    "WITHDRAWN",
    "AcceptResult",
    "ControlOutcome",
    "EntranceServer",
    "InboxDraft",
    "InboxItem",
    "MessageEvent",
]

PENDING = "pending"
CLAIMED = "claimed"
SETTLED = "done"
SUPERSEDED = "superseded"
WITHDRAWN = "withdrawn"
QUARANTINED = "quarantined"
APPLIED = "applied"
"""Of a control row: its effect is in the store, its reply is not in the outbox yet."""

MESSAGE, CONTROL, INTERNAL = "message", "control", "internal"
KINDS = (MESSAGE, CONTROL, INTERNAL)
"""Kinds. A control row (command, approval, recall) stands outside the FIFO; an internal one moves no clock."""


def _identities(value: object) -> tuple[str, ...]:
    """Return ids as a tuple; one text is refused, since each of its characters would become an id."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"identities are several texts, such as ({value!r},), not {type(value).__name__}")
    return tuple(str(one) for one in value)


@attrs.frozen(kw_only=True)
class MessageEvent:
    """A message as an adapter hands it in, before access and redaction.

    Attributes:
        identities: ids by which a redelivery is known, each with scope and chat inside; any known one makes it a
            duplicate. Platform and account are told apart by the core. Empty where the entrance cannot deliver twice
            (a terminal); an empty id is none.
        kind: ``message``, ``control`` or ``internal`` (background results; moves no clock).
        received_at: UTC milliseconds. error: why the item could not be read, ``""`` for one that could.
        addressed: it is meant for us: a direct chat, a mention, an answer to us, a command. In a group others are taken
            only where the group's rule says so.
        recalls: identity of an earlier message that its sender took back; the text is empty then.
    """

    source: SessionSource
    text: str
    identities: tuple[str, ...] = attrs.field(default=(), converter=_identities)
    attachments: tuple[Attachment, ...] = ()
    kind: str = attrs.field(default=MESSAGE, validator=attrs.validators.in_(KINDS))
    received_at: int
    error: str = ""
    addressed: bool = True
    recalls: str = ""


@attrs.frozen(kw_only=True)
class InboxDraft:
    """A row to be accepted: access was checked and redaction done.

    Attributes:
        lineage_id: set by an entrance that knows it; ``None`` leaves the routing to the next step.
        waiter: the process that waits in the same call and takes its answer from the turn: no outbox row, and
            a row whose waiter died is passed over. ``None``: whoever serves the entrance answers it.
        error: why the item is unreadable; such a row is quarantined, never dropped.
        only_if_idle: refused while a turn runs in its lineage, or another message waits there.
    """

    session_key: SessionKey
    source: SessionSource
    entrance: Entrance
    text: str
    accepted_at: int
    identities: tuple[str, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    kind: str = MESSAGE
    lineage_id: LineageId | None = None
    waiter: LeaseHolder | None = None
    error: str = ""
    only_if_idle: bool = False


@attrs.frozen(kw_only=True)
class InboxItem:
    """A stored row of the inbox; ``status`` is one of the constants of this module.

    Attributes:
        attempts: turns that have begun with it. outcome: of a control row, once its effect ran.
    """

    id: InboxId
    session_key: SessionKey
    source: SessionSource
    entrance: Entrance
    text: str
    accepted_at: int
    identities: tuple[str, ...]
    attachments: tuple[Attachment, ...]
    kind: str
    lineage_id: LineageId | None
    waiter: LeaseHolder | None
    status: str
    attempts: int
    error: str = ""
    outcome: ControlOutcome | None = None


@attrs.frozen(kw_only=True)
class AcceptResult:
    """What became of one draft.

    Attributes:
        id: the row; for a duplicate the row that was there. duplicate: it was known, nothing was stored.
        refused: why the row was not taken (a full queue), ``""`` otherwise.
    """

    id: InboxId | None
    duplicate: bool = False
    refused: str = ""


@attrs.frozen(kw_only=True)
class ControlOutcome:
    """What the effect of a control row did, in a form that is stored with the row.

    Attributes:
        lineage_id: the lineage that the effect was about, ``None`` where there was none. session_id: its tip then.
        stopped: the turn that it ended. superseded: waiting messages that it settled.
        title: after a rename. repeated: the effect ran in an earlier call.
    """

    lineage_id: LineageId | None = None
    session_id: SessionId | None = None
    stopped: TurnId | None = None
    superseded: int = 0
    title: str | None = None
    repeated: bool = False


@attrs.frozen(kw_only=True)
class EntranceServer:
    """A process that serves an entrance.

    Attributes:
        beats: grows while it lives; what others watch who cannot look at its process. since: UTC milliseconds.
    """

    entrance: Entrance
    holder: LeaseHolder
    beats: int
    since: int
