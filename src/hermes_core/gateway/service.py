"""Serving entrances: one worker that answers, one deliverer that sends, both until they are told to leave."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from hermes_core.commands.controls import ControlRunner
from hermes_core.context.fetching import AttachmentFetching, fetcher_of
from hermes_core.gateway.upkeep import kept_up
from hermes_core.outbox.deliverer import Deliverer
from hermes_core.settling import ended
from hermes_core.turns.presence import door
from hermes_core.turns.serving import Serving
from hermes_core.turns.worker import Worker
from hermes_hookspecs.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_core.profile import Profile
    from hermes_core.turns.service import TurnService
    from hermes_hookspecs.outbox import OpenedThread
    from hermes_hookspecs.ports.agent import Agent
    from hermes_hookspecs.ports.app import App
    from hermes_hookspecs.ports.platform import ServedEntrance
    from hermes_hookspecs.source import SessionSource

__all__ = ["Crew", "serve"]


async def serve(
    app: App,
    profile: Profile,
    turns: TurnService,
    entrances: Sequence[ServedEntrance],
    *,
    agent: Agent | str | Callable[..., object] | None,
    until_idle: bool,
) -> None:
    """Do what :meth:`~hermes_hookspecs.ports.app.App.work` says."""
    if not entrances:
        return
    crew = Crew(app, profile, turns, entrances, agent=agent)
    if until_idle:
        await crew.until_idle()
        return
    async with kept_up(app):
        await crew.run()


class Crew:
    """Who answers and sends for some entrances of one process.

    :param slots: bounds the turns of several crews together; ``None`` for ``turns.parallel`` of its own.
    """

    def __init__(
        self,
        app: App,
        profile: Profile,
        turns: TurnService,
        entrances: Sequence[ServedEntrance],
        *,
        agent: Agent | str | Callable[..., object] | None,
        slots: asyncio.Semaphore | None = None,
    ) -> None:
        self._deliverer = Deliverer(
            store=profile.store,
            clock=profile.clock,
            hooks=profile.hooks,
            waker=turns.waker,
            served=tuple(entrances),
            settings=profile.settings.outbox,
            ttl_s=profile.settings.turns.lease_ttl_s,
            thread_route=lambda source: _thread_route(profile, source),
            stream_s=profile.settings.stream_interval_of,
            files=lambda: profile.attachments,
        )
        controls = ControlRunner(app, profile.command_book, profile.desk.entry_behind, profile.say)
        serving = Serving(
            entrances=tuple(one.entrance for one in entrances),
            agent=turns.agent(agent),
            tools=profile.hooks.tools(),
            commands=turns.command_names(),
            desk=profile.desk,
            settings=profile.settings,
            run_control=controls.run,
            waits_its_turn=controls.waits_its_turn,
            overtakes=controls.overtakes,
            follow=self._deliverer.follow,
            fetch=self._fetching(profile, entrances).fetch,
        )
        limits = profile.settings.turns
        self._drain_s = limits.drain_s
        self._worker = Worker(turns.engine, serving, parallel=limits.parallel, drain_s=limits.drain_s, slots=slots)

    @staticmethod
    def _fetching(profile: Profile, entrances: Sequence[ServedEntrance]) -> AttachmentFetching:
        """Return what fetches attachments: at the entrances whose adapter can."""
        return AttachmentFetching(
            profile.store,
            lambda: profile.attachments,
            {door(one.entrance): fetcher for one in entrances if (fetcher := fetcher_of(one.sender)) is not None},
            settings=profile.settings.attachments,
            clock=profile.clock,
        )

    async def until_idle(self) -> None:
        """Answer and send until nothing is left to do; see :meth:`~hermes_hookspecs.ports.app.App.work`."""
        await self._worker.run(until_idle=True)
        await self._deliverer.until_idle()

    async def run(self) -> None:
        """Answer and send until cancelled; then let turns end, and send what is due, each within ``turns.drain_s``.

        :raises StoreStopped: the store takes no more writes.
        """
        await _both(self._worker, self._deliverer, self._drain_s)


async def _both(worker: Worker, deliverer: Deliverer, drain_s: float) -> None:
    """Run both until cancelled, or until one of them fails; turns that end while leaving are still delivered.

    :param drain_s: how long what is due by then may be sent; the rest stays in the outbox.
    """
    sending = asyncio.create_task(deliverer.run())
    answering = asyncio.create_task(worker.run())
    try:
        await asyncio.wait({sending, answering}, return_when=asyncio.FIRST_COMPLETED)
        for task in (answering, sending):
            if task.done():
                task.result()
    finally:
        try:
            await ended(answering)
            if not sending.done():
                with suppress(TimeoutError, StorageError):
                    async with asyncio.timeout(drain_s):
                        await deliverer.until_idle()
        finally:
            await ended(sending)


def _thread_route(profile: Profile, source: SessionSource) -> OpenedThread:
    from hermes_hookspecs.outbox import OpenedThread

    desk = profile.desk
    home = desk.at_home(source)
    return OpenedThread(key=desk.key(home), key_version=desk.keys.version, source=home, policy=desk.policy(home))
