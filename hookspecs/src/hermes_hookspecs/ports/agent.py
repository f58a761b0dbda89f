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

    from hermes_hookspecs.files import FileResult, OutgoingFile
    from hermes_hookspecs.jobs import Jobs
    from hermes_hookspecs.messages import Attachment, Message, ToolCall
    from hermes_hookspecs.ports.search import SearchAnswer
    from hermes_hookspecs.ports.services import AttachmentReader
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import Session, SessionSummary
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.turns import Turn, Usage

__all__ = [
    "Agent",
    "AgentEvent",
    "Approvals",
    "AssistantStep",
    "History",
    "Outgoing",
    "Patience",
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
    """One assistant row. Without calls it is the answer so far; the last one is the answer of the turn.

    Attributes:
        files: what the answer brings along, as :meth:`Outgoing.add` returned it in this turn.
    """

    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str | None = None
    finish_reason: str | None = None
    token_count: int | None = None
    files: tuple[Attachment, ...] = ()


@attrs.frozen(kw_only=True)
class ToolResult:
    """The result of one call of the newest assistant row.

    Attributes:
        outcome: one of :data:`~hermes_hookspecs.audit.CALL_OUTCOMES`, for the audit. duration_ms: of the call alone;
            ``None`` lets the time since the step be taken.
        files: what the tool lets the answer bring along, as :meth:`Outgoing.add` returned it in this turn.
    """

    call_id: str
    name: str
    content: str
    token_count: int | None = None
    outcome: str = "answered"
    duration_ms: int | None = None
    files: tuple[Attachment, ...] = ()


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

    def session_search(
        self,
        query: str = "",
        *,
        session_id: str = "",
        around_message_id: int | None = None,
        window: int = 5,
        limit: int = 3,
        sort: str = "relevance",
        role_filter: Sequence[str] = (),
        source: str | None = None,
        since: int | None = None,
        until: int | None = None,
        detail: str = "adaptive",
    ) -> SearchAnswer:
        """Find, look around, read or browse, as :meth:`~hermes_hookspecs.ports.search.Searching.session_search` does.

        What is live in the turn's own context is not found, and its lineage not listed.

        :raises ValueError: the query or a choice is wrong; the text says what. :raises SessionError: no such session.
        """
        ...


class Steering(Protocol):
    """Messages that came while the turn runs and were put into it (busy policy ``steer``).

    Only texts are put in, and only into the turns of an agent that says that it ``steers``; any other message waits
    for a turn of its own.
    """

    def take(self) -> Sequence[str]:
        """Return the texts, as a model is to be sent them, since the last call; oldest first.

        They stand in the transcript already, as user rows behind the newest tool result.
        """
        ...


class Approvals(Protocol):
    """Asks a person: the principal of the turn, or an admin."""

    async def ask(self, call: ToolCall, tool: Tool, turn: TurnContext) -> str | None:
        """Return ``None`` when the call may be made, else why not. Waits as long as its own limit allows.

        Several may be asked for at a time; each is answered for itself.
        """
        ...


class Outgoing(Protocol):
    """Takes files that the answer of the turn brings along.

    A file is kept first and named by an event then; the row of that event is where it stands from then on, so that a
    turn that is interrupted behind it, and tried again, brings it all the same, once. What no event names is not sent.
    """

    async def add(self, file: OutgoingFile) -> Attachment:
        """Keep a file; return what an event names it by. The same name and bytes twice are one file.

        :raises AttachmentRefused: it is too large, or the answer brings too many; the text says so to a model.
        :raises StorageError: it could not be kept.
        """
        ...


class Patience(Protocol):
    """How long a turn may give no sign of life before it is given up."""

    def allow(self, seconds: float) -> None:
        """Let the step that runs take at least so many seconds from now; never shortens what was allowed."""
        ...


@attrs.frozen(kw_only=True)
class TurnContext:
    """What an agent gets. Everything is a copy; nothing here writes.

    Attributes:
        messages: the window: what a model is to be sent, oldest first, the new user rows last. A message of kind
            :data:`~hermes_hookspecs.messages.KIND_ATTACHMENTS` that has attachments stands for this turn's own: an
            agent that can may send their bytes in its place, in the same place and role; its content is what stands
            there in all later turns, and what an agent sends that cannot.
        text: the new user rows' text, joined by line feeds. principal: on whose behalf tools read.
        attachments: of the new user rows, each with its text. files: reads the bytes of what the window names, and
            of nothing else; ``None`` where none are kept. approvals: to be asked before a tool with ``dangerous`` is
            called; ``None`` where nobody can be. patience: of the turn. jobs: begins work that outlives the turn.
        tools: by name. commands: slash commands of this entrance, ``(name, summary)``.
        steering: to be asked behind each tool result; ``None`` for an agent that does not steer.
        outgoing: takes files that the answer brings along; ``None`` where it can bring none.
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
    files: AttachmentReader | None = None
    approvals: Approvals | None = None
    patience: Patience | None = None
    jobs: Jobs | None = None
    outgoing: Outgoing | None = None


class Agent(Protocol):
    """Something that answers.

    An agent that asks for steered messages behind each tool result has an attribute ``steers`` that is true. Without
    one no message is put into its turns: it would count as answered although the agent never saw it.

    An agent that has to be configured first has an attribute ``ready``, true once it can answer, and ``setup``: one
    line that says what is missing, ``""`` for nothing. Where ``[agent] runner`` names none, the first one that is
    ready answers, in order of names; else the built-in ``recall`` does.

    An agent that brings tools of its own names them in an attribute ``own_tools``. They stand among the tools of its
    turns, and of one name the profile's is there: so they, too, stay in the prompt as the session began with them. What
    an agent adds to a request behind the back of its turn changes the prompt with every upgrade.

    An agent that sends no prompt to any model has an attribute ``promptless`` that is true: the tools of its session
    are frozen by the first turn of another agent, so those that come with a model which is configured later are there.
    """

    name: str
    """Name in ``[agent] runner`` and ``--agent``."""
    model: str | None
    """Model shown and stored with the session; ``None`` where there is none."""

    def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
        """Yield the steps of one turn. An exception ends the turn as failed; what was stored stays.

        So does a value that is not of the type that its field says. A generator that is closed or cancelled has
        ``[session_reset] cleanup_timeout_s`` for its cleaning up; then the turn ends without it, and nothing that it
        still yields is taken.
        """
        ...


class Tool(Protocol):
    """Something an agent may call."""

    name: str
    description: str
    effect: str
    """``read``, ``idempotent`` or ``write``: what a repetition would do."""
    parameters: Mapping[str, object]
    """JSON schema of the arguments."""

    async def call(self, arguments: Mapping[str, object], turn: TurnContext) -> str | FileResult:
        """Return the result as text, or with files for the person; an exception becomes a result that says so.

        Files go to the person with the answer of the turn: :func:`~hermes_hookspecs.toolbox.brought` sees to it for an
        agent that runs tools without a :class:`~hermes_hookspecs.toolbox.Toolbox`.
        """
        ...
