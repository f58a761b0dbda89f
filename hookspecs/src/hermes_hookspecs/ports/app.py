"""The facade that a front end or an embedding program holds: an open profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

from hermes_hookspecs.ports.contexts import Contexts
from hermes_hookspecs.ports.conversations import HasConversations
from hermes_hookspecs.ports.desks import HasDesks
from hermes_hookspecs.ports.gateway import HasGateway
from hermes_hookspecs.ports.oversight import HasOversight
from hermes_hookspecs.ports.search import Searching

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from hermes_hookspecs.approvals import Approval
    from hermes_hookspecs.cli import CliCommand
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.commands import Command, CommandReply
    from hermes_hookspecs.ids import InboxId, LineageId, SessionId, SessionKey
    from hermes_hookspecs.inbox import AcceptResult, MessageEvent
    from hermes_hookspecs.messages import Attachment
    from hermes_hookspecs.operations import Deleted
    from hermes_hookspecs.ports.agent import Agent, AgentEvent
    from hermes_hookspecs.ports.platform import ServedEntrance
    from hermes_hookspecs.ports.resets import ResetExplanation
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import Left, Lineage, Session, SessionEntry
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.state import StateUpdate
    from hermes_hookspecs.turns import Turn, Usage

__all__ = ["App", "FrontEnd", "PluginRow", "Resolved", "RouteExplanation", "SettingRow", "TurnResult"]


@attrs.frozen(kw_only=True)
class SettingRow:
    """One effective setting. ``value`` is its TOML form, secrets masked; ``origin`` says where it came from."""

    section: str
    key: str
    value: str
    origin: str


@attrs.frozen(kw_only=True)
class PluginRow:
    """One plugin, loaded or not.

    Attributes:
        stage: ``loaded``, ``blocked``, ``incompatible`` or the stage at which it failed.
        reason: why it is not loaded, or what to know about it. hooks: names it implements.
        failures: how often a hook of it failed; ``quarantined``: it is not called any more.
    """

    name: str
    distribution: str
    version: str
    stage: str
    reason: str
    import_ms: float | None
    hooks: tuple[str, ...]
    failures: int
    quarantined: bool


@attrs.frozen(kw_only=True)
class Resolved:
    """What a reference means: the lineage, the segment it named, and how it was found."""

    lineage: Lineage
    session: Session
    by: str
    """``id``, ``title`` or ``prefix``."""


@attrs.frozen(kw_only=True)
class RouteExplanation:
    """Why a message lands where it lands: the key, its parts, the settings with their origins, the lineage."""

    key: SessionKey
    lines: tuple[tuple[str, str], ...]
    """``(name, value)`` in the order in which the decision was made."""
    lineage: Lineage | None
    session_id: SessionId | None


@attrs.frozen(kw_only=True)
class CompressionReport:
    """What a compression that somebody asked for came to: what the next turn really loads.

    Attributes:
        session_id: the tip now. refusal: why nothing was changed, as a sentence; ``""`` where something was.
        rows_before, rows_after: of the context, its summary counted. tokens_before, tokens_after: estimated.
    """

    session_id: SessionId
    refusal: str = ""
    rows_before: int = 0
    rows_after: int = 0
    tokens_before: int = 0
    tokens_after: int = 0


@attrs.frozen(kw_only=True)
class TurnResult:
    """How a turn ended.

    Attributes:
        text: the answer, ``""`` where there is none. files: what it brings along, by :attr:`App.attachments`.
        entry: the session it went into.
        waited_s: seconds between acceptance and begin.
    """

    turn: Turn
    text: str
    entry: SessionEntry
    usage: Usage | None
    waited_s: float
    files: tuple[Attachment, ...] = ()


class App(Searching, Contexts, HasConversations, HasDesks, HasGateway, HasOversight, Protocol):
    """An open profile. Thread-safe; everything that is not ``async`` blocks."""

    home: str
    profile: str
    clock: Clock

    def __enter__(self) -> Self:
        """Return itself."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        ...

    @property
    def store(self) -> Store:
        """Return the store, opened at the first call.

        :raises StorageError: it cannot be opened.
        """
        ...

    # what is in force
    def setting(self, section: str, key: str) -> object:
        """Return one effective setting. :raises KeyError: there is none of that name."""
        ...

    def setting_rows(self) -> Sequence[SettingRow]:
        """Return every effective setting in the order of the documentation."""
        ...

    def plugin_rows(self) -> Sequence[PluginRow]:
        """Load the plugins and return a row for each that was found, built-in ones last."""
        ...

    def notices(self) -> Sequence[str]:
        """Return, once, what a person must be told: broken plugins, routes out of reach. One line each."""
        ...

    def agent_names(self) -> Sequence[str]:
        """Return the names that ``agent=`` takes, sorted."""
        ...

    def commands(self, platform: str) -> Sequence[Command]:
        """Return the slash commands of a platform, sorted by name."""
        ...

    def cli_commands(self) -> Sequence[CliCommand]:
        """Return the command line commands of the loaded plugins."""
        ...

    def account_folder(self, platform: str, account_id: str) -> Path:
        """Return the folder of a platform's account, made with mode 0700: for its login, say."""
        ...

    # routing
    def session_key(self, source: SessionSource) -> SessionKey:
        """Return the key of a source under the settings of its platform. :raises KeyBuildError: see there."""
        ...

    def principal(self, source: SessionSource) -> Principal:
        """Return on whose behalf a message from ``source`` reads; the terminal is the operator."""
        ...

    def explain_route(self, source: SessionSource) -> RouteExplanation:
        """Say why a message from ``source`` lands where it lands; changes nothing."""
        ...

    def explain_reset(self, key: SessionKey) -> ResetExplanation:
        """Say when, and why, what a key leads to ends by itself; changes nothing.

        :raises SessionNotFound: no route has this key.
        """
        ...

    def get_or_create_session(
        self, source: SessionSource, force_new: bool = False, touch_activity: bool = True
    ) -> SessionEntry:
        """Return the session of a source, made if need be. Callers at once get the same one, or the same error."""
        ...

    def new_session(self, source: SessionSource) -> SessionEntry:
        """Return a fresh session for a program without a terminal of its own: its route goes when the app closes."""
        ...

    def resume_session(
        self, source: SessionSource, lineage_id: LineageId, *, bind: bool = True, control_id: InboxId | None = None
    ) -> SessionEntry:
        """Let the key of ``source`` lead to a lineage and return its tip, reopened.

        :param bind: ``False``: the route goes when the app closes, as with :meth:`new_session`.
        :param control_id: the command's inbox row: what waited before it is settled, not carried along.
        :raises SessionNotFound: no such lineage, or not yours.
        """
        ...

    def leave_session(
        self,
        source: SessionSource,
        entry: SessionEntry | None,
        *,
        title: str | None = None,
        control_id: InboxId | None = None,
    ) -> Left | None:
        """Let the key of ``source`` lead nowhere; the next message makes a session, called ``title`` if given.

        :param entry: the session that is left; where the key leads elsewhere by now nothing is let go.
        :param control_id: the command's inbox row: it is run once, and what waited before it is settled.
        :returns: what was left, ``None`` where there was nothing. It is kept.
        """
        ...

    def check_title(self, title: str | None, source: SessionSource) -> str | None:
        """Return a clean title that a session of ``source`` could have. :raises TitleError: too long, or taken."""
        ...

    # sessions
    def resolve(self, reference: str, principal: Principal) -> Resolved:
        """Return what a reference means: exact id, else exact title, else unique id prefix.

        :raises SessionNotFound: nothing, or not yours; also for an empty reference.
        :raises AmbiguousReference: several; nothing was changed.
        """
        ...

    def turn_state(self, lineage_id: LineageId) -> str:
        """Return what runs in a lineage, in words.

        :returns: ``""`` when nothing does, ``running in …``, or ``interrupted in …: its process is gone``.
        """
        ...

    def rename_session(
        self, lineage_id: LineageId, title: str | None, *, control_id: InboxId | None = None
    ) -> str | None:
        """Clean and set a title (``None`` or blank takes it away); return it. :raises TitleError: see there."""
        ...

    def delete_session(self, lineage_id: LineageId, *, force: bool = False) -> Deleted:
        """Remove a lineage. :raises LeaseBusy: a turn runs, and not ``force``."""
        ...

    def export_session(self, session_id: SessionId, lineage: bool = False) -> dict[str, object]:
        """Return one session (all segments with ``lineage``) as plain data, names as in ``design.md`` section 15."""
        ...

    def export_sessions(self, principal: Principal, *, source: str | None = None) -> Iterator[dict[str, object]]:
        """Yield every session (a lineage in one piece), oldest first, each read in a transaction of its own."""
        ...

    async def compress_session(
        self, lineage_id: LineageId, source: SessionSource, *, focus: str = "", control_id: InboxId | None = None
    ) -> CompressionReport:
        """Let a session go on in a child with a summary, whatever the policies' thresholds and rests say.

        :param focus: what the summary is to say most of. control_id: the command's inbox row: it is run once.
        :raises SessionNotFound: no such lineage. :raises LeaseBusy: a turn is running; nothing was changed.
        """
        ...

    async def uncompress_session(
        self, lineage_id: LineageId, source: SessionSource, *, control_id: InboxId | None = None
    ) -> CompressionReport:
        """Let a session go on in a child that sees what was in the context before the last compression.

        Errors and parameters as in :meth:`compress_session`.
        """
        ...

    # turns
    def ask(
        self,
        text: str,
        source: SessionSource,
        *,
        entry: SessionEntry | None = None,
        agent: Agent | str | Callable[..., object] | None = None,
        on_event: Callable[[AgentEvent], None] | None = None,
        attachments: tuple[Attachment, ...] = (),
    ) -> TurnResult:
        """Accept a message, wait for its turn, run it and return the answer.

        :param entry: the session to speak in; ``None`` asks the route of ``source``.
        :param agent: an agent, the name of one, or a function ``(TurnContext) -> str``; ``None`` is the configured.
        :raises LeaseBusy: the turn did not begin within ``turns.lease_wait_s``; the message was withdrawn.
        :raises AgentFailed: the agent raised; the turn is closed as failed.
        """
        ...

    async def ask_async(
        self,
        text: str,
        source: SessionSource,
        *,
        entry: SessionEntry | None = None,
        agent: Agent | str | Callable[..., object] | None = None,
        on_event: Callable[[AgentEvent], None] | None = None,
        on_wait: Callable[[str], None] | None = None,
        on_approval: Callable[[Approval], None] | None = None,
        attachments: tuple[Attachment, ...] = (),
    ) -> TurnResult:
        """Do what :meth:`ask` does, on the running loop.

        :param on_approval: told each request for approval, on the loop, to be answered by ``oversight.answer``; where
            it is ``None`` nobody is asked, and dangerous calls are refused.
        :param on_wait: told, in words, who is in the way, once after ``turns.busy_notice_s``.
        """
        ...

    def stop_turn(self, lineage_id: LineageId, *, reason: str = "", control_id: InboxId | None = None) -> bool:
        """Stop the turn of a lineage: its lease is revoked, its messages are done; it never runs again.

        :returns: whether one was running; a repetition with the same ``control_id`` answers what the first did.
        :raises SessionNotFound: no such lineage.
        """
        ...

    async def command(self, text: str, source: SessionSource, entry: SessionEntry | None) -> CommandReply | None:
        """Run ``text`` as a slash command; ``None`` when it is none. An unknown one is answered, not run."""
        ...

    # messages that nobody waits for
    async def accept(
        self, events: Sequence[MessageEvent], *, state: Sequence[StateUpdate] = ()
    ) -> Sequence[AcceptResult]:
        """Store a batch, and what its sender has to remember, in one transaction; results in order.

        Once this returns the messages are answered exactly once, by whoever serves their entrance (:meth:`work`),
        however often a process dies in between. A slash command is a control row. What is refused is told to its
        sender through the outbox; what cannot be read, or has too little identity for a key, is quarantined. So is,
        without text and attachments, what a plugin fails to redact: the rest of the batch is taken.
        """
        ...

    async def work(
        self,
        entrances: Sequence[ServedEntrance],
        *,
        agent: Agent | str | Callable[..., object] | None = None,
        until_idle: bool = False,
    ) -> None:
        """Serve entrances: answer their messages, run their commands, send their deliveries. Runs until cancelled.

        Cancelled, it lets its turns and commands end within ``turns.drain_s``; what is not done by then waits for the
        next server. A command may run for ``gateway.command_timeout_s``.

        :param until_idle: return once nothing of these entrances waits or is due, but behind messages that other
            processes have to answer first.
        """
        ...

    def close(self) -> None:
        """Let go of everything; a second call does nothing."""
        ...


class FrontEnd(Protocol):
    """What the script ``hermes`` hands the command line to."""

    name: str

    def main(self, arguments: Sequence[str], open_app: Callable[..., App]) -> int:
        """Parse ``arguments``, open an app with ``open_app(home=, profile=, db=, overrides=, plugins=)``, run.

        :returns: the exit status.
        """
        ...
