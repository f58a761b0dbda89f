"""An adapter before a fake server, with an inlet that writes down what it is handed."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest

from hermes_hookspecs.clock import SystemClock
from hermes_hookspecs.ports.platform import CONNECTED, AccountSetup, DeliveryPart
from hermes_hookspecs.testing.adapters import MemoryState
from hermes_hookspecs.testing.adapters.recording import RecordingInlet
from hermes_slack.adapter import SlackAdapter
from hermes_slack.credentials import credentials_of
from hermes_slack.listener import Listener
from hermes_slack.testing import FakeSlack

LIMIT_S = 30


class SkewedClock(SystemClock):
    """The machine's clock, moved by hand."""

    def __init__(self):
        self.ahead_s = 0.0

    def now(self):
        return super().now() + int(self.ahead_s * 1000)


class Stage:
    """One account at work: ``fake``, ``inlet``, ``adapter``, and the pauses that were asked for."""

    def __init__(self, folder, *, fake=None, state=None, mode="socket", **config):
        self.fake = fake or FakeSlack(mode, config.pop("replies", "thread"))
        self.app = self.fake.app()
        self.folder = folder
        self.clock = SkewedClock()
        self.state = state or MemoryState("slack", self.clock)
        self.inlet = RecordingInlet(self.state)
        self.pauses = []
        self._config = config
        self.adapter = None

    @property
    def server(self):
        return self.fake.server

    @property
    def here(self):
        return self.app.installations[0]

    async def pause(self, seconds):
        self.pauses.append(seconds)
        await asyncio.sleep(0.001)

    def made(self):
        config = self.fake.config(**self._config)
        environ = self.fake.environ()
        setup = AccountSetup(
            account_id="default", state=self.state, folder=self.folder, clock=self.clock, environ=environ
        )
        credentials = credentials_of("default", config.mode, environ)
        return SlackAdapter(setup, config, credentials, listener=Listener(config.listen), pause=self.pause)

    @asynccontextmanager
    async def running(self, *, up=True):
        await self.fake.start()
        self.adapter = self.made()
        task = asyncio.create_task(self.adapter.run(self.inlet))
        try:
            if up:
                await self.inlet.until(lambda: CONNECTED in [state for state, _ in self.inlet.reports])
            yield task
        finally:
            task.cancel()
            await asyncio.wait({task}, timeout=LIMIT_S)
            await self.adapter.aclose()
            await self.fake.stop()
        assert not self.server.faults

    async def heard(self, text="hello", chat="C1", user="U1", **more):
        """Let somebody write, in a channel unless it is said otherwise; return the event."""
        ts = await self.fake.say(text, **{"chat_id": chat, "user_id": user, "group": not chat.startswith("D")} | more)
        return await self.stored(ts)

    async def stored(self, ts):
        def found():
            return [event for event in self.inlet.events if event.source.message_id == ts]

        await self.inlet.until(found)
        return found()[0]

    async def send(self, text, to, key="key-1", **more):
        result = await self.adapter.send(self.part(text, to, key, **more))
        self.state.take(getattr(result, "state", ()))
        return result

    @staticmethod
    def part(text, to, key="key-1", **more):
        return DeliveryPart(target=to.source, text=text, key=key, **more)

    async def acknowledged(self, *envelopes):
        await self.server.until(lambda: all(envelope.acknowledged for envelope in envelopes))


@pytest.fixture
def stage(tmp_path):
    return Stage(tmp_path)


@pytest.fixture
def new_stage(tmp_path):
    return lambda **config: Stage(tmp_path, **config)


@pytest.fixture
def run():
    """Run a coroutine with a limit."""

    async def limited(main):
        async with asyncio.timeout(LIMIT_S * 2):
            return await main

    return lambda main: asyncio.run(limited(main))
