"""How an adapter is asked to end, and for how long it is waited for: what it was handed comes only once."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from hermes_core.config.sections import GatewaySettings
from hermes_core.gateway.board import AccountBoard
from hermes_core.gateway.receiving import Receiver
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.testing.clock import FakeClock


class Polling:
    """An adapter whose poll is under way when it is cancelled, and comes back when it may."""

    def __init__(self):
        self.polls = asyncio.Event()
        self.comes_back = asyncio.Event()
        self.stored = False

    async def run(self, inlet):
        self.polls.set()
        try:
            await asyncio.Event().wait()
        finally:
            await self.comes_back.wait()
            self.stored = True


@pytest.mark.parametrize(("leave_s", "stored"), [(20.0, True), (0.0, False)])
def test_a_poll_under_way_is_waited_for_as_long_as_its_platform_asks(leave_s, stored):
    async def main():
        adapter = Polling()
        receiver = Receiver(
            adapter,
            SimpleNamespace(begin=lambda: None, heard=None, stirred=0.0),
            AccountBoard(Entrance("toy"), FakeClock(), lambda _: None),
            settings=GatewaySettings(),
            clock=FakeClock(),
            leave_s=leave_s,
        )
        running = asyncio.create_task(receiver.run())
        await adapter.polls.wait()
        running.cancel()
        asyncio.get_running_loop().call_later(0.01, adapter.comes_back.set)
        with pytest.raises(asyncio.CancelledError):
            await running
        return adapter.stored

    assert asyncio.run(main()) is stored
