"""Order within an address, side by side between addresses, and when the next one goes."""

from __future__ import annotations

import asyncio

import pytest

from hermes_core.outbox.desk import OutboxDesk
from hermes_hookspecs.errors import AuthFailed, Rejected, RetryLater
from hermes_hookspecs.inbox import InboxDraft
from hermes_hookspecs.operations import Accept
from hermes_hookspecs.outbox import FAILED, SENT, WAITING
from hermes_hookspecs.ports.platform import Deferred, Sent
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.testing.agents import Gate
from hermes_hookspecs.testing.platform import RecordingSender


class Blocking(RecordingSender):
    """A sender that cannot get one text through."""

    async def send(self, part):
        if part.text == "failing":
            raise RetryLater("no connection")
        return await super().send(part)


def _held_at(gate):
    async def hold(part):
        await gate.pass_through()
        return Sent()

    return hold


def test_an_address_gets_its_deliveries_in_order_also_behind_a_slow_one(bench, wait_until, wait_within):
    gate = Gate()
    bench.sender.then(_held_at(gate))
    slow, behind = bench.put("slow"), bench.put("behind")
    other = bench.put("other", chat="oc_2")

    async def act():
        sending = asyncio.create_task(bench.deliverer().until_idle())
        await wait_until(lambda: bench.row(other).status == SENT)
        before = bench.sender.texts()
        gate.open()
        await wait_within(sending)
        return before

    before = asyncio.run(act())

    assert before == ["other"]
    assert bench.sender.texts() == ["other", "slow", "behind"]
    assert bench.status(slow, behind, other) == [SENT, SENT, SENT]


def test_at_most_eight_addresses_of_an_account_are_sent_to_at_a_time(bench, wait_until, wait_within):
    gate = Gate()
    bench.sender.then(*[_held_at(gate)] * 12)
    for number in range(12):
        bench.put(f"{number}", chat=f"oc_{number}")

    async def act():
        sending = asyncio.create_task(bench.deliverer().until_idle())
        await wait_until(lambda: len(bench.sender.calls) >= 8)
        for _ in range(20):
            await asyncio.sleep(0)
        abreast = len(bench.sender.calls)
        gate.open()
        await wait_within(sending)
        return abreast

    assert asyncio.run(act()) == 8
    assert len(bench.sender.texts()) == 12


def test_parts_go_out_in_order_and_the_first_one_replies(bench):
    delivery = bench.put("one two three four")

    bench.drain(max_length=10)

    assert [(part.text, part.index, part.count, part.reply_to) for part in bench.sender.calls] == [
        ("one two", 0, 2, "om_1"),
        ("three four", 1, 2, None),
    ]
    row = bench.row(delivery)
    assert (row.status, row.attempt, row.is_possible_repeat) == (SENT, 1, False)
    assert [part.platform_message_id for part in row.parts] == [f"m-{row.key}-0", f"m-{row.key}-1"]
    assert bench.told() == [("sent", 1)]


def test_a_split_happens_once_whatever_the_platform_takes_later(bench):
    bench.sender.then(Sent(), RetryLater("busy", after_s=1))
    delivery = bench.put("one two three four")
    bench.drain(max_length=10)
    bench.clock.advance(2)

    bench.drain(max_length=1000)

    assert bench.sender.texts() == ["one two", "three four"]
    assert bench.status(delivery) == [SENT]


def test_a_hint_for_one_chat_holds_up_that_chat_alone(bench):
    bench.sender.then(RetryLater("slow mode", after_s=3600))
    hinted = bench.put("hinted")
    deliverer = bench.drain()
    other = bench.put("other", chat="oc_2")

    asyncio.run(deliverer.until_idle())

    assert bench.status(hinted, other) == [WAITING, SENT]
    row = bench.row(hinted)
    assert (row.failures, row.error, row.due_at) == (1, "slow mode", bench.clock.now() + 3_600_000)


def test_hints_for_two_chats_pause_the_account_and_its_rows_say_so(bench, caplog):
    caplog.set_level("INFO", logger="hermes_core.outbox")
    bench.sender.then(RetryLater("too fast", after_s=60), RetryLater("too fast", after_s=30))
    hinted = [bench.put("one"), bench.put("two", chat="oc_2")]
    deliverer = bench.drain()
    held_up = bench.put("three", chat="oc_3")

    asyncio.run(deliverer.until_idle())
    row, calls = bench.row(held_up), len(bench.sender.calls)
    for _ in range(2):
        bench.clock.advance(30)
        asyncio.run(deliverer.until_idle())

    assert calls == 2
    assert (row.status, row.failures, row.error) == (WAITING, 0, "feishu pauses: too fast")
    assert row.due_at == bench.clock.now() - 30_000
    assert bench.status(*hinted, held_up) == [SENT] * 3
    lines = [record.getMessage() for record in caplog.records]
    assert lines == ["feishu pauses for 30 s: too fast", "feishu takes deliveries again"]


def test_what_a_person_retries_while_its_account_pauses_says_again_until_when(bench):
    bench.sender.then(AuthFailed("token revoked"))
    delivery = bench.put("one")
    deliverer = bench.drain()
    OutboxDesk(lambda: bench.store, bench.clock, lambda topic: None).retry(delivery)

    asyncio.run(deliverer.until_idle())

    row = bench.row(delivery)
    assert (row.status, row.error) == (WAITING, "feishu pauses: token revoked")
    assert row.due_at > bench.clock.now()
    assert len(bench.sender.calls) == 1


