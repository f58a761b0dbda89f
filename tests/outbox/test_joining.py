"""Answers that waited for the same place go out together where an adapter joins them, and each is settled once."""

from __future__ import annotations

from itertools import count

import pytest

from hermes_hookspecs.errors import Rejected
from hermes_hookspecs.inbox import InboxDraft
from hermes_hookspecs.operations import Accept
from hermes_hookspecs.outbox import FAILED, JOINED, SENT, WAITING, PartDraft
from hermes_hookspecs.ports.platform import Deferred, Sent
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.testing.platform import RecordingSender

LATER = Deferred(reason="with their next message")


class Joining(RecordingSender):
    """A sender that joins all that it is shown, or ``most`` of it."""

    most = 100

    def join(self, texts, target):
        self.asked = list(texts)
        count = min(len(texts), self.most)
        return count, (PartDraft(text=" + ".join(texts[:count])),)


@pytest.fixture
def sender():
    return Joining()


_NUMBERS = count(1)


def write(bench):
    """Let the person write, which is what an answer may wait for."""
    message = InboxDraft(
        source=bench.target(),
        session_key="agent:main:feishu:dm:oc_1",
        entrance=Entrance("feishu"),
        text="hi",
        identities=(f"om_{next(_NUMBERS)}",),
        accepted_at=bench.clock.now(),
    )
    bench.store.apply(Accept(drafts=(message,), now=bench.clock.now()))


def test_what_waited_for_a_message_goes_out_as_one_with_what_stands_behind_it(bench, sender):
    sender.then(LATER)
    rows = [bench.put(text) for text in ("one", "two", "three")]
    elsewhere = bench.put("elsewhere", chat="oc_2")
    bench.drain(sender)
    assert bench.status(*rows, elsewhere) == [WAITING, WAITING, WAITING, SENT]

    write(bench)
    bench.drain(sender)

    assert sender.texts() == ["elsewhere", "one + two + three"]
    assert bench.status(*rows) == [SENT, JOINED, JOINED]
    assert bench.row(rows[0]).text == "one\n\ntwo\n\nthree"
    assert bench.row(rows[2]).error == f"it goes out with delivery {rows[0]}"


def test_what_waits_in_line_for_the_first_time_is_not_joined(bench, sender):
    rows = [bench.put(text) for text in ("one", "two")]

    bench.drain(sender)

    assert sender.texts() == ["one", "two"]
    assert bench.status(*rows) == [SENT, SENT]


def test_as_many_are_joined_as_the_adapter_says_and_the_rest_keeps_its_order(bench, sender):
    sender.then(LATER)
    sender.most = 2
    rows = [bench.put(text) for text in ("one", "two", "three")]
    bench.drain(sender)

    write(bench)
    bench.drain(sender)

    assert sender.texts() == ["one + two", "three"]
    assert bench.status(*rows) == [SENT, JOINED, SENT]


def test_answers_of_two_conversations_go_out_apart(bench, sender):
    lineages = [bench.app.get_or_create_session(bench.target(), force_new=True).lineage_id for _ in range(2)]
    sender.then(LATER)
    rows = [bench.put(text, lineage_id=lineages[at]) for text, at in (("one", 0), ("two", 0), ("three", 1))]
    bench.drain(sender)

    write(bench)
    bench.drain(sender)
    bench.app.delete_session(lineages[0])

    assert sender.texts() == ["one + two", "three"]
    assert [(row.id, row.text) for row in bench.store.deliveries()] == [(rows[2], "three")]


def test_an_answer_that_went_out_in_part_takes_the_others_along_with_its_rest(bench, sender):
    row = bench.put("first rest")
    sender.split = lambda text, target: [PartDraft(text=part) for part in text.split()]
    sender.then(Sent(), LATER)
    behind = bench.put("behind")
    bench.drain(sender)

    write(bench)
    bench.drain(sender)

    assert sender.texts() == ["first", "rest + behind"]
    assert bench.status(row, behind) == [SENT, JOINED]


def test_what_was_joined_is_sent_as_it_was_by_whoever_takes_over(bench, sender, dead_process):
    sender.then(LATER, LATER)
    first, second = bench.put("one"), bench.put("two")
    bench.drain(sender)
    write(bench)
    bench.drain(sender)
    (part,) = bench.row(first).parts
    third = bench.put("three")
    write(bench)
    bench.claimed_by(first, parts=(), **dead_process)

    bench.drain(sender, idempotent_send=True)

    assert sender.texts() == ["one + two", "three"]
    assert sender.calls[-2].key == part.key
    assert bench.status(first, second, third) == [SENT, JOINED, SENT]


def test_a_joined_answer_that_fails_is_one_that_a_person_can_retry(bench, sender):
    sender.then(LATER, Rejected("not there any more"))
    rows = [bench.put(text) for text in ("one", "two")]
    bench.drain(sender)
    write(bench)
    bench.drain(sender)
    assert bench.status(*rows) == [FAILED, JOINED]

    bench.app.outbox.retry(rows[0])
    bench.drain(sender)

    assert sender.texts() == ["one + two"]
    assert bench.status(*rows) == [SENT, JOINED]
