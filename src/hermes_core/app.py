"""The facade that a front end or an embedding program holds: one open profile."""

from __future__ import annotations

import os
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from hermes_core.config import load_settings
from hermes_core.desks import Desks
from hermes_hookspecs.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from hermes_core.sessions.session_store import SessionStore
    from hermes_hookspecs.approvals import Approval
    from hermes_hookspecs.cli import CliCommand
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.commands import Command, CommandReply
    from hermes_hookspecs.ids import InboxId, LineageId, SessionKey
    from hermes_hookspecs.inbox import AcceptResult, MessageEvent
    from hermes_hookspecs.messages import Attachment
    from hermes_hookspecs.ports.agent import Agent, AgentEvent
    from hermes_hookspecs.ports.app import (
        CompressionReport,
        Resolved,
        RouteExplanation,
        SettingRow,
        TurnResult,
    )
    from hermes_hookspecs.ports.gateway import Gateway
    from hermes_hookspecs.ports.platform import ServedEntrance
    from hermes_hookspecs.ports.resets import ResetExplanation
    from hermes_hookspecs.ports.search import SearchAnswer
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import Left, SessionEntry
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.state import StateUpdate

__all__ = ["HermesApp", "open_app"]


def open_app(
    home: str | os.PathLike[str] | None = None,
    *,
    profile: str | None = None,
    db: str | os.PathLike[str] | None = None,
    overrides: Mapping[str, object] | None = None,
    plugins: bool = True,
    create: bool = True,
    environ: Mapping[str, str] | None = None,
    clock: Clock | None = None,
) -> HermesApp:
    """Return an open profile; close it, or use it in a ``with`` statement.

    :param home: folder of the installation; ``None`` asks ``HERMES_SESSIONS_HOME``, then ``~/.hermes-sessions``.
    :param profile: ``None`` for the home's own. db: a database file of its own; its lock files stand beside it.
    :param overrides: dotted settings above every file: ``{"storage.durability": "normal"}``.
    :param plugins: ``False`` loads only what is built in. environ: ``None`` for the process's own.
    :param create: ``False`` refuses a home, profile or database that was named and is not there: nothing is made.
    :raises ConfigError: a setting is wrong, or a place is not there.
    """
    for option, value in (("home", home), ("db", db)):
        if value == "":
            raise ConfigError(f"option --{option}: an empty path is no place for a store", origin=f"option --{option}")
    options = dict(overrides or {})
    if not plugins:
        options["plugins.only"] = ()
    settings = load_settings(
        None if home is None else Path(home),
        profile,
        options,
        os.environ if environ is None else environ,
        db=None if db is None else Path(db),
    )
    if not create:
        from hermes_core.config.places import check_places

        check_places(settings, home=home is not None, profile=profile is not None, db=db is not None)
    again = partial(open_app, home, profile=profile, db=db, overrides=overrides, plugins=plugins, environ=environ)
    environ = os.environ if environ is None else environ
    return HermesApp(settings, clock=clock, environ=environ, reopen=partial(again, clock=clock))


