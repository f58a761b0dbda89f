"""Senders that misbehave: whatever they return, raise or swallow, each attempt ends, is counted, and blocks nobody."""

from __future__ import annotations

import asyncio
import threading

import pytest

from hermes_core.outbox import calls, courier, lane
from hermes_core.outbox.parts import REPEAT_MARK, parts_of
from hermes_core.outbox.results import hint_of, one_line
from hermes_hookspecs.errors import Conflict, RetryLater, StorageError, StoreBusy
from hermes_hookspecs.outbox import FAILED, SENDING, SENT, WAITING
from hermes_hookspecs.ports.platform import Deferred, Sent
from hermes_hookspecs.state import StateUpdate
from hermes_hookspecs.testing.agents import Gate
from hermes_hookspecs.testing.platform import FindingSender, RecordingSender, arrived_but

MARKED = f"{REPEAT_MARK} hello"


class _Silent(Exception):
    def __str__(self):
        raise RuntimeError("nothing to say")


class _Leaving(BaseException):
    pass


class _Bare(RetryLater):
    def __init__(self):
        """Leave out what the base class would set."""


def _returning(result):
    async def answer(part):
        return result

    return answer


class _Direct:
    """A sender that returns what it was given, as it is."""

    def __init__(self, result):
        self.result = result
        self.calls = 0

    async def send(self, part):
        self.calls += 1
        return self.result


async def _swallow(part):
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(calls, "_CLEANUP_S", 0.05)


# ------------------------------------------------------------------ senders that do not end


@pytest.mark.usefixtures("impatient")
def test_a_sender_that_swallows_its_cancellation_is_given_up_as_uncertain_and_its_address_goes_on(bench):
    bench.sender.then(_swallow)
    delivery, behind = bench.put(), bench.put("behind")
    bench.drain(settings={"send_timeout_s": 0.1})
    between = bench.row(delivery)

    bench.clock.advance(60)
    bench.drain()

    assert (between.status, between.failures, between.uncertain) == (WAITING, 1, True)
    assert between.error == "no answer within 0.1 s"
    assert bench.sender.texts() == [MARKED, "behind"]
    assert bench.status(delivery, behind) == [SENT, SENT]


@pytest.mark.usefixtures("impatient")
def test_a_sender_that_swallows_its_cancellation_does_not_hold_up_the_end(bench, wait_until, wait_within):
    bench.sender.then(_swallow)
    delivery = bench.put()

    async def act():
        running = asyncio.create_task(bench.deliverer().run())
        await wait_until(lambda: bench.sender.calls)
        running.cancel()
        await wait_within(asyncio.wait({running}))
        return running.cancelled()

    ended = asyncio.run(act())

    row = bench.row(delivery)
    assert ended
    assert (row.status, row.uncertain, row.failures) == (WAITING, True, 0)


def test_what_goes_out_in_spite_of_the_time_limit_is_sent(bench):
    async def late(part):
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return Sent()

    bench.sender.then(late)
    delivery = bench.put()

    bench.drain(settings={"send_timeout_s": 0.1})

    assert bench.status(delivery) == [SENT]


def test_a_write_that_never_ends_does_not_hold_up_the_end(bench, wait_until, wait_within, monkeypatch, caplog):
    class Stuck:
        def __getattr__(self, name):
            return getattr(bench.store, name)

        def perform(self, operation):
            if type(operation).__name__ != "MarkSent":
                return bench.store.perform(operation)
            return asyncio.get_running_loop().create_future()

    monkeypatch.setattr(lane, "_LEAVE_S", 0.05)
    delivery = bench.put()

    async def act():
        running = asyncio.create_task(bench.deliverer(store=Stuck()).run())
        await wait_until(bench.sender.texts)
        running.cancel()
        await wait_within(asyncio.wait({running}))
        return running.cancelled()

    assert asyncio.run(act())
    assert bench.status(delivery) == [SENDING]
    assert "does not end" in caplog.text


# ------------------------------------------------------------------ what they raise and return


