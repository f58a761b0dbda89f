"""Socket Mode: a connection is held, replaced before it ends, and made again when it breaks or is silent."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from hermes_hookspecs.errors import AuthFailed, Rejected, RetryLater
from hermes_hookspecs.ports.platform import CONNECTED, WAITING
from hermes_slack.connection import HELLO, connect
from hermes_slack.intake import COMMANDS, EVENTS, Item
from hermes_slack.wire import mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    import aiohttp

    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ports.platform import Inlet
    from hermes_slack.api import SlackApi
    from hermes_slack.config import SlackConfig
    from hermes_slack.connection import Connection
    from hermes_slack.intake import Intake
    from hermes_slack.patience import Patience

__all__ = ["SocketMode"]

_SHORT_S = 5.0
"""A connection that did not last so long counts as one that failed: else too many of them would chase each other."""
_DRAIN_S = 10.0


class SocketMode:
    """The way in of one account. For one event loop.

    :param api: with the app-level token. patience: waits between tries.
    """

    def __init__(
        self,
        *,
        api: SlackApi,
        session: aiohttp.ClientSession,
        config: SlackConfig,
        intake: Intake,
        clock: Clock,
        patience: Patience,
    ) -> None:
        self._api = api
        self._session = session
        self._config = config
        self._intake = intake
        self._clock = clock
        self._patience = patience
        self._old: set[asyncio.Task[None]] = set()

    async def run(self, inlet: Inlet) -> None:
        """Receive until cancelled. :raises AuthFailed: the token is refused, or Socket Mode was turned off."""
        try:
            while True:
                await self._once(inlet)
        finally:
            for task in self._old:
                task.cancel()
            if self._old:
                await asyncio.wait(self._old)

    async def _once(self, inlet: Inlet) -> None:
        """Hold one connection until it is over."""
        began = self._clock.monotonic()
        try:
            connection = await self._connect()
            over = await self._held(connection, inlet)
        except RetryLater as error:
            over, began = str(error), self._clock.monotonic()
        lasted = self._clock.monotonic() - began
        if over:
            inlet.report(WAITING, over)
        if lasted >= _SHORT_S:
            self._patience.forget()
            if not over:
                return
        await self._patience.wait()

    async def _connect(self) -> Connection:
        try:
            answer = await self._api.call("apps.connections.open")
        except Rejected as error:
            raise AuthFailed(str(error)) from error  # without a socket nothing goes; a person must act
        return await connect(self._session, text(answer, "url"), self._config, self._clock)

    async def _held(self, connection: Connection, inlet: Inlet) -> str:
        """Read a connection; return why it is over, ``""`` where it is still drained beside the next one."""
        stays = False
        try:
            over = await connection.read(partial(self._on_frame, inlet), inlet.alive)
            stays = not over
        finally:
            if not stays:
                await connection.close()
        if stays:
            task = asyncio.create_task(self._drain(connection, inlet), name="slack-drain")
            self._old.add(task)
            task.add_done_callback(self._old.discard)
        return over

    async def _drain(self, connection: Connection, inlet: Inlet) -> None:
        """Take what still comes on a connection that another one replaces."""
        try:
            async with asyncio.timeout(_DRAIN_S):
                while not await connection.read(partial(self._on_frame, inlet), inlet.alive):
                    pass
        except (TimeoutError, AuthFailed):  # the next connection says it, too
            pass
        finally:
            await connection.close()

    def _on_frame(self, inlet: Inlet, connection: Connection, frame: Mapping[str, object]) -> None:
        kind, envelope_id = text(frame, "type"), text(frame, "envelope_id")
        if kind == HELLO:
            inlet.report(CONNECTED)
            return
        if not envelope_id:
            return
        is_ours = kind in (EVENTS, COMMANDS)
        self._intake.offer(
            Item(
                kind=kind if is_ours else EVENTS,
                # what is none of ours (a button) has no event in it, and is told that it came
                payload=mapping(frame, "payload") if is_ours else {},
                acknowledge=partial(connection.acknowledge, envelope_id),
            )
        )
