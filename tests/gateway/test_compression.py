"""``/compress`` in a chat: a row like any other command, whose effect runs once and whose reply tells the truth."""

from __future__ import annotations

import asyncio

from hermes_hookspecs.principal import operator

ALL = operator()
LONG = "and so on with many words about the weather in the mountains " * 8


def _answer(turn):
    return f"{len(turn.messages)} messages. {LONG}"


def _talk(hall, count):
    for number in range(count):
        hall.say(f"question {number}. {LONG}")
        hall.work(_answer)


def test_a_chat_is_compressed_and_its_next_turn_loads_what_was_said(hall):
    _talk(hall, 8)
    lineage = hall.lineage()

    hall.say("/compress", "go on")
    *_, reply, answer = hall.work(_answer)

    loaded = int(answer.partition(" ")[0])
    assert f"the model sees {loaded - 1} messages instead of 16" in reply
    assert hall.lineage() == lineage
    assert [one.end_reason for one in hall.app.store.segments(lineage, ALL)] == ["compression", None]


def test_a_command_whose_reply_is_owed_compresses_no_second_time(hall):
    _talk(hall, 8)
    lineage = hall.lineage()
    (row,) = hall.say("/compress")
    report = asyncio.run(hall.app.compress_session(lineage, hall.source(), control_id=row.id))
    assert hall.item(row.id).status == "applied"

    *_, reply = hall.work(_answer)

    assert f"messages instead of {report.rows_before}" in reply
    assert len(hall.app.store.segments(lineage, ALL)) == 2
    assert hall.item(row.id).status == "done"


def test_an_uncompression_that_was_applied_is_only_told(hall):
    _talk(hall, 8)
    lineage = hall.lineage()
    asyncio.run(hall.app.compress_session(lineage, hall.source()))
    (row,) = hall.say("/uncompress")
    asyncio.run(hall.app.uncompress_session(lineage, hall.source(), control_id=row.id))

    *_, reply = hall.work(_answer)

    assert reply.startswith("Uncompressed: the model sees 16 messages")
    assert len(hall.app.store.segments(lineage, ALL)) == 3
