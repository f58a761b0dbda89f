"""The gateway with an agent that has nothing to say: from acceptance to the platform's send, and what sessions cost.

Latency is measured while messages come at a fixed rate, spread over so many chats: what the gateway adds to a platform
and an agent that take no time. The window in which texts of one sender are answered together is off.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from typing import TYPE_CHECKING

from benchmarks.measuring import OURS, Bounds, fact, row, timing
from hermes_core import open_app
from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.ports.agent import AssistantStep
from hermes_hookspecs.ports.platform import CONNECTED, PlatformAbilities, Sent
from hermes_hookspecs.source import SessionSource

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Sequence

    from benchmarks.measuring import Row, Size, Timing
    from benchmarks.peer import Peer
    from hermes_core.app import HermesApp
    from hermes_hookspecs.ports.agent import AgentEvent, TurnContext
    from hermes_hookspecs.ports.platform import (
        AccountSetup,
        DeliveryPart,
        Inlet,
        Platform,
        PlatformAdapter,
        SendResult,
    )

__all__ = ["run"]

_SESSIONS = (1, 50, 500)
_PER_S = 25.0
_SETTINGS = {"platforms.bench.dm_policy": "open", "inbox.batch_window_s": 0.0, "turns.parallel": 8}
_PATIENCE_S = 120.0


class _Nothing:
    """An agent that answers at once."""

    name = "nothing"
    model: str | None = None

    async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
        """Yield one step."""
        yield AssistantStep(content=turn.text, finish_reason="stop")


class _Bench:
    """A platform without a wire, and its only adapter; ``sent``: when each text was sent."""

    name = "bench"
    abilities = PlatformAbilities(idempotent_send=True)

    def __init__(self) -> None:
        self.inlet: Inlet | None = None
        self.ready = asyncio.Event()
        self.sent: dict[str, int] = {}
        self.changed = asyncio.Event()

    @hookimpl
    def hermes_platforms(self) -> Sequence[Platform] | None:
        """Return the platform itself."""
        return (self,)

    def accounts(self) -> Sequence[str]:
        """Return the one account."""
        return ("default",)

    def adapter(self, setup: AccountSetup) -> PlatformAdapter:
        """Return itself."""
        return self

    async def run(self, inlet: Inlet) -> None:
        """Be connected."""
        self.inlet = inlet
        inlet.report(CONNECTED)
        self.ready.set()
        await asyncio.Event().wait()

    async def send(self, part: DeliveryPart) -> SendResult:
        """Note the time."""
        self.sent[part.text] = time.perf_counter_ns()
        self.changed.set()
        return Sent(platform_message_id=part.key)

    async def say(self, text: str, chat: str) -> int:
        """Hand a message in; return when that began."""
        source = SessionSource(platform="bench", chat_id=chat, user_id=chat)
        event = MessageEvent(source=source, text=text, identities=(text,), received_at=1)
        began = time.perf_counter_ns()
        if self.inlet is not None:
            await self.inlet.accept([event])
        return began

    async def until(self, texts: Sequence[str]) -> None:
        """Return once all of them were sent."""
        async with asyncio.timeout(_PATIENCE_S):
            while not self.sent.keys() >= set(texts):
                self.changed.clear()
                await self.changed.wait()


def run(size: Size, _peer: Peer | None) -> Iterator[Row]:
    """Yield latency at 1, 50 and 500 sessions, throughput, and memory."""
    with tempfile.TemporaryDirectory() as folder:
        app = open_app(folder, overrides=_SETTINGS, plugins=False, environ={})
        try:
            yield from asyncio.run(_measured(app, size))
        finally:
            app.close()


async def _measured(app: HermesApp, size: Size) -> list[Row]:
    bench = _Bench()
    app.hooks.host.register("bench", bench)
    gateway = asyncio.create_task(app.gateway.run(agent=_Nothing()))
    rows: list[Row] = []
    try:
        await bench.ready.wait()
        for sessions in _SESSIONS:
            await _all_at_once(bench, sessions, f"warm{sessions}")
            rounds = [await _latency(bench, size, sessions, number) for number in range(3)]
            for metric in ("p50", "p99"):
                what = "session" if sessions == 1 else "active sessions"
                name = f"gateway: accept to sent, {sessions} {what}, {metric}"
                rows.append(row(name, {OURS: rounds}, metric, unit="ms", judged="ours"))
        count = 200 if size.is_quick else 1000
        rates = [await _all_at_once(bench, count, f"rate{number}") for number in range(3)]
        rows.append(row("gateway: messages answered", {OURS: rates}, "per_s", unit="/s", judged="ours"))
        rows.append(await _memory(bench, count))
    finally:
        gateway.cancel()
        await asyncio.gather(gateway, return_exceptions=True)
    return rows


async def _latency(bench: _Bench, size: Size, sessions: int, number: int) -> Timing:
    """Say something at a fixed rate, each time in the next chat."""
    count = int(_PER_S * size.seconds * 4)
    began: dict[str, int] = {}
    first = asyncio.get_running_loop().time()
    for at in range(count):
        await asyncio.sleep(max(0.0, first + at / _PER_S - asyncio.get_running_loop().time()))
        text = f"latency {sessions} {number} {at}"
        began[text] = await bench.say(text, f"chat{at % sessions}")
    await bench.until(list(began))
    taken = [bench.sent[text] - at for text, at in began.items()]
    return timing(taken, max(bench.sent[text] for text in began) - min(began.values()))


async def _all_at_once(bench: _Bench, count: int, label: str) -> Timing:
    """Let so many chats say something at the same moment; return how long all answers took."""
    texts = [f"{label} {at}" for at in range(count)]
    began = await asyncio.gather(*(bench.say(text, f"chat{at}") for at, text in enumerate(texts)))
    await bench.until(texts)
    first = min(began)
    taken = [bench.sent[text] - first for text in texts]
    return timing(taken, max(taken))


async def _memory(bench: _Bench, count: int) -> Row:
    """Return what a thousand sessions cost that have talked once and are idle."""
    before = _resident()
    texts = [f"idle {at}" for at in range(count)]
    for at in range(0, count, 50):
        part = texts[at : at + 50]
        await asyncio.gather(*(bench.say(text, f"idle{at + n}") for n, text in enumerate(part)))
        await bench.until(part)
    bench.sent.clear()
    grown = max(0, _resident() - before)
    return fact("gateway: memory for 1000 idle sessions", grown / count * 1000 / 1e6, None, unit="MB", bounds=Bounds())


def _resident() -> int:
    """Return the bytes of memory that this process has in use."""
    import gc

    gc.collect()
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
