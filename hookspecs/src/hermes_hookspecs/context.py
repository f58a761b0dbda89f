"""What a window is made of, for people and for tests: its parts, what was left out, what was repaired and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

if TYPE_CHECKING:
    from hermes_hookspecs.ids import MessageId, SessionId
    from hermes_hookspecs.messages import Message

__all__ = [
    "DOUBLED_CALL",
    "DOUBLED_RESULT",
    "EMPTY_ANSWER",
    "JOINED",
    "ORPHANED_RESULT",
    "REPAIR_REASONS",
    "UNANSWERED_CALL",
    "UNKNOWN_ROLE",
    "UNNAMED_CALL",
    "LeftOut",
    "Repair",
    "WindowPart",
    "WindowReport",
]

ORPHANED_RESULT: Final = "orphaned-result"
DOUBLED_RESULT: Final = "doubled-result"
UNANSWERED_CALL: Final = "unanswered-call"
DOUBLED_CALL: Final = "doubled-call"
UNNAMED_CALL: Final = "unnamed-call"
EMPTY_ANSWER: Final = "empty-answer"
UNKNOWN_ROLE: Final = "unknown-role"
JOINED: Final = "joined"

REPAIR_REASONS: Final[dict[str, str]] = {
    ORPHANED_RESULT: "a result whose call does not stand right before it is not sent: no model takes one",
    DOUBLED_RESULT: "a second result of one call is not sent: a call has one",
    UNANSWERED_CALL: "a call without a result is sent with one that says so: no model goes on without",
    DOUBLED_CALL: "a second call with the id of another one is not sent: its result could not be told apart",
    UNNAMED_CALL: "a call of no tool is sent under a name that says so",
    EMPTY_ANSWER: "an answer without a text and without calls is not sent",
    UNKNOWN_ROLE: "a row of a role that no model knows is not sent",
    JOINED: "user rows that follow each other inside one turn are sent as one message",
}
"""Kind of a repair → why it is done, one sentence for people."""


@attrs.frozen(kw_only=True)
class Repair:
    """One thing that the outgoing copy has otherwise than the rows.

    Attributes:
        kind: a key of :data:`REPAIR_REASONS`. message_ids: the rows that it is about, oldest first; a call's row
            stands for the call.
    """

    kind: str
    message_ids: tuple[MessageId, ...]


@attrs.frozen(kw_only=True)
class WindowPart:
    """One kind of what is sent.

    Attributes:
        name: ``system text``, ``summary``, ``kept`` (rows of earlier segments), ``conversation``, ``attachments``.
        messages: how many. tokens: of all of them, estimated.
    """

    name: str
    messages: int
    tokens: int


@attrs.frozen(kw_only=True)
class LeftOut:
    """Rows of the lineage that are not sent, and why; counted, not named: there may be very many."""

    reason: str
    messages: int


@attrs.frozen(kw_only=True)
class WindowReport:
    """What a model would be sent now.

    Attributes:
        messages: exactly that, in order. parts: what they are, in order of standing. tokens: of all, estimated, without
            the tools' descriptions. repairs: in order of their rows.
    """

    session_id: SessionId
    messages: tuple[Message, ...]
    parts: tuple[WindowPart, ...]
    left_out: tuple[LeftOut, ...]
    repairs: tuple[Repair, ...]
    tokens: int