class HermesApp(Desks):
    """An open profile (:class:`~hermes_hookspecs.ports.app.App`). Thread-safe."""

    @cached_property
    def sessions(self) -> SessionStore:
        """Return the sessions under the names that readers of the original know."""
        from hermes_core.sessions.session_store import SessionStore

        return SessionStore(self)

    # --- what is in force

    def setting(self, section: str, key: str) -> object:
        """Return one effective setting. :raises KeyError: there is none of that name."""
        try:
            return getattr(getattr(self.settings, section), key)
        except AttributeError:
            raise KeyError(f"{section}.{key}") from None

    def setting_rows(self) -> Sequence[SettingRow]:
        """Return every effective setting in the order of the documentation."""
        from hermes_core.config import describe
        from hermes_core.config.rules import shown
        from hermes_hookspecs.ports.app import SettingRow

        return [
            SettingRow(section=one.section, key=one.key, value=shown(one.value), origin=one.origin)
            for one in describe(self.settings)
        ]

    def notices(self) -> Sequence[str]:
        """Return, once, what a person must be told, one line each."""
        with self._lock:
            if not self.hooks.loaded and self.settings.names_plugins:
                from hermes_core.builtins.plugin import BUILTIN_NAMES
                from hermes_core.plugins.cache import find_candidates
                from hermes_core.plugins.choice import unknown_names

                self._notices += unknown_names(
                    self.settings, find_candidates(self.settings.cache_folder), BUILTIN_NAMES
                )
            told, self._notices = self._notices, []
        return told

    def agent_names(self) -> Sequence[str]:
        """Return the names that ``agent=`` takes, sorted."""
        return sorted(self.hooks.agents())

    def commands(self, platform: str) -> Sequence[Command]:
        """Return the slash commands of a platform, sorted by name."""
        return self.command_book.of(platform)

    def cli_commands(self) -> Sequence[CliCommand]:
        """Return the command line commands of the loaded plugins."""
        return self.hooks.cli_commands()

    # --- routing

    def session_key(self, source: SessionSource) -> SessionKey:
        """Return the key of a source. :raises KeyBuildError: too little identity."""
        return self.desk.key(source)

    def principal(self, source: SessionSource) -> Principal:
        """Return on whose behalf a message from ``source`` reads; the terminal is the operator."""
        return self.desk.principal(source)

    def explain_route(self, source: SessionSource) -> RouteExplanation:
        """Say why a message from ``source`` lands where it lands; changes nothing."""
        from hermes_core.routing.explain import explain

        source, legacy = self.desk.at_home(source), self.hooks.legacy_claims
        return explain(self.store, self.settings, self.desk.keys, source, legacy=legacy)

    def explain_reset(self, key: SessionKey) -> ResetExplanation:
        """Say when, and why, what a key leads to ends by itself; changes nothing."""
        return self.desk.resets.explain(key)

    def get_or_create_session(
        self, source: SessionSource, force_new: bool = False, touch_activity: bool = True
    ) -> SessionEntry:
        """Return the session of a source, made if need be; callers at once share one answer, or one error."""
        return self.desk.get_or_create(source, force_new=force_new, touch=touch_activity)

    def new_session(self, source: SessionSource) -> SessionEntry:
        """Return a fresh session for a program without a terminal of its own."""
        self._passing.append(source)
        return self.desk.get_or_create(source, force_new=True)

    def resume_session(
        self, source: SessionSource, lineage_id: LineageId, *, bind: bool = True, control_id: InboxId | None = None
    ) -> SessionEntry:
        """Let the key of ``source`` lead to a lineage and return its tip, reopened."""
        if not bind:
            self._passing.append(source)
        return self.desk.resume(source, lineage_id, control_id=control_id)

    def leave_session(
        self,
        source: SessionSource,
        entry: SessionEntry | None,
        *,
        title: str | None = None,
        control_id: InboxId | None = None,
    ) -> Left | None:
        """Let the key of ``source`` lead nowhere; the next message makes a session. Nothing is lost."""
        return self.desk.leave(source, entry, title=title, control_id=control_id)

    def check_title(self, title: str | None, source: SessionSource) -> str | None:
        """Return a clean title that a session of ``source`` could have. :raises TitleError: too long, or taken."""
        return self.desk.check_title(title, source)

    # --- sessions

    def resolve(self, reference: str, principal: Principal) -> Resolved:
        """Return what a reference means: exact id, else exact title, else unique id prefix."""
        from hermes_core.sessions.resolve import resolve

        return resolve(self.store, reference, principal)

    def turn_state(self, lineage_id: LineageId) -> str:
        """Return what runs in a lineage, in words: ``""`` when nothing does, or that its process is gone."""
        from hermes_core.leases import lease_state

        return lease_state(self.store.lease(lineage_id))

    def rename_session(
        self, lineage_id: LineageId, title: str | None, *, control_id: InboxId | None = None
    ) -> str | None:
        """Clean and set a title; blank takes it away. :raises TitleError: too long, or taken."""
        return self.desk.rename(lineage_id, title, control_id=control_id)

    def export_sessions(self, principal: Principal, *, source: str | None = None) -> Iterator[dict[str, object]]:
        """Yield every lineage, oldest first, each read when it is its turn."""
        from hermes_core.sessions.export import export_sessions

        return export_sessions(self.store, principal, source=source)

    async def compress_session(
        self, lineage_id: LineageId, source: SessionSource, *, focus: str = "", control_id: InboxId | None = None
    ) -> CompressionReport:
        """Let a session go on in a child with a summary. :raises LeaseBusy: a turn is running."""
        return await self._turns.compress(lineage_id, source, focus, control_id)

    async def uncompress_session(
        self, lineage_id: LineageId, source: SessionSource, *, control_id: InboxId | None = None
    ) -> CompressionReport:
        """Let a session see again what it saw before its last compression. :raises LeaseBusy: a turn is running."""
        return await self._turns.uncompress(lineage_id, source, control_id)

    # --- search

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
        own: LineageId | None = None,
        principal: Principal | None = None,
        budget_s: float = 2.0,
    ) -> SearchAnswer:
        """Find, look around, read or browse; parameters as :class:`~hermes_hookspecs.ports.search.Searching` says."""
        return self._search.session_search(
            query,
            session_id=session_id,
            around_message_id=around_message_id,
            window=window,
            limit=limit,
            sort=sort,
            role_filter=role_filter,
            source=source,
            since=since,
            until=until,
            detail=detail,
            own=own,
            principal=principal,
            budget_s=budget_s,
        )

    # --- turns

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
        """Accept a message, wait for its turn, run it and return the answer; for threads without an event loop."""
        import asyncio

        return asyncio.run(
            self.ask_async(text, source, entry=entry, agent=agent, on_event=on_event, attachments=attachments)
        )

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
        """Do what :meth:`ask` does, on the running loop."""
        return await self._turns.ask(
            text,
            source,
            entry=entry,
            agent=agent,
            on_event=on_event,
            on_wait=on_wait,
            on_approval=on_approval,
            attachments=attachments,
        )

    async def command(self, text: str, source: SessionSource, entry: SessionEntry | None) -> CommandReply | None:
        """Run ``text`` as a slash command; ``None`` when it is none. An unknown one is answered, not run."""
        return await self.command_book.run(self, text, source, entry)

    # --- messages that nobody waits for

    def stop_turn(self, lineage_id: LineageId, *, reason: str = "", control_id: InboxId | None = None) -> bool:
        """Stop the turn of a lineage; it never runs again. :raises SessionNotFound: no such lineage."""
        from hermes_core.inbox.door import entrance_of
        from hermes_core.turns.stopping import stop_notices

        command = None if control_id is None else self.store.inbox_item(control_id)
        notices = stop_notices(self.store, lineage_id, None if command is None else command.session_key)
        stopped = self.desk.stop(lineage_id, reason, control_id, notices)
        self.wake_servers(entrance_of(notice.target) for notice in notices)
        return stopped

    async def accept(
        self, events: Sequence[MessageEvent], *, state: Sequence[StateUpdate] = ()
    ) -> Sequence[AcceptResult]:
        """Store a batch, and what its sender has to remember, in one transaction; results in order."""
        return await self._acceptance.accept(events, state)

    async def work(
        self,
        entrances: Sequence[ServedEntrance],
        *,
        agent: Agent | str | Callable[..., object] | None = None,
        until_idle: bool = False,
    ) -> None:
        """Serve entrances: answer their messages, run their commands, send their deliveries. Runs until cancelled."""
        from hermes_core.gateway.service import serve

        await serve(self, self, self._turns, entrances, agent=agent, until_idle=until_idle)

    @property
    def gateway(self) -> Gateway:
        """Return the gateway of this profile."""
        from hermes_core.gateway.desk import GatewayDesk

        return GatewayDesk(self, self, turns=lambda: self._turns, acceptance=lambda: self._acceptance)
