"""What a look may begin with when the store's answer is older than what happened meanwhile."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future

from hermes_hookspecs.outbox import SENT
from hermes_hookspecs.ports.platform import Sent
from hermes_hookspecs.testing.agents import Gate


class Late:
    """A store whose second read is answered only when ``gate`` is open, with what was true before."""

    def __init__(self, store, gate):
        self._store, self._gate, self._reads = store, gate, 0

    def __getattr__(self, name):
        return getattr(self._store, name)

    def submit_read(self, read):
        self._reads += 1
        if self._reads != 2:
            return self._store.submit_read(read)
        answer, late = self._store.submit_read(read).result(), Future()

        async def deliver():
            await self._gate.pass_through()
            late.set_result(answer)

        self.delivering = asyncio.ensure_future(deliver())
        return late


def test_an_answer_from_before_a_delivery_ended_does_not_end_the_work(bench, wait_until, wait_within):
    slow, reading = Gate(), Gate()

    async def hold(part):
        await slow.pass_through()
        return Sent()

    bench.sender.then(hold)
    first, other = bench.put("first"), bench.put("other", chat="oc_2")
    behind = bench.put("behind")

    async def act():
        working = asyncio.create_task(bench.deliverer(store=Late(bench.store, reading)).until_idle())
        await wait_until(reading.reached.is_set)
        slow.open()
        await wait_until(lambda: bench.row(first).status == SENT)
        await wait_until(lambda: not any("hermes-delivery" in task.get_name() for task in asyncio.all_tasks()))
        reading.open()
        await wait_within(working)

    asyncio.run(act())

    assert bench.status(first, other, behind) == [SENT, SENT, SENT]