def test_failures_back_off_ever_longer_until_it_is_given_up_and_frees_the_order(bench, caplog):
    bench.sender.then(*[RetryLater("busy", maybe_sent=True)] * 3)
    failing, behind = bench.put("failing"), bench.put("behind")
    deliverer, waits = bench.drain(settings={"attempts": 3, "retry_first_s": 8}), []

    while bench.row(failing).status == WAITING:
        waits.append((bench.row(failing).due_at - bench.clock.now()) / 1000)
        early = bench.sender.texts()
        bench.clock.advance(waits[-1])
        asyncio.run(deliverer.until_idle())

    assert early == []
    assert 6 <= waits[0] <= 10
    assert 12 <= waits[1] <= 20
    assert bench.status(failing, behind) == [FAILED, SENT]
    assert bench.row(failing).error == "busy"
    assert "`hermes outbox list` shows it" in caplog.text
    assert bench.told() == [("deferred", 1), ("deferred", 2), ("failed", 3), ("sent", 1)]


def test_what_fails_while_others_get_through_is_given_up_by_its_count(bench):
    failing = bench.put("failing")
    deliverer = bench.deliverer(sender := Blocking(), settings={"attempts": 3})

    for number in range(3):
        bench.put("through", chat=f"oc_through_{number}")
        asyncio.run(deliverer.until_idle())
        bench.clock.advance(60)

    assert bench.row(failing).status == FAILED
    assert sender.texts() == ["through"] * 3


def test_nothing_is_given_up_for_a_day_while_the_whole_account_is_out_of_reach(bench):
    failing, deliverer = bench.put("failing"), bench.deliverer(Blocking(), settings={"attempts": 3})

    for _ in range(23):
        asyncio.run(deliverer.until_idle())
        bench.clock.advance(3600)
    before = bench.row(failing)
    for _ in range(2):
        asyncio.run(deliverer.until_idle())
        bench.clock.advance(3600)

    assert (before.status, before.failures) == (WAITING, 23)
    assert bench.row(failing).status == FAILED


def test_what_a_platform_rejects_fails_at_once_and_frees_the_order(bench):
    bench.sender.then(Rejected("no such chat"))
    rejected, behind = bench.put("rejected"), bench.put("behind")

    bench.drain()

    assert bench.status(rejected, behind) == [FAILED, SENT]
    assert bench.sender.texts() == ["behind"]


def test_a_text_without_ink_fails_instead_of_holding_up_the_order(bench):
    blank, behind = bench.put(" \n "), bench.put("behind")

    bench.drain()

    assert bench.status(blank, behind) == [FAILED, SENT]
    assert bench.row(blank).error == "there is nothing to send"


@pytest.mark.parametrize("after_s", [60, -60])
def test_a_delivery_deferred_to_a_time_waits_for_it_without_a_failure(bench, after_s):
    bench.sender.then(Deferred(reason="window closed", at=bench.clock.now() + after_s * 1000))
    delivery = bench.put()
    deliverer = bench.drain()

    waiting = bench.row(delivery)
    bench.clock.advance(60)
    asyncio.run(deliverer.until_idle())

    assert (waiting.status, waiting.failures, waiting.error) == (WAITING, 0, "window closed")
    assert waiting.due_at > waiting.created_at
    assert bench.status(delivery) == [SENT]


def test_a_delivery_deferred_without_a_time_waits_for_the_next_message_from_there(bench):
    bench.sender.then(Deferred(reason="quota used up"))
    delivery, behind = bench.put("quota"), bench.put("behind")
    deliverer = bench.drain()
    bench.clock.advance(100_000)
    asyncio.run(deliverer.until_idle())
    still_waiting = bench.row(delivery)

    message = InboxDraft(
        source=bench.target(),
        session_key="agent:main:feishu:dm:oc_1",
        entrance=Entrance("feishu"),
        text="are you there?",
        identities=("om_2",),
        accepted_at=bench.clock.now(),
    )
    bench.store.apply(Accept(drafts=(message,), now=bench.clock.now()))
    asyncio.run(deliverer.until_idle())

    assert still_waiting.awaits_inbound
    assert bench.sender.texts() == ["quota", "behind"]
    assert bench.status(delivery, behind) == [SENT, SENT]


def test_a_rate_limit_is_kept_across_parts_and_costs_no_failure(bench):
    delivery = bench.put("one two three four five six")
    deliverer = bench.drain(max_length=10, parts_per_minute=2)
    first = bench.sender.texts()

    bench.clock.advance(60)
    asyncio.run(deliverer.until_idle())

    assert first == ["one two", "three four"]
    assert bench.sender.texts() == ["one two", "three four", "five six"]
    assert (bench.row(delivery).status, bench.row(delivery).failures) == (SENT, 0)


def test_refused_credentials_pause_the_account_and_are_said_once(bench, caplog):
    caplog.set_level("INFO", logger="hermes_core.outbox")
    bench.sender.then(*[AuthFailed("token revoked")] * 2)
    delivery = bench.put("one")
    deliverer = bench.drain(settings={"retry_most_s": 600, "attempts": 1})
    bench.put("two", chat="oc_2")

    asyncio.run(deliverer.until_idle())
    calls = len(bench.sender.calls)
    for _ in range(2):
        bench.clock.advance(600)
        asyncio.run(deliverer.until_idle())

    assert calls == 1
    assert bench.row(delivery).status == SENT
    assert bench.row(delivery).failures == 0
    lines = [record.getMessage() for record in caplog.records]
    refused = "feishu refuses the credentials, is asked again in 600 s: token revoked"
    assert lines == [refused, "feishu takes deliveries again"]


def test_those_that_only_wait_hide_none_that_is_due(bench):
    for number in range(130):
        bench.put("quota", chat=f"oc_{number}")
    bench.drain(RecordingSender(answers=[Deferred(reason="quota used up")] * 130))

    due = bench.put("due", chat="oc_due")
    bench.drain()

    assert bench.status(due) == [SENT]
