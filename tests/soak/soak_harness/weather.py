"""What a platform does to messages on their way: twice, later than the next one, again because nobody heard an ack."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import suppress

from soak_harness.crowd import Said

__all__ = ["DUPLICATED", "LOST_ACKS", "REORDERED", "Weather"]

DUPLICATED, REORDERED, LOST_ACKS = 0.05, 0.05, 0.02


class Weather:
    """Lets people talk. ``said``: everything, in the order of writing. seen: how often something went wrong."""

    def __init__(self, fakes, dice, pause_s):
        self.said = []
        self.bad = Counter()
        self._fakes, self._dice, self._pause_s = fakes, dice, pause_s
        self._later = set()

    async def talk(self, person):
        """Let somebody write again and again, until cancelled."""
        number = 0
        await asyncio.sleep(self._dice.uniform(0, self._pause_s))
        while True:
            number += 1
            await self._say(person, f"{person.name}-{number}")
            await asyncio.sleep(self._dice.uniform(0.2, 1.8) * self._pause_s)

    async def clear(self):
        """Return once everything that was held back is on its way."""
        await asyncio.gather(*self._later, return_exceptions=True)

    async def _say(self, person, text):
        fake, chance = self._fakes[person.platform], self._dice.random()
        reordered = chance < REORDERED
        message_id = await fake.say(
            text, chat_id=person.chat_id, user_id=person.user_id, group=person.group, deliver=not reordered
        )
        self.said.append(Said(person=person, text=text, message_id=message_id, at_s=time.monotonic()))
        if reordered:
            self.bad["reordered"] += 1
            self._do(self._deliver_after(fake, message_id, self._dice.uniform(1, 2) * self._pause_s))
        elif chance < REORDERED + DUPLICATED:
            self.bad["duplicated"] += 1
            self._do(self._deliver_after(fake, message_id, self._dice.uniform(0, 3)))
        elif chance < REORDERED + DUPLICATED + LOST_ACKS:
            self.bad["lost acks"] += 1
            self._do(self._not_heard(fake, message_id))

    def _do(self, coroutine):
        task = asyncio.create_task(coroutine)
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def _deliver_after(self, fake, message_id, seconds):
        await asyncio.sleep(seconds)
        await fake.deliver(message_id)

    async def _not_heard(self, fake, message_id):
        """Deliver once more what was acknowledged: that is what a platform does that has not heard of it."""
        with suppress(TimeoutError):
            await fake.acknowledged(message_id, 60)
        await asyncio.sleep(self._dice.uniform(0.1, 2))
        await fake.deliver(message_id)
