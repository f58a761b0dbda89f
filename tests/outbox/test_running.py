"""The deliverer as it runs: woken, sleeping, beside others, and after a kill."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter

import pytest

from hermes_core.outbox.parts import REPEAT_MARK
from hermes_core.outbox.topics import outbox_topic
from hermes_core.turns.waker import LocalWaker
from hermes_hookspecs.errors import RetryLater, StoreBusy
from hermes_hookspecs.outbox import SENT
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.testing.platform import RecordingSender

PATIENCE_S = 20
MARKED = f"{REPEAT_MARK} hello"

PROGRAM = """
import asyncio, os, sys
from hermes_core import open_app
from hermes_core.config.sections import OutboxSettings
from hermes_core.outbox.deliverer import Deliverer
from hermes_core.turns.waker import LocalWaker
from hermes_hookspecs.clock import SystemClock
from hermes_hookspecs.ports.platform import PlatformAbilities, Sent, ServedEntrance
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.testing.platform import RecordingSender

home, record, what = sys.argv[1:4]

class Dying(RecordingSender):
    async def send(self, part):
        if what == "stop-before":
            print("in hand", flush=True); await asyncio.Event().wait()
        result = await super().send(part)
        if what == "stop-after":
            print("in hand", flush=True); await asyncio.Event().wait()
        return result

app = open_app(home, plugins=False, environ={}, overrides={"storage.durability": "normal", "agent.runner": "echo"})
served = ServedEntrance(entrance=Entrance("feishu"), sender=Dying(record), abilities=PlatformAbilities())
deliverer = Deliverer(store=app.store, clock=SystemClock(), hooks=app.hooks, waker=LocalWaker(app.store.change_mark),
    served=(served,), settings=OutboxSettings(), ttl_s=30.0, thread_route=lambda source: None)
if what == "together":
    print("ready", flush=True); sys.stdin.readline()
asyncio.run(deliverer.until_idle())
app.close()
"""


@pytest.fixture
def start(tmp_path):
    running = []

    def start_one(what):
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / "home"), str(tmp_path / "record"), what]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        running.append(process)
        return process

    yield start_one
    for process in running:
        process.kill()
        process.wait(PATIENCE_S)
        process.stdin.close()
        process.stdout.close()


@pytest.fixture
def record(tmp_path):
    return RecordingSender(tmp_path / "record")


def test_it_sends_what_comes_while_it_runs_and_wakes_for_what_becomes_due(bench, wait_until):
    bench.sender.then(RetryLater("busy", after_s=30))

    async def act():
        running = asyncio.create_task(bench.deliverer().run())
        first = bench.put("first")
        await wait_until(lambda: bench.row(first).failures == 1)
        bench.clock.advance(30)
        bench.waker.wake(outbox_topic(Entrance("feishu")))
        await wait_until(lambda: bench.row(first).status == SENT)
        second = bench.put("second")
        await wait_until(lambda: bench.row(second).status == SENT)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(act())

    assert bench.sender.texts() == ["first", "second"]
    assert bench.waker._waiters == {}


def test_the_end_of_a_delivery_is_enough_to_begin_with_the_next(bench, wait_until):
    bench.waker = LocalWaker(lambda: 0)  # it never hears that the store was written
    last = [bench.put(f"{number}") for number in range(4)][-1]

    async def act():
        running = asyncio.create_task(bench.deliverer().run())
        await wait_until(lambda: bench.row(last).status == SENT)
        running.cancel()
        await asyncio.wait({running})

    asyncio.run(act())

    assert bench.sender.texts() == ["0", "1", "2", "3"]


def test_a_store_that_cannot_be_read_is_asked_again(bench, wait_until, caplog):
    class Shy:
        refusals = 2

        def __getattr__(self, name):
            return getattr(bench.store, name)

        def submit_read(self, read):
            if self.refusals:
                self.refusals -= 1
                raise StoreBusy("locked")
            return bench.store.submit_read(read)

    delivery = bench.put()

    async def act():
        running = asyncio.create_task(bench.deliverer(store=Shy()).run())
        await wait_until(lambda: bench.row(delivery).status == SENT)
        running.cancel()
        await asyncio.wait({running})

    asyncio.run(act())

    assert caplog.text.count("cannot be read") == 1


def test_two_deliverers_of_one_process_never_send_one_part_twice(bench, wait_within):
    for number in range(30):
        bench.put(f"{number}", chat=f"oc_{number % 6}")

    async def act():
        await wait_within(asyncio.gather(*(bench.deliverer().until_idle() for _ in range(3))))
        await wait_within(bench.deliverer().until_idle())

    asyncio.run(act())

    assert Counter(bench.sender.texts()) == Counter(str(number) for number in range(30))
    by_address = {}
    for part in bench.sender.received():
        by_address.setdefault(part.address, []).append(int(part.text))
    assert all(numbers == sorted(numbers) for numbers in by_address.values())


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_two_processes_never_send_one_part_twice(bench, start, record):
    for number in range(40):
        bench.put(f"{number}", chat=f"oc_{number % 8}")
    both = [start("together"), start("together")]
    for process in both:
        assert process.stdout.readline() == "ready\n"

    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    ends = [process.wait(PATIENCE_S) for process in both]
    bench.drain(record)

    assert ends == [0, 0]
    assert Counter(record.texts()) == Counter(str(number) for number in range(40))
    by_address = {}
    for part in record.received():
        by_address.setdefault(part.address, []).append(int(part.text))
    assert all(numbers == sorted(numbers) for numbers in by_address.values())


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("what", "texts"), [("stop-before", [MARKED]), ("stop-after", ["hello", MARKED])], ids=["before", "after"]
)
def test_a_process_killed_between_sending_and_marking_loses_nothing_and_repeats_nothing_silently(
    bench, start, record, what, texts
):
    delivery = bench.put()
    process = start(what)
    assert process.stdout.readline() == "in hand\n"
    bench.drain(record)
    while_it_lived = record.texts()

    os.kill(process.pid, signal.SIGKILL)
    process.wait(PATIENCE_S)
    bench.drain(record)

    assert while_it_lived == texts[:-1]
    assert record.texts() == texts
    assert bench.status(delivery) == [SENT]
    assert len({part.key for part in record.received()}) == 1


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="this system does not tell when a process ends")
@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_running_deliverer_takes_over_as_soon_as_the_other_process_ends(
    bench, start, record, wait_until, monkeypatch
):
    monkeypatch.setattr("hermes_core.outbox.lane._OTHERS_LOOK_S", 60.0)
    bench.waker = LocalWaker(lambda: 0)
    delivery = bench.put()
    process = start("stop-before")
    assert process.stdout.readline() == "in hand\n"

    async def act():
        running = asyncio.create_task(bench.deliverer(record).run())
        await wait_until(lambda: any(each._watched for waiters in bench.waker._waiters.values() for each in waiters))
        await asyncio.to_thread(process.kill)
        await asyncio.to_thread(process.wait, PATIENCE_S)
        await wait_until(lambda: bench.row(delivery).status == SENT)
        running.cancel()
        await asyncio.wait({running})

    asyncio.run(act())

    assert record.texts() == [MARKED]


def test_a_terminal_of_an_account_is_woken_with_the_account():
    assert outbox_topic(Entrance("feishu", "second", "pts-1")) == outbox_topic(Entrance("feishu", "second"))
    assert outbox_topic(Entrance("feishu")) != outbox_topic(Entrance("feishu", "second"))
