"""The facade that a front end or an embedding program holds: one open profile.

Everything is opened when it is first needed: a command that only reads pays neither for plugins nor for an event loop.
"""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

from hermes_core.config import load_settings
from hermes_core.hooks import Hooks
from hermes_core.sessions.desk import SessionDesk
from hermes_hookspecs.clock import SystemClock
from hermes_hookspecs.errors import ConfigError, SessionNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from hermes_core.config.sections import Settings
    from hermes_core.plugins.host import PluginHost
    from hermes_core.sessions.session_store import SessionStore
    from hermes_core.turns.service import TurnService
    from hermes_core.turns.waker import LocalWaker
    from hermes_hookspecs.cli import CliCommand
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.commands import Command, CommandReply
    from hermes_hookspecs.ids import InboxId, LineageId, SessionId, SessionKey
    from hermes_hookspecs.operations import Deleted
    from hermes_hookspecs.ports.agent import Agent, AgentEvent
    from hermes_hookspecs.ports.app import PluginRow, Resolved, RouteExplanation, SettingRow, TurnResult
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import SessionEntry, SessionSummary
    from hermes_hookspecs.source import SessionSource

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
    return HermesApp(settings, clock=clock)


class HermesApp:
    """An open profile (:class:`~hermes_hookspecs.ports.app.App`). Thread-safe.

    :param settings: effective settings. clock: ``None`` for the machine's.
    """

    def __init__(self, settings: Settings, *, clock: Clock | None = None) -> None:
        self.settings = settings
        self.home = str(settings.home)
        self.profile = settings.profile
        self.clock: Clock = clock if clock is not None else SystemClock()
        self.hooks = Hooks(self._load_plugins)
        self._lock = RLock()
        self._store: Store | None = None
        self._service: TurnService | None = None
        self._closed = False
        self._notices: list[str] = list(settings.notices)
        self._passing: list[SessionSource] = []
        self._desk = SessionDesk(lambda: self.store, self.hooks, settings, self.clock, self._wake)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    # --- opening

    @property
    def store(self) -> Store:
        """Return the store, opened at the first call. :raises StorageError: it cannot be opened."""
        if self._store is None:
            with self._lock:
                if self._store is None:
                    from hermes_core.storage.opening import open_store

                    self._store = open_store(self.settings, self.hooks.store_backends)
        return self._store

    def _load_plugins(self) -> PluginHost:
        from hermes_core.builtins.plugin import BUILTINS, OPTIONAL
        from hermes_core.commands.builtin import CommandsPlugin
        from hermes_core.plugins import load
        from hermes_core.plugins.front_end import DEFAULT_FRONT_END
        from hermes_hookspecs.specs import ALL_SPECS

        builtins = (*BUILTINS, ("builtin.commands", CommandsPlugin))
        host = load(
            ALL_SPECS,
            builtins,
            self.settings,
            self.settings.cache_folder,
            keep=(DEFAULT_FRONT_END,),
            optional=OPTIONAL,
        )
        self._notices += host.report.notices  # what failed has been logged, one line each
        return host

    @property
    def _turns(self) -> TurnService:
        """Return the service, made once whichever threads come first: its waiters must hear of each other."""
        with self._lock:
            if self._service is None:
                self._service = self._open_turns()
            return self._service

    def _open_turns(self) -> TurnService:
        from hermes_core.routing.drift import note_policy
        from hermes_core.turns.service import TurnService

        note = note_policy(self.store, self.settings, self._desk.keys, self.clock.now())
        if note:
            self._notices.append(note)
        self.hooks.fire("hermes_after_open", profile=self.profile, home=self.home)
        return TurnService(self.store, self.clock, self.hooks, self.settings, desk=self._desk, waker=self._waker)

    @property
    def _wake_folder(self) -> str | None:
        """Where processes that have this store open find each other."""
        return f"{self.store.location}-wake" if self.store.durable else None

    @cached_property
    def _waker(self) -> LocalWaker:
        from hermes_core.turns.waker import LocalWaker

        return LocalWaker(self.store.change_mark, self._wake_folder)

    def _wake(self, lineage_id: LineageId) -> None:
        """Wake who waits for a lineage, or works in it, here or elsewhere; without an event loop where none runs."""
        from hermes_core.turns.signals import signal_others

        if "_waker" in self.__dict__:
            self._waker.wake(lineage_id)
        elif self._wake_folder is not None:
            signal_others(self._wake_folder, lineage_id)

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

    def plugin_rows(self) -> Sequence[PluginRow]:
        """Load the plugins and return a row for each, built-in ones last."""
        from hermes_core.plugins.report import contract_row

        return [contract_row(row) for row in self.hooks.host.rows()]

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
        from hermes_core.commands.desk import commands_of

        return commands_of(self.hooks, platform)

    def cli_commands(self) -> Sequence[CliCommand]:
        """Return the command line commands of the loaded plugins."""
        return self.hooks.cli_commands()

    # --- routing

    def session_key(self, source: SessionSource) -> SessionKey:
        """Return the key of a source. :raises KeyBuildError: too little identity."""
        return self._desk.key(source)

    def principal(self, source: SessionSource) -> Principal:
        """Return on whose behalf a message from ``source`` reads; the terminal is the operator."""
        return self._desk.principal(source)

    def explain_route(self, source: SessionSource) -> RouteExplanation:
        """Say why a message from ``source`` lands where it lands; changes nothing."""
        from hermes_core.routing.explain import explain

        return explain(self.store, self.settings, self._desk.keys, self._desk.at_home(source))

    def get_or_create_session(
        self, source: SessionSource, force_new: bool = False, touch_activity: bool = True
    ) -> SessionEntry:
        """Return the session of a source, made if need be; callers at once share one answer, or one error."""
        return self._desk.get_or_create(source, force_new=force_new, touch=touch_activity)

    def new_session(self, source: SessionSource) -> SessionEntry:
        """Return a fresh session for a program without a terminal of its own."""
        self._passing.append(source)
        return self._desk.get_or_create(source, force_new=True)

    def resume_session(
        self, source: SessionSource, lineage_id: LineageId, *, bind: bool = True, control_id: InboxId | None = None
    ) -> SessionEntry:
        """Let the key of ``source`` lead to a lineage and return its tip, reopened."""
        if not bind:
            self._passing.append(source)
        return self._desk.resume(source, lineage_id, control_id=control_id)

    def leave_session(
        self,
        source: SessionSource,
        entry: SessionEntry | None,
        *,
        title: str | None = None,
        control_id: InboxId | None = None,
    ) -> SessionSummary | None:
        """Let the key of ``source`` lead nowhere; the next message makes a session. Nothing is lost."""
        return self._desk.leave(source, entry, title=title, control_id=control_id)

    def check_title(self, title: str | None, source: SessionSource) -> str | None:
        """Return a clean title that a session of ``source`` could have. :raises TitleError: too long, or taken."""
        return self._desk.check_title(title, source)

    # --- sessions

    def resolve(self, reference: str, principal: Principal) -> Resolved:
        """Return what a reference means: exact id, else exact title, else unique id prefix."""
        from hermes_core.sessions.resolve import resolve

        return resolve(self.store, reference, principal)

    def turn_state(self, lineage_id: LineageId) -> str:
        """Return what runs in a lineage, in words: ``""`` when nothing does, or that its process is gone."""
        from hermes_core.leases import lease_state

        return lease_state(self.store.lease(lineage_id))

    def rename_session(self, lineage_id: LineageId, title: str | None) -> str | None:
        """Clean and set a title; blank takes it away. :raises TitleError: too long, or taken."""
        return self._desk.rename(lineage_id, title)

    def delete_session(self, lineage_id: LineageId, *, force: bool = False) -> Deleted:
        """Remove a lineage. :raises LeaseBusy: a turn runs, and not ``force``."""
        return self._desk.delete(lineage_id, force=force)

    def export_session(self, session_id: SessionId, lineage: bool = False) -> dict[str, object]:
        """Return one session, or with ``lineage`` all of its segments, as plain data."""
        from hermes_core.sessions.export import export_lineage, export_session
        from hermes_hookspecs.principal import operator

        everybody = operator()
        session = self.store.session(session_id, everybody)
        whole = None if session is None else self.store.lineage(session.lineage_id, everybody)
        if session is None or whole is None:
            raise SessionNotFound(session_id)
        if lineage:
            return export_lineage(self.store, whole, everybody)
        return export_session(self.store, session, whole, everybody)

    def export_sessions(self, principal: Principal, *, source: str | None = None) -> Iterator[dict[str, object]]:
        """Yield every lineage, oldest first, each read when it is its turn."""
        from hermes_core.sessions.export import export_sessions

        return export_sessions(self.store, principal, source=source)

    # --- turns

    def ask(
        self,
        text: str,
        source: SessionSource,
        *,
        entry: SessionEntry | None = None,
        agent: Agent | str | Callable[..., object] | None = None,
        on_event: Callable[[AgentEvent], None] | None = None,
    ) -> TurnResult:
        """Accept a message, wait for its turn, run it and return the answer; for threads without an event loop."""
        import asyncio

        return asyncio.run(self.ask_async(text, source, entry=entry, agent=agent, on_event=on_event))

    async def ask_async(
        self,
        text: str,
        source: SessionSource,
        *,
        entry: SessionEntry | None = None,
        agent: Agent | str | Callable[..., object] | None = None,
        on_event: Callable[[AgentEvent], None] | None = None,
        on_wait: Callable[[str], None] | None = None,
    ) -> TurnResult:
        """Do what :meth:`ask` does, on the running loop."""
        return await self._turns.ask(text, source, entry=entry, agent=agent, on_event=on_event, on_wait=on_wait)

    async def command(self, text: str, source: SessionSource, entry: SessionEntry | None) -> CommandReply | None:
        """Run ``text`` as a slash command; ``None`` when it is none. An unknown one is answered, not run."""
        from hermes_core.commands.desk import run_command

        return await run_command(self, self.hooks, text, source, entry)

    # --- closing

    def close(self) -> None:
        """Let go of everything; a second call does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            passing, self._passing = self._passing, []
        try:
            if self._store is not None:
                self._desk.forget(passing)
                if self._service is not None:
                    self.hooks.fire("hermes_before_close", profile=self.profile)
        finally:
            self.hooks.close()
            if self._store is not None:
                self._store.close()
