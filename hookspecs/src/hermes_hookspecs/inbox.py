"""Messages accepted and not yet consumed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from hermes_hookspecs.ids import InboxId, LineageId, SessionKey
    from hermes_hookspecs.messages import Attachment
    from hermes_hookspecs.source import Entrance, SessionSource
    from hermes_hookspecs.turns import LeaseHolder

__all__ = [
    "CLAIMED",
    "PENDING",
    "QUARANTINED",
    "SETTLED",
    "SUPERSEDED",
    "WITHDRAWN",
    "AcceptResult",
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


@attrs.frozen(kw_only=True)
class MessageEvent:
    """A message as an adapter hands it in, before access and redaction.

    Attributes:
        identities: ids by which a redelivery is known, each with scope and chat inside; any known one makes
            it a duplicate. Empty where the entrance cannot deliver twice (a terminal).
        kind: ``message``, ``control`` or ``internal`` (background results; moves no clock).
        received_at: UTC milliseconds.
    """

    source: SessionSource
    text: str
    identities: tuple[str, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    kind: str = "message"
    received_at: int


@attrs.frozen(kw_only=True)
class InboxDraft:
    """A row to be accepted: access was checked and redaction done.

    Attributes:
        lineage_id: set by an entrance that knows it; ``None`` leaves the routing to the next step.
        waiter: the process that waits in the same call and takes its answer from the turn: no outbox row, and
            a row whose waiter died is passed over. ``None``: the platform's gateway serves it.
        error: why the item is unreadable; such a row is quarantined, never dropped.
    """

    session_key: SessionKey
    source: SessionSource
    entrance: Entrance
    text: str
    accepted_at: int
    identities: tuple[str, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    kind: str = "message"
    lineage_id: LineageId | None = None
    waiter: LeaseHolder | None = None
    error: str = ""


@attrs.frozen(kw_only=True)
class InboxItem:
    """A stored row of the inbox; ``status`` is one of the constants of this module."""

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
