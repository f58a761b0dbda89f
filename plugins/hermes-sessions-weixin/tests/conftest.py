"""An adapter before a fake server, with an inlet that writes down what it is handed."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from hermes_hookspecs.clock import SystemClock
from hermes_hookspecs.ports.platform import AccountSetup, DeliveryPart
from hermes_hookspecs.source import SessionSource
from hermes_hookspecs.testing.adapters import MemoryState
from hermes_hookspecs.testing.adapters.recording import RecordingInlet
from hermes_weixin.adapter import WeixinAdapter
from hermes_weixin.testing import FakeWeixin

LIMIT_S = 30


class SkewedClock(SystemClock):
    """The machine's clock, moved by hand."""

    def __init__(self):
        self.ahead_s = 0.0

    def now(self):
        return super().now() + int(self.ahead_s * 1000)

    def monotonic(self):
        return super().monotonic() + self.ahead_s


class Stage:
    """One account at work: ``fake``, ``inlet``, ``adapter``, and the pauses that were asked for."""

    def __init__(self, folder, account_id="default", fake=None, state=None, **config):
        self.fake = fake or FakeWeixin()
        self.folder = folder
        self.account_id = account_id
        self.clock = SkewedClock()
        self.state = state or MemoryState("weixin", self.clock)
        self.inlet = RecordingInlet(self.state)
        self.pauses = []
        self._config = config
        self.adapter = None

    @property
    def server(self):
        return self.fake.server

    @property
    def bot(self):
        return self.fake.bot(self.account_id)

    async def pause(self, seconds):
        self.pauses.append(seconds)
        self.clock.ahead_s += seconds
        await asyncio.sleep(0.001)

    def made(self):
        setup = AccountSetup(
            account_id=self.account_id, state=self.state, folder=self.folder, clock=self.clock, environ={}
        )
        config = self.fake.config((self.account_id,), **self._config)
        return WeixinAdapter(setup, config, self.fake.login(self.account_id), pause=self.pause)

    @asynccontextmanager
    async def running(self):
        await self.fake.start()
        self.adapter = self.made()
        task = asyncio.create_task(self.adapter.run(self.inlet))
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.wait({task}, timeout=LIMIT_S)
            await self.adapter.aclose()
            await self.fake.stop()
        assert not self.server.faults

    async def heard(self, text="hello", peer="user-1", **more):
        before = len(self.inlet.events)
        self.server.say(self.bot, self.server.message(peer, text, **more))
        await self.inlet.until(lambda: len(self.inlet.events) > before)
        return self.inlet.events[-1]

    async def send(self, text, peer="user-1", key="key-1", **more):
        target = SessionSource(
            platform="weixin", account_id=self.account_id, chat_type="dm", chat_id=peer, user_id=peer
        )
        result = await self.adapter.send(DeliveryPart(target=target, text=text, key=key, **more))
        self.state.take(getattr(result, "state", ()))
        return result


@pytest.fixture
def stage(tmp_path):
    return Stage(tmp_path)


@pytest.fixture
def new_stage():
    return Stage


@pytest.fixture
def run():
    """Run a coroutine with a limit."""

    async def limited(main):
        async with asyncio.timeout(LIMIT_S * 2):
            return await main

    return lambda main: asyncio.run(limited(main))
