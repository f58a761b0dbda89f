"""An open profile: its settings, plugins, store, waker and turns, each opened when it is first needed.

A command that only reads pays neither for plugins nor for an event loop.
"""

from __future__ import annotations

from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING

from hermes_core.hooks import Hooks
from hermes_core.sessions.desk import SessionDesk
from hermes_hookspecs.clock import SystemClock
from hermes_hookspecs.errors import ConfigError, SessionNotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from hermes_core.commands.desk import CommandBook
    from hermes_core.config.sections import Settings
    from hermes_core.inbox.acceptance import Acceptance
    from hermes_core.plugins.host import PluginHost
    from hermes_core.search.desk import SearchDesk
    from hermes_core.turns.service import TurnService
    from hermes_core.turns.waker import LocalWaker
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.context import WindowReport
    from hermes_hookspecs.ids import LineageId, SessionId
    from hermes_hookspecs.inbox import AcceptResult, MessageEvent
    from hermes_hookspecs.messages import MessageDraft
    from hermes_hookspecs.operations import Deleted
    from hermes_hookspecs.ports.app import App
    from hermes_hookspecs.ports.conversations import Conversations
    from hermes_hookspecs.ports.oversight import Oversight
    from hermes_hookspecs.ports.services import AttachmentStore
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.principal import Owner, Principal
    from hermes_hookspecs.source import Entrance, SessionSource
    from hermes_hookspecs.usage import UsageSum

__all__ = ["Profile"]


