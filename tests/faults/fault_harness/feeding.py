"""Platforms that deliver again until they are told that we have it, and people at terminals who wait."""

from __future__ import annotations

import asyncio
from random import Random

from fault_harness.script import said, terminal
from hermes_core.faultpoints import reach
from hermes_hookspecs.errors import HermesError
from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.state import StateUpdate

__all__ = ["Asker", "Feeder"]

MOST_WAITING = 8
"""Messages of one chat that may wait before its platform holds back."""


class Feeder:
    """Delivers the messages of one slot in order, in batches, from the first one that was not acknowledged.

    :param acknowledges_first: a mistake that adapters make: telling the platform before the batch is stored.
    """

    def __init__(self, app, ledgers, *, seed, slot, acknowledges_first=False):
        self._app = app
        self._acks = ledgers.acks
        self._own = ledgers.acks_of(slot)
        self._seed = seed
        self._slot = slot
        self._dice = Random()
        self._acknowledges_first = acknowledges_first
        last = self._own.last()
        self._next = 1 if last is None else last["number"] + 1

    async def run(self, batches=None):
        """Feed until cancelled; or a number of batches, however many wait."""
        while batches is None or batches > 0:
            count = self._dice.choice((1, 1, 2, 3))
            # Platforms also deliver again what they were told of.
            first = max(1, self._next - self._dice.choice((0, 0, 0, 0, 1, 2)))
            batch = [said(self._seed, self._slot, number) for number in range(first, self._next + count)]
            # No platform is told when a queue gets shorter.
            while batches is None and await self._is_full(batch[-1].source):  # noqa: ASYNC110 - see above
                await asyncio.sleep(0.02)
            await self._deliver(batch, self._next + count - 1)
            self._next += count
            batches = None if batches is None else batches - 1
            await asyncio.sleep(self._dice.uniform(0.0, 0.04))

    async def _is_full(self, source):
        key = self._app.session_key(source)
        read = self._app.store.submit_read(lambda reader: reader.waiting_of_key(key, limit=MOST_WAITING))
        return len(await asyncio.wrap_future(read)) >= MOST_WAITING

    async def _deliver(self, batch, last):
        events = [
            MessageEvent(source=one.source, text=one.text, identities=(one.name,), received_at=self._app.clock.now())
            for one in batch
        ]
        cursor = StateUpdate(namespace="harness", key=f"cursor-{self._slot}", value=str(last))
        if self._acknowledges_first:
            self._acknowledge(batch, last)
        results = await self._app.accept(events, state=(cursor,))
        refused = [result.refused for result in results if result.id is None]
        if refused:
            raise AssertionError(f"refused: {refused}")
        reach("ack")
        if not self._acknowledges_first:
            self._acknowledge(batch, last)

    def _acknowledge(self, batch, last):
        for one in batch:
            self._acks.write(name=one.name)
        self._own.write(number=last)


class Asker:
    """A person at a terminal: says something, waits for the answer, says the next thing."""

    def __init__(self, app, ledgers, agent, *, slot):
        self._app = app
        self._asks = ledgers.asks
        self._agent = agent
        self._slot = slot
        self._dice = Random()

    async def run(self):
        """Ask until cancelled."""
        while True:
            await asyncio.sleep(self._dice.uniform(0.05, 0.4))
            name = f"#tty{self._slot}.{self._dice.randrange(10**9)}"
            try:
                result = await self._app.ask_async(name, terminal(self._slot), agent=self._agent)
            except HermesError as error:
                self._asks.write(name=name, error=type(error).__name__)
            else:
                self._asks.write(name=name, turn=result.turn.id, text=result.text)
