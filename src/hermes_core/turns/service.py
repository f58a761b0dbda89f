"""Turns as the facade offers them: whose agent, which session, which engine."""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING

from hermes_core.inbox.door import entrance_of, waiting_draft
from hermes_core.leases import holder_here
from hermes_core.turns.default_agent import default_agent
from hermes_core.turns.engine import TurnEngine, TurnRequest
from hermes_core.turns.functions import FunctionAgent
from hermes_core.turns.outgoing import OutgoingLimits
from hermes_core.turns.sweeping import DeadTurnSweep
from hermes_core.turns.waiting import LeaseTimes
from hermes_hookspecs.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.config.sections import Settings
    from hermes_core.hooks import Hooks
    from hermes_core.sessions.desk import SessionDesk
    from hermes_core.turns.maintenance import MaintenanceTurns
    from hermes_core.turns.waker import LocalWaker
    from hermes_hookspecs.approvals import Approval
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ids import InboxId, LineageId, SessionKey
    from hermes_hookspecs.messages import Attachment
    from hermes_hookspecs.ports.agent import Agent, AgentEvent
    from hermes_hookspecs.ports.app import CompressionReport, TurnResult
    from hermes_hookspecs.ports.search import SearchIndex
    from hermes_hookspecs.ports.services import AttachmentStore
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.sessions import SessionEntry
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.turns import LeaseHolder

__all__ = ["TurnService"]


class TurnService:
    """Runs turns for callers who wait."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        hooks: Hooks,
        settings: Settings,
        *,
        desk: SessionDesk,
        waker: LocalWaker,
        index: Callable[[], SearchIndex],
        files: Callable[[], AttachmentStore],
    ) -> None:
        self._store = store
        self._clock = clock
        self._hooks = hooks
        self._settings = settings
        self._desk = desk
        self.waker = waker
        self._index = index
        self._files = files

    @cached_property
    def engine(self) -> TurnEngine:
        """Return the engine, with the times that are in force."""
        turns, outbox = self._settings.turns, self._settings.outbox
        return TurnEngine(
            store=self._store,
            clock=self._clock,
            hooks=self._hooks,
            waker=self.waker,
            times=LeaseTimes(
                ttl_s=turns.lease_ttl_s,
                renew_s=turns.lease_renew_s,
                notice_s=turns.busy_notice_s,
                wait_s=turns.lease_wait_s,
            ),
            max_waiting=self._settings.inbox.max_waiting,
            inactivity_s=self._settings.agent.inactivity_timeout_s,
            cleanup_s=self._settings.session_reset.cleanup_timeout_s,
            recovery_attempts=self._settings.gateway.recovery_attempts,
            index=self._index,
            compression=self._settings.compression,
            files=self._files,
            approval_timeout_s=self._settings.agent.approval_timeout_s,
            outgoing=OutgoingLimits(files=outbox.max_files, file_bytes=outbox.max_file_bytes),
        )

    def close(self) -> None:
        """End what runs beside turns."""
        if "engine" in self.__dict__:
            self.engine.around.close()

    @cached_property
    def maintenance(self) -> MaintenanceTurns:
        """Return what compresses on a person's behalf."""
        from hermes_core.turns.maintenance import MaintenanceTurns

        return MaintenanceTurns(self.engine.around, self.engine.compressor)

    async def compress(
        self, lineage_id: LineageId, source: SessionSource, focus: str, control_id: InboxId | None
    ) -> CompressionReport:
        """Compress a session; a turn whose process died is closed first. Errors as in :class:`MaintenanceTurns`."""
        await asyncio.to_thread(self.recovery.close_dead_turns)
        return await self.maintenance.compress(lineage_id, self._holder(source), focus, control_id)

    async def uncompress(
        self, lineage_id: LineageId, source: SessionSource, control_id: InboxId | None
    ) -> CompressionReport:
        """Take the last compression back; the rest as in :meth:`compress`."""
        await asyncio.to_thread(self.recovery.close_dead_turns)
        return await self.maintenance.uncompress(lineage_id, self._holder(source), control_id)

    def _holder(self, source: SessionSource) -> LeaseHolder:
        source = self._desk.at_home(source)
        return holder_here(entrance_of(source), self._desk.key(source))

    @cached_property
    def recovery(self) -> DeadTurnSweep:
        """Return what closes the turns of dead processes."""
        return DeadTurnSweep(self.engine.around)

    def command_names(self) -> tuple[tuple[str, str], ...]:
        """Return the slash commands, ``(name, summary)``, for agents."""
        return tuple((one.name, one.summary) for one in self._hooks.commands().values())

    async def ask(
        self,
        text: str,
        source: SessionSource,
        *,
        entry: SessionEntry | None,
        agent: Agent | str | Callable[..., object] | None,
        on_event: Callable[[AgentEvent], None] | None,
        on_wait: Callable[[str], None] | None,
        on_approval: Callable[[Approval], None] | None = None,
        attachments: tuple[Attachment, ...] = (),
    ) -> TurnResult:
        """Accept, wait, run, answer; errors as :meth:`TurnEngine.run` raises them."""
        source = self._desk.at_home(source)
        runner = self.agent(agent)
        entry = await asyncio.to_thread(self._desk.entry_for, source, entry)
        key = self._desk.key(source)
        if self._desk.resets.active:
            await self._tell_of_reset(key, on_event)
        draft = waiting_draft(
            self._hooks,
            text,
            source,
            session_key=key,
            lineage_id=entry.lineage_id,
            now=self._clock.now(),
            attachments=attachments,
        )
        request = TurnRequest(
            draft=draft,
            entry=entry,
            principal=self._desk.principal(source),
            agent=runner,
            tools=self._hooks.tools(),
            commands=self.command_names(),
            on_event=on_event,
            on_wait=on_wait,
            on_approval=on_approval,
        )
        return await self.engine.run(request)

    async def _tell_of_reset(self, key: SessionKey, on_event: Callable[[AgentEvent], None] | None) -> None:
        """Tell who waits for the answer that the conversation before this one ended by itself."""
        from hermes_hookspecs.ports.agent import Progress

        owed = await asyncio.to_thread(self._desk.resets.notice, key)
        if owed is not None and on_event is not None:
            on_event(Progress(label=owed.text))
            await asyncio.to_thread(self._desk.resets.drop_notice, key)

    def agent(self, wanted: Agent | str | Callable[..., object] | None) -> Agent:
        """Return the agent that is meant: an object, a function, a name, or the configured one.

        :raises ConfigError: there is no agent of that name.
        """
        if wanted is not None and not isinstance(wanted, str):
            run = getattr(wanted, "run", None)
            if run is not None:
                found: Agent = wanted  # type: ignore[assignment]  # has what the port asks for
                self._desk.resets.closings.know(found)
                return found
            if callable(wanted):
                return FunctionAgent(wanted)
            raise TypeError("an agent is a name, a function, or an object with run()")
        agents = self._hooks.agents()
        name = wanted or self._settings.agent.runner or default_agent(agents)
        if name not in agents:
            known = ", ".join(sorted(agents)) or "none"
            origin = None if wanted else self._settings.origins.get("agent.runner", "default")
            place = f"{origin}: " if origin else ""
            raise ConfigError(
                f"{place}there is no agent {name!r}; there are: {known}",
                origin=origin,
                section="agent",
                key="runner",
            )
        return agents[name]
