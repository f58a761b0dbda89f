"""A sender may end between any two steps: what nobody knows is looked up, or sent again with a mark, never silently."""

from __future__ import annotations

import asyncio

import pytest

from hermes_core.outbox.parts import REPEAT_MARK
from hermes_hookspecs.errors import Conflict, Rejected, RetryLater, StoreBusy, StoreOutcomeUnknown
from hermes_hookspecs.operations import PutState
from hermes_hookspecs.outbox import FAILED, SENDING, SENT, WAITING, OpenedThread
from hermes_hookspecs.ports.platform import Sent
from hermes_hookspecs.source import KeyPolicy
from hermes_hookspecs.state import StateUpdate
from hermes_hookspecs.testing.agents import Gate
from hermes_hookspecs.testing.platform import FindingSender, RecordingSender, arrived_but

MARKED = f"{REPEAT_MARK} hello"


def _again(bench, sender=None, **abilities):
    """Let an hour pass and send what is due."""
    bench.clock.advance(3600)
    return bench.drain(sender, **abilities)


def test_a_part_that_surely_did_not_go_out_is_sent_again_without_a_mark(bench):
    bench.sender.then(RetryLater("busy"))
    bench.put()
    bench.drain()

    _again(bench)

    assert bench.sender.texts() == ["hello"]


@pytest.mark.parametrize(
    "error", [RetryLater("late", maybe_sent=True), OSError("connection lost"), asyncio.CancelledError()]
)
def test_a_part_of_unknown_outcome_is_sent_again_with_a_mark_under_the_same_key(bench, error):
    bench.sender.then(arrived_but(error))
    delivery = bench.put()
    bench.drain()
    between = bench.row(delivery)

    _again(bench)

    assert (between.status, between.uncertain, between.failures) == (WAITING, True, 1)
    assert bench.sender.texts() == ["hello", MARKED]
    assert len({part.key for part in bench.sender.received()}) == 1
    assert bench.row(delivery).is_possible_repeat


def test_a_part_that_is_late_is_of_unknown_outcome(bench):
    async def never(part):
        await asyncio.Event().wait()

    bench.sender.then(never)
    delivery = bench.put()

    bench.drain(settings={"send_timeout_s": 0.1})

    assert (bench.row(delivery).uncertain, bench.row(delivery).error) == (True, "no answer within 0.1 s")


def test_an_uncertain_part_stays_uncertain_while_it_only_fails_for_sure(bench):
    bench.sender.then(arrived_but(OSError("connection lost")), RetryLater("busy"))
    bench.put()
    bench.drain()
    _again(bench)

    _again(bench)

    assert bench.sender.texts() == ["hello", MARKED]


def test_an_idempotent_platform_gets_the_same_key_and_no_mark(bench):
    sender = RecordingSender(answers=[arrived_but(OSError("connection lost"))], idempotent=True)
    delivery = bench.put()
    bench.drain(sender, idempotent_send=True)

    _again(bench, sender, idempotent_send=True)

    assert sender.texts() == ["hello"]
    assert [part.possible_repeat for part in sender.calls] == [False, True]
    assert not bench.row(delivery).is_possible_repeat


@pytest.mark.parametrize(("known_s", "texts"), [(3700, ["hello"]), (3500, ["hello", MARKED])])
def test_a_platform_that_forgets_keys_gets_a_mark_when_it_may_have_forgotten(bench, known_s, texts):
    abilities = {"idempotent_send": True, "idempotent_for_s": known_s}
    sender = RecordingSender(answers=[arrived_but(OSError("connection lost"))], idempotent=known_s > 3600)
    delivery = bench.put()
    bench.drain(sender, **abilities)

    _again(bench, sender, **abilities)

    assert sender.texts() == texts
    assert bench.row(delivery).is_possible_repeat == (len(texts) == 2)


def test_a_platform_that_can_be_asked_is_asked_and_what_it_has_is_not_sent_again(bench):
    sender = FindingSender(answers=[arrived_but(OSError("connection lost"))])
    delivery = bench.put()
    bench.drain(sender)

    _again(bench, sender)

    row = bench.row(delivery)
    assert sender.texts() == ["hello"]
    assert (row.status, row.is_possible_repeat, row.parts[0].platform_message_id) == (SENT, False, f"m-{row.key}-0")


