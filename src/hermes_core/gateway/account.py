"""One account of a platform: owned by one process, received from, answered and sent to."""

from __future__ import annotations

import asyncio
from logging import getLogger
from typing import TYPE_CHECKING

import attrs

from hermes_core.gateway.inlet import AccountInlet
from hermes_core.gateway.ownership import Ownership
from hermes_core.gateway.receiving import Receiver
from hermes_core.gateway.service import Crew
from hermes_core.inbox.admission import Admission
from hermes_core.outbox.results import one_line
from hermes_core.settling import ended
from hermes_hookspecs.errors import ConfigError
from hermes_hookspecs.ports.gateway import ELSEWHERE
from hermes_hookspecs.ports.platform import CONNECTING, FAILED, AccountSetup, ServedEntrance

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hermes_core.gateway.board import AccountBoard
    from hermes_core.inbox.acceptance import Acceptance
    from hermes_core.inbox.refusals import RefusalBook
    from hermes_core.profile import Profile
    from hermes_core.turns.service import TurnService
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ports.agent import Agent
    from hermes_hookspecs.ports.app import App
    from hermes_hookspecs.ports.platform import Platform, PlatformAdapter
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.state import StateEntry

__all__ = ["Account", "House"]

_log = getLogger(__name__)

_LOOK_S = 0.5
"""Seconds after which an account that another process owns is asked for again."""


@attrs.frozen(kw_only=True, eq=False)
class House:
    """What all accounts of a gateway share.

    Attributes:
        environ: where adapters find secrets. slots: bounds the turns of all accounts together. book: counts refusals.
    """

    app: App
    profile: Profile
    turns: TurnService
    acceptance: Acceptance
    environ: Mapping[str, str]
    agent: Agent | str | Callable[..., object] | None
    slots: asyncio.Semaphore
    book: RefusalBook


class Account:
    """One account, from its adapter to its answers. For one event loop."""

    def __init__(self, house: House, platform: Platform, board: AccountBoard) -> None:
        self._house = house
        self._platform = platform
        self._board = board
        self._adapter: PlatformAdapter | None = None

    def prepare(self) -> bool:
        """Make the adapter; return whether there is one. Why there is none stands on the board."""
        profile, entrance = self._house.profile, self._board.entrance
        try:
            setup = AccountSetup(
                account_id=entrance.account_id,
                state=_State(profile.store, profile.clock, self._platform.name),
                folder=profile.account_folder(self._platform.name, entrance.account_id),
                clock=profile.clock,
                environ=self._house.environ,
            )
            self._adapter = self._platform.adapter(setup)
        except ConfigError as error:
            self._board.set(FAILED, one_line(error))
        except Exception as error:  # noqa: BLE001 - a platform's fault is its own: the others run on
            _log.debug("the adapter of %s could not be made", entrance, exc_info=error)
            self._board.set(FAILED, f"its adapter could not be made: {one_line(error)}")
        return self._adapter is not None

    async def run(self) -> None:
        """Own the account, as soon as nobody else does; receive, answer and send until cancelled.

        :raises StoreStopped: the store takes no more writes.
        """
        if self._adapter is None:
            return
        profile = self._house.profile
        ownership = Ownership(profile.settings.folder, self._board.entrance)
        try:
            await self._own(ownership)
            await self._work(self._adapter)
        finally:
            ownership.release()

    async def _own(self, ownership: Ownership) -> None:
        while not ownership.take(self._house.profile.clock.now()):
            self._board.set(ELSEWHERE, f"served by {ownership.owner()}; this gateway takes over when it ends")
            await asyncio.sleep(_LOOK_S)
        self._board.set(CONNECTING)

    async def _work(self, adapter: PlatformAdapter) -> None:
        """Receive beside answering and sending; receiving ends last: what is sent may need the connection."""
        crew = self._crew(adapter)
        working = asyncio.create_task(crew.run(), name=f"hermes-crew-{self._board.entrance}")
        receiving = asyncio.create_task(self._receiver(adapter).run(), name=f"hermes-receiver-{self._board.entrance}")
        try:
            done, _ = await asyncio.wait({working, receiving}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            await working  # nothing is received any more; what waits is answered, and sent where that works
        finally:
            try:
                await ended(working)
            finally:
                await ended(receiving)

    def _crew(self, adapter: PlatformAdapter) -> Crew:
        house, profile = self._house, self._house.profile
        served = ServedEntrance(entrance=self._board.entrance, sender=adapter, abilities=self._platform.abilities)
        return Crew(house.app, profile, house.turns, (served,), agent=house.agent, slots=house.slots)

    def _receiver(self, adapter: PlatformAdapter) -> Receiver:
        profile = self._house.profile
        admission = Admission(
            self._house.acceptance,
            store=profile.store,
            clock=profile.clock,
            hooks=profile.hooks,
            desk=profile.desk,
            settings=profile.settings,
            book=self._house.book,
            admits=self._platform.abilities.admits,
            wake=profile.wake_servers,
        )
        inlet = AccountInlet(admission, self._board, profile.clock)
        return Receiver(
            adapter,
            inlet,
            self._board,
            settings=profile.settings.gateway,
            clock=profile.clock,
            leave_s=self._platform.abilities.leave_s,
        )


class _State:
    """What an adapter remembers (:class:`~hermes_hookspecs.ports.platform.StateReader`)."""

    def __init__(self, store: Store, clock: Clock, namespace: str) -> None:
        self._store = store
        self._clock = clock
        self._namespace = namespace

    def get(self, key: str) -> StateEntry | None:
        """Return one entry, ``None`` where there is none or it has expired."""
        return self._store.state(self._namespace, key, now=self._clock.now())

    def list(self, prefix: str = "") -> Sequence[StateEntry]:
        """Return the entries whose keys begin with ``prefix``, sorted by key."""
        return self._store.states(self._namespace, now=self._clock.now(), prefix=prefix)
