"""The gateway as a process: every account runs beside the others until it is told to stop.

Order of leaving: turns may end, what is due is sent, receiving ends, the account is let go. Each step is bounded, and
whatever does not end is found again by the next process: leaving early loses nothing.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, suppress
from logging import DEBUG, INFO, WARNING, getLogger
from typing import TYPE_CHECKING

from hermes_core.gateway.account import Account, House
from hermes_core.gateway.board import Board
from hermes_core.gateway.health import HealthServer
from hermes_core.gateway.journal import Journal, forget_the_dead
from hermes_core.gateway.telling import Counting
from hermes_core.gateway.upkeep import kept_up
from hermes_core.inbox.refusals import RefusalBook
from hermes_core.settling import ended
from hermes_hookspecs.errors import ConfigError, StorageError
from hermes_hookspecs.ports.platform import FAILED, WAITING
from hermes_hookspecs.source import Entrance

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hermes_core.gateway.board import AccountBoard
    from hermes_core.inbox.acceptance import Acceptance
    from hermes_core.profile import Profile
    from hermes_core.turns.service import TurnService
    from hermes_hookspecs.ports.agent import Agent
    from hermes_hookspecs.ports.app import App
    from hermes_hookspecs.ports.platform import Platform

__all__ = ["GatewayProcess"]

_log = getLogger(__name__)

_LISTENER = "builtin.gateway"
_WRITE_S = 1.0
"""Seconds between two looks whether there is something to write about this process."""
_BEAT_S = 10.0
"""Seconds after which it says that it lives, whatever happens."""


class GatewayProcess:
    """One run of a gateway. For one event loop.

    :param platforms: by name, those that are to be run.
    """

    def __init__(
        self,
        app: App,
        profile: Profile,
        turns: TurnService,
        acceptance: Acceptance,
        *,
        platforms: Mapping[str, Platform],
        environ: Mapping[str, str],
        agent: Agent | str | Callable[..., object] | None,
    ) -> None:
        self._app = app
        self._profile = profile
        self._platforms = tuple(platforms)
        self._stop, self._stir = asyncio.Event(), asyncio.Event()
        self.board = Board(profile.clock, self._note)
        self._journal = Journal(profile.settings.folder, self.board)
        self._book = RefusalBook(profile.store, profile.clock)
        house = House(
            app=app,
            profile=profile,
            turns=turns,
            acceptance=acceptance,
            environ=environ,
            agent=agent,
            slots=asyncio.Semaphore(profile.settings.turns.parallel),
            book=self._book,
        )
        self._accounts = [
            Account(house, platform, self.board.account(entrance))
            for platform in platforms.values()
            for entrance in self._entrances(platform)
        ]

    def _entrances(self, platform: Platform) -> Sequence[Entrance]:
        """Return the accounts of a platform; one that cannot say them has failed, and is left out."""
        try:
            return [Entrance(platform.name, alias) for alias in dict.fromkeys(platform.accounts())]
        except Exception as error:  # noqa: BLE001 - a platform's fault is its own: the others run on
            self.board.account(Entrance(platform.name)).set(FAILED, f"its accounts cannot be read: {error}")
            return ()

    def stop(self) -> None:
        """Ask it to leave."""
        self._stop.set()

    async def run(self) -> None:
        """Run until :meth:`stop` is called or the task is cancelled.

        :raises ConfigError: no account is configured, or none can be run as it is configured.
        :raises StoreStopped: the store takes no more writes.
        """
        accounts = [account for account in self._accounts if account.prepare()]
        if not accounts:
            raise self._nothing_to_run()
        folder, settings = self._profile.settings.folder, self._profile.settings.gateway
        forget_the_dead(folder)
        _log.info("the gateway of profile %s begins with %s", self._profile.profile, self._named())
        async with AsyncExitStack() as stack:
            self._profile.hooks.host.register(_LISTENER, Counting(self.board))
            stack.callback(self._profile.hooks.host.unregister, _LISTENER)
            health = HealthServer(self.board, self._profile.store, settings.health_port)
            await health.start()
            stack.push_async_callback(health.stop)
            keeping = asyncio.create_task(health.keep(), name="hermes-gateway-health")
            stack.push_async_callback(ended, keeping)
            self._write()
            stack.callback(self._leave)
            writing = asyncio.create_task(self._keep_writing(), name="hermes-gateway-journal")
            stack.push_async_callback(ended, writing)
            await stack.enter_async_context(kept_up(self._app))
            await self._run_accounts(accounts)

    async def _run_accounts(self, accounts: Sequence[Account]) -> None:
        """Run accounts side by side; the first that ends by a fault of the store ends all of them."""
        running = [asyncio.create_task(account.run()) for account in accounts]
        running.append(asyncio.create_task(self._told_to_stop()))
        try:
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in running:
                if task.done():
                    task.result()
        finally:
            self.board.stopping = True
            with suppress(OSError):
                self._journal.write(self._profile.clock.now())
            for task in running:
                task.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            await self._write_book()

    async def _told_to_stop(self) -> None:
        await self._stop.wait()

    def _nothing_to_run(self) -> ConfigError:
        failed = self.board.accounts()
        if failed:
            first = failed[0]
            more = f" (and {len(failed) - 1} more)" if failed[1:] else ""
            return ConfigError(f"{first.entrance} cannot be run: {first.detail}{more}", section="platforms")
        broken = self._profile.hooks.host.report.of("failed")
        if broken:  # where the platform's own settings are wrong, it is not among the platforms
            why = f"no chat platform can be run; plugin {broken[0].name!r} failed: {broken[0].reason}"
            return ConfigError(why, section="platforms")
        how = "install one, as hermes-sessions-feishu, and give it an account in config.toml"
        if self._platforms:
            how = f"give {' or '.join(sorted(self._platforms))} an account in config.toml"
        return ConfigError(
            f"no chat platform is configured: {how}; the README of its plugin shows how", section="platforms"
        )

    def _named(self) -> str:
        return ", ".join(str(one.entrance) for one in self.board.accounts())

    # --- what it says of itself

    def _note(self, board: AccountBoard) -> None:
        self._stir.set()
        level = DEBUG if not board.is_news else WARNING if board.state in (FAILED, WAITING) else INFO
        what = f"{board.state}: {board.detail}" if board.detail else board.state
        fields = {"platform": board.entrance.platform, "account": board.entrance.account_id, "state": board.state}
        _log.log(level, "%s is %s", board.entrance, what, extra=fields)

    async def _keep_writing(self) -> None:
        clock, written, said = self._profile.clock, self._profile.clock.monotonic(), self.board.accounts()
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_WRITE_S):
                    await self._stir.wait()
            self._stir.clear()
            known = self.board.accounts()
            if known != said or clock.monotonic() - written >= _BEAT_S:
                written, said = clock.monotonic(), known
                self._write()
            await self._write_book()

    def _write(self) -> None:
        try:
            self._journal.write(self._profile.clock.now())
        except OSError as error:
            _log.warning("what this gateway does cannot be written down: %s", error)

    async def _write_book(self) -> None:
        try:
            await self._book.write()
        except StorageError as error:
            _log.debug("refusals are written later: %s", error)

    def _leave(self) -> None:
        with suppress(OSError):
            self._journal.remove()