class Profile:
    """What an app holds. Thread-safe.

    :param settings: effective settings. clock: ``None`` for the machine's.
    :param environ: where platforms find secrets. reopen: opens the same profile with the settings as they are then.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock | None = None,
        environ: Mapping[str, str] | None = None,
        reopen: Callable[[], App] | None = None,
    ) -> None:
        self.settings = settings
        self.environ: Mapping[str, str] = {} if environ is None else environ
        self.reopen = _cannot_reopen if reopen is None else reopen
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
        self.desk = SessionDesk(lambda: self.store, self.hooks, settings, self.clock, self.wake_topic)
        self.desk.carried = _carried

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

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
        from hermes_core.commands.approvals import ApprovalCommandsPlugin
        from hermes_core.commands.builtin import CommandsPlugin
        from hermes_core.plugins import load
        from hermes_core.plugins.front_end import DEFAULT_FRONT_END
        from hermes_hookspecs.specs import ALL_SPECS

        builtins = (
            *BUILTINS,
            ("builtin.commands", CommandsPlugin),
            ("builtin.approvals", ApprovalCommandsPlugin),
        )
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

        note = note_policy(self.store, self.settings, self.desk.keys, self.clock.now())
        if note:
            self._notices.append(note)
        titlers = self.hooks.titlers()
        if titlers:
            from hermes_core.sessions.titling import Titling

            titling = Titling(self.store, self.clock, titlers, self.hooks.fire)
            self.hooks.host.register("builtin.titles", titling)
        self.hooks.fire("hermes_after_open", profile=self.profile, home=self.home)
        return TurnService(
            self.store,
            self.clock,
            self.hooks,
            self.settings,
            desk=self.desk,
            waker=self._waker,
            index=lambda: self._search.search_index,
            files=lambda: self.attachments,
        )

    @cached_property
    def attachments(self) -> AttachmentStore:
        """Return where the bytes of attachments are kept: where a plugin says, else a folder of the profile."""
        from hermes_core.context.attachments import AttachmentFolder

        folder, most_bytes = str(self.settings.folder), self.settings.attachments.max_bytes
        return self.hooks.attachment_store(folder) or AttachmentFolder(f"{folder}/attachments", most_bytes=most_bytes)

    def account_folder(self, platform: str, account_id: str) -> Path:
        """Return the folder of an account's adapter, made with mode 0700."""
        from hermes_core.config.places import account_places

        *_, own = places = account_places(self.settings.folder, platform, account_id)
        for place in places:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        return own

    def context_report(self, session_id: SessionId) -> WindowReport:
        """Return what a model would be sent now in a session. :raises SessionNotFound: no such session."""
        from hermes_core.context.report import read_report

        return self.store.submit_read(lambda reader: read_report(reader, session_id)).result()

    def delete_session(self, lineage_id: LineageId, *, force: bool = False) -> Deleted:
        """Remove a lineage. :raises LeaseBusy: a turn runs, and not ``force``."""
        deleted = self.desk.delete(lineage_id, force=force)
        self.attachments.drop(lineage_id)  # rows first, files after: a sweep finds what a kill leaves in between
        return deleted

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

    @cached_property
    def command_book(self) -> CommandBook:
        """Return the slash commands, as this profile names and allows them."""
        from hermes_core.commands.desk import CommandBook

        return CommandBook(self.hooks, self.settings)

    @property
    def conversations(self) -> Conversations:
        """Return what can be done with conversations beside speaking in them."""
        from hermes_core.commands.conversations import ConversationDesk

        return ConversationDesk(
            self.store,
            self.clock,
            self.desk,
            self.settings,
            turns=lambda: self._turns,
            files=lambda: self.attachments,
        )

    @property
    def oversight(self) -> Oversight:
        """Return what people see of agents' work, and have to say in it."""
        from hermes_core.turns.oversight import OversightDesk

        return OversightDesk(self.store, self.clock, self.desk, self.wake_topic)

    @property
    def default_agent(self) -> str:
        """Return the name of the agent that answers where nobody names one."""
        from hermes_core.turns.default_agent import default_agent

        return self.settings.agent.runner or default_agent(self.hooks.agents())

    def agent_setup(self) -> str:
        """Return one line that says how to configure the agent that would answer by default, ``""`` where one does."""
        from hermes_core.turns.default_agent import setup_line

        return "" if self.settings.agent.runner else setup_line(self.hooks.agents())

    def usage_of(
        self,
        principal: Principal,
        *,
        session_id: SessionId | None = None,
        lineage_id: LineageId | None = None,
        owner: Owner | None = None,
        since: int | None = None,
    ) -> UsageSum:
        """Return what was used in a session, a lineage, by a person, or in all that may be seen."""
        (group,) = self.store.usage_sums(
            principal, session_id=session_id, lineage_id=lineage_id, owner=owner, since=since
        )
        return group.sum

    @property
    def wake_folder(self) -> str | None:
        """Where processes that have this store open find each other."""
        return f"{self.store.location}-wake" if self.store.durable else None

    @cached_property
    def _waker(self) -> LocalWaker:
        from hermes_core.turns.waker import LocalWaker

        return LocalWaker(self.store.change_mark, self.wake_folder)

    def wake_topic(self, topic: str) -> None:
        """Wake who waits for a topic, or works in a lineage, here or elsewhere; needs no event loop."""
        from hermes_core.turns.signals import signal_others

        if "_waker" in self.__dict__:
            self._waker.wake(topic)
        elif self.wake_folder is not None:
            signal_others(self.wake_folder, topic)

    @cached_property
    def _search(self) -> SearchDesk:
        from hermes_core.search.desk import SearchDesk

        return SearchDesk(lambda: self.store, self.hooks.search_sources, self._notices.append)

    @cached_property
    def _acceptance(self) -> Acceptance:
        from hermes_core.inbox.acceptance import Acceptance

        return Acceptance(
            store=self.store,
            clock=self.clock,
            hooks=self.hooks,
            desk=self.desk,
            settings=self.settings,
            is_command=self.command_book.is_command,
            wake=self.wake_servers,
            make_way=lambda lineages: self._turns.recovery.make_way(lineages),  # noqa: PLW0108 - opened late
        )

    async def say(self, event: MessageEvent) -> AcceptResult:
        """Store what a command says in the name of whoever typed it."""
        (result,) = await self._acceptance.accept((event,), (), said=True)
        return result

    def wake_servers(self, entrances: Iterable[Entrance]) -> None:
        """Wake those who serve entrances: there may be something to answer, and something to send."""
        from hermes_core.outbox.topics import outbox_topic
        from hermes_core.turns.topics import WORK

        self.wake_topic(WORK)
        for topic in {outbox_topic(entrance) for entrance in entrances}:
            self.wake_topic(topic)

    def close(self) -> None:
        """Let go of everything; a second call does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            passing, self._passing = self._passing, []
        try:
            if self._store is not None:
                self.desk.forget(passing)
                if self._service is not None:
                    self._service.close()
                    self.hooks.fire("hermes_before_close", profile=self.profile)
                self.desk.close()
        finally:
            self.hooks.close()
            if self._store is not None:
                self._store.close()


def _cannot_reopen() -> App:
    raise ConfigError("this profile was opened with settings of its own, which are read nowhere")


def _carried(store: Store, lineage_id: LineageId, now: int) -> MessageDraft | None:
    from hermes_core.commands.carrying import carried_summary

    return carried_summary(store, lineage_id, now)
