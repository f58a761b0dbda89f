"""The fake platform of the kit does what its page says."""

from __future__ import annotations

import asyncio
import os

import attrs
import pytest

from hermes_hookspecs.errors import RetryLater
from hermes_hookspecs.ports.platform import Deferred, DeliveryPart, Sent
from hermes_hookspecs.source import SessionSource
from hermes_hookspecs.testing.platform import FindingSender, RecordingSender, arrived_but

PART = DeliveryPart(target=SessionSource(platform="feishu", chat_id="oc_1"), text="你好\n\ud800", key="k-0")


def _send(sender, part=PART):
    return asyncio.run(sender.send(part))


@pytest.fixture(params=["memory", "file"])
def place(request, tmp_path):
    return None if request.param == "memory" else tmp_path / "record"


def test_a_part_arrives_with_all_that_is_known_of_it(place):
    sender = RecordingSender(place)

    sent = _send(sender)

    (part,) = sender.received()
    assert sent == Sent(platform_message_id="m-k-0")
    assert (part.key, part.text, part.index, part.count, part.possible_repeat) == ("k-0", PART.text, 0, 1, False)
    assert (part.pid, part.number, part.address) == (os.getpid(), 1, "feishu:default::oc_1:")


def test_answers_are_given_in_order_and_those_to_a_key_first(place):
    sender = RecordingSender(
        place,
        answers=[RetryLater("busy"), arrived_but(OSError("too late")), Deferred(reason="closed")],
        answers_to={"k-1": [Sent(platform_message_id="other")]},
    )
    other = attrs.evolve(PART, key="k-1")

    with pytest.raises(RetryLater):
        _send(sender)
    assert _send(sender, other).platform_message_id == "other"
    with pytest.raises(OSError, match="too late"):
        _send(sender)
    assert _send(sender) == Deferred(reason="closed")
    assert _send(sender) == Sent(platform_message_id="m-k-0")
    assert [part.key for part in sender.received()] == ["k-1", "k-0", "k-0"]
    assert len(sender.calls) == 5


def test_an_idempotent_platform_takes_a_key_once_whoever_sends_it(place):
    first = RecordingSender(place, idempotent=True)
    second = first if place is None else RecordingSender(place, idempotent=True)

    answers = [_send(first), _send(second)]

    assert answers == [Sent(platform_message_id="m-k-0")] * 2
    assert len(first.received()) == 1


def test_a_platform_that_can_be_asked_tells_what_arrived(place):
    sender = FindingSender(place, answers=[OSError("lost"), arrived_but(OSError("too late"))])

    with pytest.raises(OSError, match="lost"):
        _send(sender)
    before = asyncio.run(sender.find_sent(PART))
    with pytest.raises(OSError, match="too late"):
        _send(sender)
    after = asyncio.run(sender.find_sent(PART))

    assert (before, after, sender.asked) == (None, Sent(platform_message_id="m-k-0"), 2)


def test_a_line_that_was_not_written_whole_is_not_read(tmp_path):
    sender = RecordingSender(tmp_path / "record")
    _send(sender)
    with open(tmp_path / "record", "a") as file:
        file.write('{"key": "half')

    assert sender.texts() == [PART.text]
