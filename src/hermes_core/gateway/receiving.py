"""Keeping one adapter running: a run that fails, or falls silent, is followed by another one, ever later.

Whatever happens here is of this account alone; the others hear nothing of it.
"""

from __future__ import annotations

import asyncio
from logging import getLogger
from random import random
from typing import TYPE_CHECKING

from hermes_core.gateway.board import TRIED_AGAIN
from hermes_core.outbox.results import one_line
from hermes_core.settling import abandon
from hermes_hookspecs.errors import AuthFailed, ConfigError, StoreStopped
from hermes_hookspecs.ports.platform import CONNECTED, CONNECTING, FAILED, WAITING

if TYPE_CHECKING:
    from hermes_core.config.sections import GatewaySettings
    from hermes_core.gateway.board import AccountBoard
    from hermes_core.gateway.inlet import AccountInlet
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ports.platform import PlatformAdapter

__all__ = ["Receiver"]

_log = getLogger(__name__)

_STEADY_S = 60.0
"""Seconds of a run from which on the next failure is a first one."""
_SILENT = "nothing was heard for {:g} s; connecting anew"


class Receiver:
    """Runs an adapter again and again. For one event loop.

    :param leave_s: seconds in which an adapter that is asked to end has to have its batch in hand stored.
    """

    def __init__(
        self,
        adapter: PlatformAdapter,
        inlet: AccountInlet,
        board: AccountBoard,
        *,
        settings: GatewaySettings,
        clock: Clock,
        leave_s: float,
    ) -> None:
        self._adapter = adapter
        self._leave_s = leave_s
        self._inlet = inlet
        self._board = board
        self._settings = settings
        self._clock = clock
        self._failures = 0

    async def run(self) -> None:
        """Receive until cancelled; return when only a person can help.

        :raises StoreStopped: the store takes no more writes.
        """
        while True:
            self._inlet.begin()
            began = self._clock.monotonic()
            try:
                reason = await self._once()
            except (AuthFailed, ConfigError) as error:
                self._board.set(FAILED, one_line(error))
                return
            except StoreStopped:
                raise
            except Exception as error:  # noqa: BLE001 - an adapter may raise anything; the next run may go better
                _log.debug("the adapter of %s failed", self._board.entrance, exc_info=error)
                reason = one_line(error)
            if self._clock.monotonic() - began >= _STEADY_S:
                self._failures = 0
            self._failures += 1
            wait_s = self._back_off_s()
            self._board.set(WAITING, f"{reason}{TRIED_AGAIN}{wait_s:.0f} s" if wait_s >= 1 else reason)
            await asyncio.sleep(wait_s)

    async def _once(self) -> str:
        """Run the adapter until it ends; return why. A cancelled one has stored its batch in hand, or is left."""
        task = asyncio.create_task(self._adapter.run(self._inlet), name=f"hermes-adapter-{self._board.entrance}")
        try:
            while not task.done():
                left_s = self._silent_in_s()
                if left_s is not None and left_s <= 0:
                    return _SILENT.format(self._settings.watchdog_s)
                await asyncio.wait({task}, timeout=self._settings.watchdog_s if left_s is None else left_s)
            task.result()
        except asyncio.CancelledError:
            if not (task.done() and task.cancelled()) or _is_cancelled():
                raise
            return "the adapter cancelled itself"
        finally:
            await self._end(task)
        return "the adapter ended"

    def _silent_in_s(self) -> float | None:
        """Return the seconds until an adapter that promised to be heard is silent for too long, ``None`` for none."""
        if self._inlet.heard is not None and self._board.state == CONNECTED:
            since = self._inlet.heard
        elif self._board.state == CONNECTING:
            since = self._inlet.stirred
        else:
            return None
        return since + self._settings.watchdog_s - self._clock.monotonic()

    async def _end(self, task: asyncio.Task[None]) -> None:
        if task.done():
            return
        task.cancel()
        await asyncio.wait({task}, timeout=self._leave_s)
        if not task.done():
            _log.warning("the adapter of %s does not end and is left behind", self._board.entrance)
            abandon(task)
        elif not task.cancelled():
            task.exception()  # looked at: it was ending anyway

    def _back_off_s(self) -> float:
        """Return the seconds until the next run: doubled with every failure, and spread by half either way."""
        doubled = self._settings.retry_first_s * 2.0 ** min(self._failures - 1, 40)
        return min(doubled, self._settings.retry_most_s) * (0.5 + random())  # noqa: S311 - spreads, hides nothing


def _is_cancelled() -> bool:
    me = asyncio.current_task()
    return me is not None and me.cancelling() > 0