def test_what_the_platform_does_not_have_is_sent_without_a_mark(bench):
    sender = FindingSender(answers=[OSError("connection lost")])
    bench.put()
    bench.drain(sender)

    _again(bench, sender)

    assert sender.texts() == ["hello"]


def test_a_platform_that_does_not_say_is_asked_again_and_at_last_a_mark_does(bench):
    sender = FindingSender(answers=[arrived_but(OSError("connection lost"))])
    sender.finding = tuple(RetryLater("no history now") for _ in range(9))
    delivery = bench.put()
    bench.drain(sender)

    for _ in range(3):
        _again(bench, sender)

    assert sender.texts() == ["hello", MARKED]
    assert bench.status(delivery) == [SENT]


def test_a_platform_that_may_not_be_asked_gets_a_mark(bench):
    sender = FindingSender(answers=[arrived_but(OSError("connection lost"))])
    sender.finding = (Rejected("missing scope"),)
    bench.put()
    bench.drain(sender)

    _again(bench, sender)

    assert sender.texts() == ["hello", MARKED]


def test_only_the_part_in_hand_is_uncertain(bench):
    bench.sender.then(Sent(), arrived_but(OSError("connection lost")))
    bench.put("one two three four five six")
    bench.drain(max_length=10)

    _again(bench, max_length=40)

    assert bench.sender.texts() == ["one two", "three four", f"{REPEAT_MARK} three four", "five six"]


# ------------------------------------------------------------------ senders that ended


def test_what_a_dead_process_was_sending_is_taken_over_as_uncertain(bench, dead_process):
    delivery, behind = bench.put(), bench.put("behind")
    bench.claimed_by(delivery, **dead_process)

    bench.drain()

    assert bench.sender.texts() == [MARKED, "behind"]
    assert bench.row(delivery).attempt == 2
    assert bench.status(delivery, behind) == [SENT, SENT]


def test_what_a_dead_process_had_not_split_cannot_have_gone_out(bench, dead_process):
    delivery = bench.put()
    bench.claimed_by(delivery, parts=(), **dead_process)

    bench.drain()

    assert bench.sender.texts() == ["hello"]


def test_nothing_is_taken_from_another_process_that_lives(bench):
    delivery, behind = bench.put(), bench.put("behind")
    bench.claimed_by(delivery, pid=1, started=_start_of(1))
    deliverer = bench.drain()

    bench.clock.advance(100_000)
    asyncio.run(deliverer.until_idle())

    assert bench.status(delivery, behind) == [SENDING, WAITING]


def test_a_sender_of_which_nothing_can_be_known_is_given_its_time(bench, elsewhere):
    delivery = bench.put()
    bench.claimed_by(delivery, **elsewhere)
    deliverer = bench.drain(ttl_s=30, settings={"send_timeout_s": 10})
    bench.clock.advance(49)
    asyncio.run(deliverer.until_idle())
    before = bench.status(delivery)

    bench.clock.advance(1)
    asyncio.run(deliverer.until_idle())

    assert before == [SENDING]
    assert bench.sender.texts() == [MARKED]


def test_an_earlier_deliverer_of_this_process_is_given_its_time_too(bench):
    delivery = bench.put()
    bench.claimed_by(delivery)
    deliverer = bench.drain()
    before = bench.status(delivery)

    bench.clock.advance(1000)
    asyncio.run(deliverer.until_idle())

    assert before == [SENDING]
    assert bench.status(delivery) == [SENT]


def test_cancelled_in_the_middle_of_a_part_it_puts_the_delivery_back_as_uncertain(bench, wait_until):
    gate = Gate()

    async def hold(part):
        await gate.pass_through()

    bench.sender.then(hold)
    delivery = bench.put()

    async def act():
        sending = asyncio.create_task(bench.deliverer().run())
        await wait_until(gate.reached.is_set)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending

    asyncio.run(act())

    row = bench.row(delivery)
    assert (row.status, row.uncertain, row.failures, row.due_at) == (WAITING, True, 0, bench.clock.now())