@pytest.mark.parametrize(
    "error",
    [
        RetryLater("x", after_s="5"),
        RetryLater("x", after_s=float("nan")),
        _Bare(),
        _Silent(),
        _Leaving(),
        SystemExit(3),
        GeneratorExit(),
        StopAsyncIteration(),
        asyncio.CancelledError(),
        Conflict("mine"),
        StoreBusy("mine"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_sender_raises_is_counted_until_the_limit(bench, error):
    class Failing(RecordingSender):
        async def send(self, part):
            if part.text.endswith("hello"):
                self.calls.append(part)
                raise error
            return await super().send(part)

    sender = Failing()
    failing, behind = bench.put(), bench.put("behind")
    bench.put("what gets through", chat="oc_2")
    deliverer = bench.drain(sender, settings={"attempts": 2})
    between = bench.row(failing)

    bench.clock.advance(60)
    asyncio.run(deliverer.until_idle())

    assert (between.status, between.failures) == (WAITING, 1)
    assert between.error
    assert bench.status(failing, behind) == [FAILED, SENT]
    assert len(sender.calls) == 4


def test_an_interrupt_that_is_raised_off_the_main_thread_is_a_failure(bench):
    bench.sender.then(KeyboardInterrupt())
    delivery = bench.put()
    drain = threading.Thread(target=bench.drain)

    drain.start()
    drain.join(20)

    assert (bench.row(delivery).status, bench.row(delivery).failures) == (WAITING, 1)


@pytest.mark.parametrize(
    ("result", "kept"),
    [
        (Sent(platform_message_id=12), "12"),
        (Sent(platform_message_id=b"om_1"), "om_1"),
        (Sent(platform_message_id=2**70), str(2**70)),
        (Sent(platform_message_id=10**5000), None),
        (Sent(platform_message_id=object()), None),
        (Sent(platform_message_id="x" * 100_000), None),
        (Sent(platform_message_id="om_1", opened_thread_id=object()), "om_1"),
        (Sent(platform_message_id="om_1", possible_repeat=None), "om_1"),
        (Sent(platform_message_id="om_1", state=None), "om_1"),
        (Sent(platform_message_id="om_1", state=("x",)), "om_1"),
        (Sent(platform_message_id="om_1", state=(StateUpdate(namespace="n", key="k", value={"a": 1}),)), "om_1"),
        (
            Sent(
                platform_message_id="om_1",
                state=(StateUpdate(namespace="n", key="k", value="1", expires_at=2**70),),
            ),
            "om_1",
        ),
    ],
    ids=[
        *("number", "bytes", "large number", "absurd number", "object", "long text", "thread", "repeat"),
        *("no state", "no updates", "no text", "no time"),
    ],
)
def test_what_went_out_is_marked_once_whatever_is_said_of_it(bench, result, kept):
    delivery, behind, sender = bench.put(), bench.put("behind"), _Direct(result)

    bench.drain(sender)

    assert bench.status(delivery, behind) == [SENT, SENT]
    assert sender.calls == 2
    assert bench.row(delivery).parts[0].platform_message_id == kept
    assert bench.row(delivery).is_possible_repeat is False
    assert bench.store.state("n", "k", now=bench.clock.now()) is None


@pytest.mark.parametrize(
    "at", ["soon", float("nan"), float("inf"), object(), True], ids=["text", "nan", "inf", "object", "truth"]
)
def test_what_is_put_off_to_no_time_is_a_failure_that_reached_nobody(bench, at):
    bench.sender.then(_returning(Deferred(reason="later", at=at)))
    delivery = bench.put()

    bench.drain()

    row = bench.row(delivery)
    assert (row.status, row.failures, row.uncertain) == (WAITING, 1, False)
    assert row.error == "it was put off to no time that there is: later"


@pytest.mark.parametrize("at", [2**70, -(10**400), 10**400], ids=["far", "long ago", "beyond numbers"])
def test_what_is_put_off_without_a_reason_or_to_an_absurd_time_waits(bench, at):
    bench.sender.then(_returning(Deferred(reason=None, at=at)))
    delivery = bench.put()

    bench.drain()

    row = bench.row(delivery)
    assert (row.status, row.failures, row.error) == (WAITING, 0, "")
    assert row.due_at > bench.clock.now()


def test_a_look_up_that_answers_nonsense_is_asked_again(bench):
    class Vague(FindingSender):
        async def find_sent(self, part):
            return True

    sender = Vague(answers=[arrived_but(OSError("connection lost"))])
    delivery = bench.put()
    bench.drain(sender)

    bench.clock.advance(60)
    bench.drain(sender)

    assert sender.texts() == ["hello"]
    assert (bench.row(delivery).status, bench.row(delivery).failures) == (WAITING, 2)


def test_an_error_that_cannot_say_what_it_is_is_named_by_its_type():
    assert one_line(_Silent()) == "_Silent"


@pytest.mark.parametrize("error", [RetryLater("x", after_s="5"), RetryLater("x", after_s=float("nan")), _Bare()])
def test_a_hint_that_is_no_number_is_none(error):
    assert hint_of(error) is None


def test_a_failure_that_nobody_foresaw_is_counted_too(bench):
    def route(source):
        raise RuntimeError("no route today")

    entry = bench.app.get_or_create_session(bench.target())
    bench.sender.then(Sent(opened_thread_id="omt_1"), Sent(opened_thread_id="omt_1"))
    delivery = bench.put(lineage_id=entry.lineage_id)
    deliverer = bench.drain(route=route, settings={"attempts": 2})
    between = bench.row(delivery)

    bench.clock.advance(60)
    asyncio.run(deliverer.until_idle())

    assert (between.status, between.failures, between.uncertain) == (WAITING, 1, True)
    assert bench.status(delivery) == [FAILED]


# ------------------------------------------------------------------ marks that the store does not take


def test_what_went_out_is_marked_barely_where_the_store_does_not_take_what_is_said_of_it(bench, untimely):
    store = untimely(bench.store, MarkSent=[StorageError("a constraint failed")])
    delivery = bench.put()

    bench.drain(store=store)

    assert bench.sender.texts() == ["hello"]
    assert bench.status(delivery) == [SENT]
    assert bench.row(delivery).parts[0].platform_message_id is None


def test_what_went_out_and_cannot_be_marked_fails_visibly_and_is_not_sent_again(bench, untimely):
    store = untimely(bench.store, MarkSent=[StorageError("a constraint failed")] * 2)
    delivery, behind = bench.put(), bench.put("behind")

    bench.drain(store=store)

    row = bench.row(delivery)
    assert bench.status(delivery, behind) == [FAILED, SENT]
    assert bench.sender.texts() == ["hello", "behind"]
    assert (row.uncertain, row.error) == (True, "it went out, and the store does not take that: a constraint failed")


# ------------------------------------------------------------------ places, and long texts


def test_addresses_that_failed_leave_places_to_those_that_did_not(bench, wait_until, wait_within):
    gate, many = Gate(), 105
    failing = [bench.put("failing", chat=f"oc_{number}") for number in range(many)]
    bench.drain(RecordingSender(answers=[RetryLater("busy")] * many))
    bench.clock.advance(60)

    class Hanging(RecordingSender):
        async def send(self, part):
            if part.text == "failing":
                await gate.pass_through()
            return await super().send(part)

    sender = Hanging()

    async def act():
        running = asyncio.create_task(bench.deliverer(sender).run())
        await wait_until(gate.reached.is_set)
        good = [bench.put("good", chat=f"good_{number}") for number in range(3)]
        await wait_until(lambda: bench.status(*good) == [SENT] * 3)
        held = set(bench.status(*failing))
        gate.open()
        await wait_until(lambda: bench.status(*failing) == [SENT] * many)
        running.cancel()
        await wait_within(asyncio.wait({running}))
        return held

    assert asyncio.run(act()) == {WAITING, SENDING}
    assert bench.status(*failing) == [SENT] * many


def test_an_address_that_failed_has_a_place_although_others_did_not(bench, wait_until, wait_within):
    gate, failing = Gate(), bench.put("failing", chat="oc_failing")
    bench.drain(RecordingSender(answers=[RetryLater("busy")]))
    bench.clock.advance(60)

    class Slow(RecordingSender):
        async def send(self, part):
            if part.text == "fresh":
                await gate.pass_through()
            return await super().send(part)

    for number in range(12):
        bench.put("fresh", chat=f"oc_{number}")

    async def act():
        running = asyncio.create_task(bench.deliverer(Slow()).until_idle())
        await wait_until(lambda: bench.row(failing).status == SENT)
        gate.open()
        await wait_within(running)

    asyncio.run(act())


def test_those_that_did_not_fail_go_first(bench, wait_until, wait_within):
    gate = Gate()
    for number in range(8):
        bench.put("failing", chat=f"oc_failing_{number}")
    bench.drain(RecordingSender(answers=[RetryLater("busy")] * 8))
    bench.clock.advance(60)
    for number in range(12):
        bench.put("fresh", chat=f"oc_{number}")
    seen = []

    class Slow(RecordingSender):
        async def send(self, part):
            seen.append(part.text)
            await gate.pass_through()
            return await super().send(part)

    async def act():
        running = asyncio.create_task(bench.deliverer(Slow()).until_idle())
        await wait_until(lambda: len(seen) == 8)
        gate.open()
        await wait_within(running)

    asyncio.run(act())

    assert sorted(seen[:8]) == ["failing"] + ["fresh"] * 7


def test_a_long_text_is_split_off_the_loop(bench, monkeypatch):
    threads = []

    def noting(text, abilities):
        threads.append(threading.current_thread() is threading.main_thread())
        return parts_of(text, abilities)

    monkeypatch.setattr(courier, "parts_of", noting)
    bench.put("short")
    bench.put("long " * 5000)

    bench.drain()

    assert threads == [True, False]
