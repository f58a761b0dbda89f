"""Events on their way to an app: over a connection or as a call, again and again until they are acknowledged."""

from __future__ import annotations

import asyncio
import io
import json
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import aiohttp
import attrs

from hermes_feishu.crypto import encrypt, sign

if TYPE_CHECKING:
    from hermes_feishu.testing.hub import Hub
    from hermes_feishu.testing.world import FakeApp, World

__all__ = ["Push", "Pushes", "signed"]


@attrs.define(eq=False)
class Push:
    """One event. ``message_id``: what it brings, ``""`` for nothing that is waited for. ``again``: it is repeated."""

    app: FakeApp
    payload: bytes = attrs.field(repr=False)
    message_id: str = ""
    again: bool = True
    statuses: list[int] = attrs.field(factory=list)


class Pushes:
    """Carries events. What is not acknowledged when it is closed goes on its way again when it is opened.

    Attributes:
        refused: what events brought that were not taken at once.
    """

    def __init__(self, world: World, hub: Hub) -> None:
        self._world = world
        self._hub = hub
        self._under_way: dict[Push, asyncio.Task[None] | None] = {}
        self._session: aiohttp.ClientSession | None = None
        self.refused: list[str] = []

    @property
    def is_empty(self) -> bool:
        """Whether nothing is on its way."""
        return not self._under_way

    def open(self) -> None:
        """Carry what is left from before."""
        if self._session is None:
            self._session = aiohttp.ClientSession()
            for push in self._under_way:
                self._begin(push)

    async def close(self) -> None:
        """Carry nothing more."""
        tasks = [task for task in self._under_way.values() if task is not None]
        self._under_way = dict.fromkeys(self._under_way)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def send(self, push: Push) -> None:
        """Put an event on its way."""
        self._under_way[push] = None
        if self._session is not None:
            self._begin(push)

    async def call(self, app: FakeApp, body: bytes, headers: dict[str, str] | None = None) -> tuple[int, str]:
        """Call a webhook with any bytes; return status and body of the answer."""
        assert self._session is not None  # noqa: S101 - opened by whoever asks
        given = {"Content-Type": "application/json; charset=utf-8"} | (headers or {})
        async with self._session.post(app.webhook, data=io.BytesIO(body), headers=given) as response:
            return response.status, await response.text()

    def _begin(self, push: Push) -> None:
        self._under_way[push] = asyncio.create_task(self._carry(push), name="fake-push")

    async def _carry(self, push: Push) -> None:
        attempt = 0
        while True:
            await self._world.thawed.wait()
            try:
                is_there = await self._try(push)
                if not is_there:
                    self.refused.append(push.message_id)
            except (ConnectionError, aiohttp.ClientError, TimeoutError):
                is_there = False
                await self._for_a_way(push)
            if is_there and push.message_id:
                self._world.acknowledged.add(push.message_id)
            is_over = is_there or not push.again
            if is_over:
                self._under_way.pop(push, None)
            self._world.changed()
            if is_over:
                return
            await asyncio.sleep(self._world.ladder[min(attempt, len(self._world.ladder) - 1)])
            attempt += 1

    async def _for_a_way(self, push: Push) -> None:
        """Wait until an app that holds connections has one."""
        if not push.app.webhook:
            with suppress(TimeoutError):
                await self._world.until(lambda: self._hub.count(push.app) > 0, 3600)

    async def _try(self, push: Push) -> bool:
        if not push.app.webhook:
            return await self._hub.deliver(push.app, self._world.new_id("push"), push.payload)
        async with asyncio.timeout(self._world.ack_s):
            status, _ = await self.call(push.app, *signed(push.app, push.payload))
        push.statuses.append(status)
        return status == 200


def signed(app: FakeApp, payload: bytes, *, at_s: float | None = None) -> tuple[bytes, dict[str, str]]:
    """Return body and headers of a call, encrypted and signed where the app has a key."""
    if not app.encrypt_key:
        return payload, {}
    body = json.dumps({"encrypt": encrypt(payload, app.encrypt_key, os.urandom(16))}).encode()
    timestamp, nonce = str(int(time.time() if at_s is None else at_s)), os.urandom(8).hex()
    return body, {
        "X-Lark-Request-Timestamp": timestamp,
        "X-Lark-Request-Nonce": nonce,
        "X-Lark-Signature": sign(timestamp, nonce, app.encrypt_key, body),
    }
