"""What was said before fifty compressions is found word by word; ``make laws`` has 20 000 messages of it."""

from __future__ import annotations

import os

import pytest

from hermes_hookspecs.ids import SessionId
from hermes_hookspecs.messages import KIND_SUMMARY, SYSTEM, MessageDraft
from hermes_hookspecs.operations import Compress
from hermes_hookspecs.testing.scene import ALL, asking, fence_of, result, saying

IS_LONG = "HERMES_LAWS" in os.environ
TURNS = 2500 if IS_LONG else 250
CALLS = 4
COMPRESSIONS = 50
KEPT = 2
"""Turns that stay behind each of them."""
ROLES = ("user", "assistant", "tool")


def _word(number, place):
    return f"w{number:05}x{place}"


def _turn(scene, entry, number):
    """Store one turn: a question, parallel calls, their results in another order, two answers."""
    begun = scene.ask(entry, f"please look at {_word(number, 0)}")
    calls = [f"c{place}" for place in range(CALLS)]
    results = [result(call, f"found {_word(number, place)}") for place, call in enumerate(calls, 2)]
    asked = asking(*calls, content=f"let me see {_word(number, 1)}")
    answers = (saying(f"half way {_word(number, 6)}"), saying(f"done with {_word(number, 7)}"))
    scene.append(begun, asked, *reversed(results), answers[0])
    scene.finish(begun, answers[1])


def _compress(scene, entry, number):
    """Let the lineage go on in a child that keeps the last turns."""
    lineage = scene.lineage(entry.lineage_id)
    begun = scene.try_begin(entry.lineage_id, maintenance=True)
    kept = next(row.id for row in scene.rows(entry.lineage_id)[-8 * KEPT :] if row.role == "user")
    summary = MessageDraft(role=SYSTEM, content=f"so far {number}", kind=KIND_SUMMARY, timestamp=number)
    child = SessionId(f"child-{number}")
    scene.run(
        Compress(
            fence=fence_of(begun),
            expected=lineage.tip,
            session_id=child,
            kept_from=kept,
            now=scene.now,
            summary=summary,
            finish=True,
        )
    )
    return kept


@pytest.mark.slow
@pytest.mark.law
def test_every_message_behind_fifty_compressions_is_found_and_what_is_live_is_left_out(
    scene, caught_up, found, record_property
):
    entry = scene.enter()
    kept = None
    for number in range(TURNS):
        _turn(scene, entry, number)
        if (number + 1) % (TURNS // COMPRESSIONS) == 0:
            kept = _compress(scene, entry, number)
    caught_up()
    rows = [row for row in scene.rows(entry.lineage_id) if row.kind != KIND_SUMMARY]

    lost, shown = [], 0
    for row in rows:
        word = row.content.rpartition(" ")[2]
        hits = found(word, roles=ROLES, exclude=entry.lineage_id, exclude_from=kept)
        shown += row.id >= kept
        if hits != ([] if row.id >= kept else [row.id]):
            lost.append((word, hits))

    record_property(
        "long lineage",
        {"messages": len(rows), "found": len(rows) - shown - len(lost), "live": shown, "not found": len(lost)},
    )
    assert lost == []
    assert (len(rows), shown) == (8 * TURNS, 8 * KEPT)
    assert scene.lineage(entry.lineage_id).segments == COMPRESSIONS + 1
    assert [row.content for row in scene.store.messages(entry.lineage_id, ALL) if row.kind == KIND_SUMMARY]
