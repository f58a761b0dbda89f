"""The outbox for people."""

from __future__ import annotations

import asyncio

import pytest

from hermes_core.outbox.desk import OutboxDesk
from hermes_core.outbox.topics import outbox_topic
from hermes_hookspecs.errors import Conflict, DeliveryNotFound, Rejected
from hermes_hookspecs.outbox import DROPPED, FAILED, SENT, WAITING
from hermes_hookspecs.source import Entrance


@pytest.fixture
def woken():
    return []


@pytest.fixture
def desk(bench, woken):
    return OutboxDesk(lambda: bench.store, bench.clock, woken.append)


def test_deliveries_are_listed_newest_first_by_status(bench, desk):
    bench.sender.then(Rejected("no such chat"))
    failed, sent = bench.put("failed"), bench.put("sent")
    bench.drain()
    waiting = bench.put("waiting")

    assert [row.id for row in desk.list()] == [waiting, sent, failed]
    assert [row.id for row in desk.list(statuses=(FAILED, WAITING))] == [waiting, failed]
    assert [row.id for row in desk.list(limit=1)] == [waiting]


def test_what_failed_is_sent_after_a_retry_and_its_sender_is_woken(bench, desk, woken):
    bench.sender.then(Rejected("no such chat"))
    delivery = bench.put()
    deliverer = bench.drain()

    retried = desk.retry(delivery)
    asyncio.run(deliverer.until_idle())

    assert (retried.status, retried.failures) == (WAITING, 0)
    assert bench.status(delivery) == [SENT]
    assert woken == [outbox_topic(Entrance("feishu"))]


def test_what_is_dropped_is_never_sent_and_frees_the_order(bench, desk, woken):
    dropped, behind = bench.put("dropped"), bench.put("behind")

    desk.drop(dropped)
    bench.drain()

    assert bench.status(dropped, behind) == [DROPPED, SENT]
    assert bench.sender.texts() == ["behind"]
    assert len(woken) == 1


def test_what_a_dead_process_was_sending_may_be_dropped(bench, desk, dead_process):
    delivery = bench.put()
    bench.claimed_by(delivery, **dead_process)

    assert desk.drop(delivery).status == DROPPED


def test_what_a_dead_process_was_sending_may_be_retried_and_says_that_it_may_have_gone_out(bench, desk, dead_process):
    delivery = bench.put()
    attempt = bench.claimed_by(delivery, **dead_process)

    retried = desk.retry(delivery)

    assert (retried.status, retried.attempt, retried.uncertain) == (WAITING, attempt, True)


def test_what_is_being_sent_is_neither_dropped_nor_retried(bench, desk, woken):
    delivery = bench.put()
    bench.claimed_by(delivery)

    with pytest.raises(Conflict):
        desk.drop(delivery)
    with pytest.raises(Conflict):
        desk.retry(delivery)
    assert woken == []


@pytest.mark.parametrize("act", ["drop", "retry"])
def test_there_is_no_such_delivery(bench, desk, act):
    with pytest.raises(DeliveryNotFound):
        getattr(desk, act)(99)
