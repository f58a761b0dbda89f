"""Files of an answer: each a part of its own, sent once; a line of text where one cannot be sent."""

from __future__ import annotations

import os
from hashlib import sha256

import pytest

from hermes_core.outbox.parts import REPEAT_MARK
from hermes_hookspecs.errors import Rejected, RetryLater
from hermes_hookspecs.outbox import FAILED, SENT, WAITING
from hermes_hookspecs.ports.platform import Sent
from hermes_hookspecs.testing.platform import FindingSender, RecordingSender, arrived_but

LARGE = {"max_file_bytes": 1000}


def _seen(sender):
    return [(part.file, "" if part.file else part.text) for part in sender.received()]


def test_files_go_out_behind_the_text_each_once_under_a_key_of_its_own(bench):
    delivery_id = bench.put("there they are", files=[bench.file("a.png", b"A"), bench.file("b.pdf", b"B")])

    bench.drain(**LARGE)

    received = bench.sender.received()
    assert _seen(bench.sender) == [("", "there they are"), ("a.png", ""), ("b.pdf", "")]
    assert [part.sha256 for part in received[1:]] == [sha256(data).hexdigest() for data in (b"A", b"B")]
    assert [(part.index, part.count) for part in received] == [(0, 3), (1, 3), (2, 3)]
    assert len({part.key for part in received}) == 3
    media = bench.sender.calls[1].media
    assert (media.name, media.media_type, media.kind, media.size) == ("a.png", "image/png", "image", 1)
    assert bench.status(delivery_id) == [SENT]


def test_an_answer_may_be_a_file_alone(bench):
    delivery_id = bench.put("", files=[bench.file()])

    bench.drain(**LARGE)

    assert _seen(bench.sender) == [("report.pdf", "")]
    assert bench.sender.calls[0].reply_to == "om_1"
    assert bench.status(delivery_id) == [SENT]


def test_a_platform_without_files_gets_a_line_for_each(bench):
    bench.put("done", files=[bench.file("a.png", b"A"), bench.file("b.pdf", bytes(2_345_678))])
    bench.put("", chat="oc_2", files=[bench.file("c.txt", bytes(1234))])

    bench.drain()

    assert bench.sender.texts() == [
        "done\n\n[a.png, 1 byte: files cannot be sent here]\n[b.pdf, 2.3 MB: files cannot be sent here]",
        "[c.txt, 1 kB: files cannot be sent here]",
    ]


def test_a_file_that_is_larger_than_the_platform_takes_is_a_line_and_the_others_go(bench):
    bench.put("done", files=[bench.file("large.bin", bytes(1001)), bench.file("small.bin", bytes(1000))])

    bench.drain(**LARGE)

    assert _seen(bench.sender) == [
        ("", "done\n\n[large.bin, 1 kB: it is too large, the most here is 1 kB]"),
        ("small.bin", ""),
    ]


def test_a_file_whose_bytes_are_gone_is_a_line_in_its_place(bench):
    files = [bench.file("gone.pdf", b"gone", kept=False), bench.file("there.pdf", b"there")]
    delivery_id = bench.put("done", files=files)

    bench.drain(**LARGE)

    assert _seen(bench.sender) == [
        ("", "done"),
        ("", "[gone.pdf, 4 bytes: it is not kept any more]"),
        ("there.pdf", ""),
    ]
    assert bench.status(delivery_id) == [SENT]


def test_a_file_that_the_platform_does_not_take_is_a_line_in_its_place(bench):
    delivery_id = bench.put("", files=[bench.file("odd.bin"), bench.file("fine.bin", b"fine")])
    sender = RecordingSender(answers=[Rejected("its type is not allowed")])

    bench.drain(sender, **LARGE)

    assert _seen(sender) == [("", "[odd.bin, 4 bytes: the platform did not take it]"), ("fine.bin", "")]
    assert [part.key for part in sender.calls[:2]] == [bench.row(delivery_id).parts[0].key] * 2
    assert bench.status(delivery_id) == [SENT]


