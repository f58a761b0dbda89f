"""The port of an agent: what runs inside a turn.

An agent is an asynchronous generator of steps. The engine stores a step **before** it asks for the next one, so the
code behind ``yield AssistantStep(..., tool_calls=...)`` runs only once the calls are on disk and the lease was still
held; where it was lost the generator is closed and no tool runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from hermes_hookspecs.messages import Attachment, Message, ToolCall
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import Session, SessionSummary
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.turns import Turn, Usage

__all__ = [
    "Agent",
    "AgentEvent",
    "AssistantStep",
    "History",
    "Progress",
    "Steering",
    "TextDelta",
    "Tool",
    "ToolResult",
    "TurnContext",
    "UsageReport",
]


@attrs.frozen(kw_only=True)
class TextDelta:
    """A piece of the answer as it is written; shown, never stored."""

    text: str


@attrs.frozen(kw_only=True)
class Progress:
    """A sign of life with a label for people; shown, never stored; counts as progress."""

    label: str


@attrs.frozen(kw_only=True)
class AssistantStep:
    """One assistant row. Without calls it is the answer so far; the last one is the answer of the turn."""

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str | None = None
    finish_reason: str | None = None
    token_count: int | None = None


@attrs.frozen(kw_only=True)
class ToolResult:
    """The result of one call of the newest assistant row."""

    call_id: str
    name: str
    content: str
    token_count: int | None = None


@attrs.frozen(kw_only=True)
class UsageReport:
    """Tokens and money of one model call."""

    usage: Usage


AgentEvent = TextDelta | Progress | AssistantStep | ToolResult | UsageReport


class History(Protocol):
    """The past, as far as the principal of the turn may see it. Blocks; call it off the event loop."""

    def search(self, text: str, *, limit: int = 5) -> Sequence[tuple[SessionSummary, Message]]:
        """Return rows of other lineages that hold every word of ``text``, one per lineage, best first."""
        ...

    def recent(self, *, limit: int = 5) -> Sequence[SessionSummary]:
        """Return other lineages, last active first."""
        ...


class Steering(Protocol):
    """Messages that came while the turn runs and were put into it (busy policy ``steer``)."""

    def take(self) -> Sequence[str]:
        """Return the texts, as a model is to be sent them, since the last call; oldest first.

        They stand in the transcript already, as user rows behind the newest tool result.
        """
        ...


@attrs.frozen(kw_only=True)
class TurnContext:
    """What an agent gets. Everything is a copy; nothing here writes.

    Attributes:
        messages: the window: what a model is to be sent, oldest first, the new user rows last.
        text: the new user rows' text, joined by line feeds. principal: on whose behalf tools read.
        tools: by name. commands: slash commands of this entrance, ``(name, summary)``.
        steering: to be asked behind each tool result; ``None`` where nobody steers.
    """

    turn: Turn
    session: Session
    source: SessionSource
    principal: Principal
    messages: tuple[Message, ...]
    text: str
    attachments: tuple[Attachment, ...]
    history: History
    tools: Mapping[str, Tool] = attrs.field(factory=dict)
    commands: tuple[tuple[str, str], ...] = ()
    steering: Steering | None = None


class Agent(Protocol):
    """Something that answers."""

    name: str
    """Name in ``[agent] runner`` and ``--agent``."""
    model: str | None
    """Model shown and stored with the session; ``None`` where there is none."""

    def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
        """Yield the steps of one turn. An exception ends the turn as failed; what was stored stays."""
        ...


class Tool(Protocol):
    """Something an agent may call."""

    name: str
    description: str
    effect: str
    """``read``, ``idempotent`` or ``write``: what a repetition would do."""
    parameters: Mapping[str, object]
    """JSON schema of the arguments."""

    async def call(self, arguments: Mapping[str, object], turn: TurnContext) -> str:
        """Return the result as text; an exception becomes a result that says so."""
        ...