def test_cancelled_between_two_parts_nothing_is_uncertain(bench):
    async def cancel_me(part):
        sending.cancel()
        return Sent()

    bench.sender.then(cancel_me)
    delivery = bench.put("one two three four")

    async def act():
        nonlocal sending
        sending = asyncio.create_task(bench.deliverer(max_length=10).until_idle())
        with pytest.raises(asyncio.CancelledError):
            await sending

    sending = None
    asyncio.run(act())
    between = bench.row(delivery)
    bench.drain(max_length=10)

    assert (between.status, between.uncertain) == (WAITING, False)
    assert bench.sender.texts() == ["one two", "three four"]


# ------------------------------------------------------------------ writes that fail


def test_what_went_out_is_marked_once_the_store_takes_it_and_is_not_sent_again(bench, untimely, caplog):
    store = untimely(bench.store, MarkSent=[StoreBusy("locked"), StoreOutcomeUnknown("sync failed")])
    delivery = bench.put()

    bench.drain(store=store)

    assert bench.sender.texts() == ["hello"]
    assert bench.status(delivery) == [SENT]
    assert caplog.text.count("could not be written") == 1


def test_a_claim_that_fails_leaves_the_delivery_for_later(bench, untimely):
    store = untimely(bench.store, ClaimDelivery=[StoreBusy("locked")])
    delivery = bench.put()
    deliverer = bench.drain(store=store)
    before = bench.status(delivery)

    bench.clock.advance(1)
    asyncio.run(deliverer.until_idle())

    assert (before, bench.status(delivery)) == ([WAITING], [SENT])


def test_a_delivery_that_somebody_took_over_meanwhile_is_theirs(bench, untimely, caplog):
    store = untimely(bench.store, MarkSent=[Conflict("attempt 1 does not send delivery 1 any more")])
    delivery, elsewhere = bench.put(), bench.put("other", chat="oc_2")

    bench.drain(store=store)

    assert bench.status(delivery, elsewhere) == [SENDING, SENT]
    assert "went to another sender" in caplog.text


def test_what_the_adapter_remembers_is_stored_with_the_mark(bench):
    update = StateUpdate(namespace="feishu", key="cursor", value='"7"')
    bench.sender.then(Sent(state=(update,)))
    bench.put()

    bench.drain()

    assert bench.store.state("feishu", "cursor", now=bench.clock.now()).value == '"7"'


def test_state_that_does_not_fit_keeps_no_part_from_being_marked(bench):
    bench.store.apply(PutState(updates=(StateUpdate(namespace="feishu", key="cursor", value="1"),), now=1))
    stale = StateUpdate(namespace="feishu", key="cursor", value="2", expected_version=7)
    bench.sender.then(Sent(state=(stale,)))
    delivery = bench.put()

    bench.drain()

    assert bench.status(delivery) == [SENT]
    assert bench.store.state("feishu", "cursor", now=bench.clock.now()).value == "1"


# ------------------------------------------------------------------ threads


def test_a_thread_that_an_answer_opened_leads_to_its_lineage(bench):
    entry = bench.app.get_or_create_session(bench.target())
    bench.sender.then(Sent(opened_thread_id="omt_1"))
    bench.put(lineage_id=entry.lineage_id)
    asked = []

    def route(source):
        asked.append(source)
        return OpenedThread(key="agent:main:feishu:thread:omt_1", key_version=1, source=source, policy=KeyPolicy())

    bench.drain(route=route)

    assert [(source.chat_id, source.thread_id) for source in asked] == [("oc_1", "omt_1")]
    assert bench.store.route("agent:main:feishu:thread:omt_1").lineage_id == entry.lineage_id


def test_a_sender_that_answers_nonsense_is_a_failure_of_unknown_outcome(bench):
    async def nonsense(part):
        return None

    bench.sender.then(*[nonsense] * 2)
    delivery = bench.put()

    bench.drain(settings={"attempts": 1})

    assert bench.status(delivery) == [FAILED]
    assert bench.row(delivery).uncertain
    assert "NoneType" in bench.row(delivery).error


def _start_of(pid):
    with open(f"/proc/{pid}/stat", "rb") as file:
        return file.read().rpartition(b")")[2].split()[19].decode()