def test_a_line_that_is_not_taken_either_fails_the_delivery(bench):
    delivery_id = bench.put("", files=[bench.file()])

    bench.drain(RecordingSender(answers=[Rejected("no"), Rejected("not that either")]), **LARGE)

    assert (bench.row(delivery_id).status, bench.row(delivery_id).error) == (FAILED, "not that either")


def test_a_cut_between_two_files_sends_neither_twice(bench):
    delivery_id = bench.put("done", files=[bench.file("a.bin", b"A"), bench.file("b.bin", b"B")])
    sender = RecordingSender(answers=[Sent(), Sent(), RetryLater("no connection")])

    bench.drain(sender, **LARGE)
    assert bench.status(delivery_id) == [WAITING]
    bench.clock.advance(60_000)
    bench.drain(sender, **LARGE)

    assert _seen(sender) == [("", "done"), ("a.bin", ""), ("b.bin", "")]
    assert not bench.row(delivery_id).is_possible_repeat


def test_a_file_whose_sending_nobody_knows_is_asked_for_first(bench):
    delivery_id = bench.put("", files=[bench.file()])
    sender = FindingSender(answers=[arrived_but(OSError("cut"))])

    bench.drain(sender, **LARGE)
    bench.clock.advance(60_000)
    bench.drain(sender, **LARGE)

    assert _seen(sender) == [("report.pdf", "")]
    assert (bench.status(delivery_id), sender.asked) == ([SENT], 1)


def test_a_file_that_may_be_a_repeat_is_marked_as_one(bench):
    delivery_id = bench.put("", files=[bench.file()])
    sender = RecordingSender(answers=[arrived_but(OSError("cut"))])

    bench.drain(sender, **LARGE)
    bench.clock.advance(60_000)
    bench.drain(sender, **LARGE)

    assert [(part.file, part.possible_repeat) for part in sender.received()] == [
        ("report.pdf", False),
        ("report.pdf", True),
    ]
    assert REPEAT_MARK not in sender.calls[1].text
    assert bench.row(delivery_id).is_possible_repeat


def test_a_line_in_place_of_a_file_that_may_have_gone_out_says_so(bench):
    bench.put("", files=[bench.file()])
    sender = RecordingSender(answers=[OSError("cut"), Rejected("no")])

    bench.drain(sender, **LARGE)
    bench.clock.advance(60_000)
    bench.drain(sender, **LARGE)

    assert sender.texts() == [f"{REPEAT_MARK} [report.pdf, 4 bytes: the platform did not take it]"]


def test_bytes_that_cannot_be_read_now_are_read_later(bench):
    file = bench.file()
    delivery_id = bench.put("", files=[file])
    path = os.path.join(bench.app.attachments.folder, file.sha256[:2], file.sha256, "bytes")
    os.rename(path, f"{path}-aside")
    os.mkdir(path)  # as good as an open file too many, or a volume that is away
    bench.drain(**LARGE)
    assert bench.status(delivery_id) == [WAITING]
    assert bench.row(delivery_id).error.endswith("could not be read: Is a directory")
    os.rmdir(path)
    os.rename(f"{path}-aside", path)

    bench.clock.advance(60_000)
    bench.drain(**LARGE)

    assert _seen(bench.sender) == [("report.pdf", "")]
    assert not bench.row(delivery_id).is_possible_repeat


def test_an_adapter_that_cuts_texts_itself_gets_files_all_the_same(bench):
    class Cutting(RecordingSender):
        def split(self, text, target):
            from hermes_hookspecs.outbox import PartDraft

            return tuple(PartDraft(text=word, format="markdown") for word in text.split())

    sender = Cutting()
    bench.put("two words", files=[bench.file()])
    bench.put("", chat="oc_2", files=[bench.file()])

    bench.drain(sender, **LARGE)

    assert sorted(_seen(sender)) == [("", "two"), ("", "words"), ("report.pdf", ""), ("report.pdf", "")]


@pytest.mark.parametrize("text", ["", " \n "])
def test_a_delivery_without_anything_to_send_fails(bench, text):
    delivery_id = bench.put(text)

    bench.drain(**LARGE)

    assert (bench.row(delivery_id).status, bench.row(delivery_id).error) == (FAILED, "there is nothing to send")
