"""20 000 messages with parallel tool calls stay legal through 50 compressions, and all of them stay."""

from __future__ import annotations

import asyncio

import pytest

from hermes_core.config.sections import CompressionSettings
from hermes_core.context.compression import Compressor, load_context
from hermes_core.context.window import window_of
from hermes_hookspecs.messages import ASSISTANT, KIND_SUMMARY, SYSTEM, TOOL, USER, MessageDraft, ToolCall
from hermes_hookspecs.principal import operator
from hermes_hookspecs.testing.scene import Scene, fence_of, saying

ALL = operator()
ROWS = 20_000
COMPRESSIONS = 50
CALLS = 4
TURNS = ROWS // (CALLS + 4)
LIMIT = 400
ASKED_EVERY = 5
"""Turns between two questions whether it is time, which keeps the test short."""


class Quiet:
    """An agent that says nothing of its model."""

    name = "quiet"
    model = None


def _rows(number):
    """One turn behind its question: a round of parallel calls, an answer, a note of what is open, an answer."""
    calls = tuple(
        ToolCall(id=f"c{n}", name="look", arguments=f'{{"path": "src/f{number}_{n}.py"}}') for n in range(CALLS)
    )
    results = [
        MessageDraft(role=TOOL, content=f"found {number}", tool_call_id=call.id, tool_name="look", timestamp=number)
        for call in reversed(calls)
    ]
    asked = MessageDraft(role=ASSISTANT, content="", tool_calls=calls, timestamp=number)
    return asked, *results, saying(f"half way {number}"), saying(f"done with {number}, as the weather allows")


def _faults(sent):
    """What a model would refuse, in words."""
    faults = []
    if [row.role for row in sent].count(SYSTEM):
        faults.append("a system row")
    if sum(row.kind == KIND_SUMMARY for row in sent) > 1:
        faults.append("two summaries")
    for place, row in enumerate(sent):
        behind = sent[place + 1 : place + 1 + len(row.tool_calls)]
        if row.tool_calls and {call.id for call in row.tool_calls} != {one.tool_call_id for one in behind}:
            faults.append(f"unanswered calls at {place}")
        if row.role == TOOL and (place == 0 or sent[place - 1].role not in {TOOL, ASSISTANT}):
            faults.append(f"a result out of place at {place}")
    return faults


@pytest.mark.slow
@pytest.mark.law
@pytest.mark.parametrize("backend", ["sqlite"])  # the other one copies its tables with every write
def test_a_long_conversation_stays_legal_through_fifty_compressions(profile, record_property):
    app = profile(listens=False)
    store = app.store
    scene = Scene(store)
    compressor = Compressor(
        store=store,
        clock=scene.clock,
        hooks=app.hooks,
        settings=CompressionSettings(hygiene_hard_message_limit=LIMIT),
    )
    entry = scene.enter()
    seen = 1
    longest = prompts = 0
    for number in range(TURNS):
        begun = scene.ask(entry, f"question {number}: please look at src/f{number}.py")
        context = load_context(store, begun.session) if number % ASKED_EVERY == 0 else None
        if context is not None:
            context = asyncio.run(compressor.before_load(fence_of(begun), context, Quiet()))
            sent = window_of(context.session, context.rows)
            longest = max(longest, len(sent))
            prompts += 1
            assert _faults(sent) == []
            assert sent[-1].content.startswith(f"question {number}")
            if (count := scene.lineage(entry.lineage_id).segments) != seen:
                seen = count
                assert sent[0].role == USER
        drafts = _rows(number)
        scene.append(begun, *drafts[:-1])
        scene.finish(begun, drafts[-1])

    rows = store.messages(entry.lineage_id, ALL)
    segments = store.segments(entry.lineage_id, ALL)
    counted = {"messages": len(rows), "compressions": len(segments) - 1, "legal prompts": prompts, "longest": longest}
    record_property("long conversation", counted)
    assert len(rows) >= ROWS + COMPRESSIONS
    assert len(segments) - 1 >= COMPRESSIONS
    assert longest < LIMIT + 50
    assert [row.content.partition(":")[0] for row in rows if row.role == USER] == [
        f"question {n}" for n in range(TURNS)
    ]
    assert len(rows) == sum(one.message_count for one in segments) == scene.lineage(entry.lineage_id).message_count
    kept = [one.kept_from for one in segments[1:]]
    assert kept == sorted(kept)
    assert _is_found_shown_and_exported(app, entry, rows)


def _is_found_shown_and_exported(app, entry, rows):
    """Look for messages of every segment, and for all of them in what is shown and exported."""
    for number in range(0, TURNS - LIMIT // (CALLS + 4), TURNS // 6):
        for words, role in (
            (f'"question {number}"', USER),
            (f'"half way {number}"', ASSISTANT),
            (f'"found {number}"', TOOL),
        ):
            found = app.session_search(words, own=entry.lineage_id, role_filter=(role,)).results
            assert [one.lineage_id for one in found] == [entry.lineage_id], words
    exported = app.export_session(entry.session_id, lineage=True)
    assert [row["content"] for row in exported["messages"]] == [row.content for row in rows]
    assert [one["message_count"] for one in exported["segments"]] == [
        one.message_count for one in app.store.segments(entry.lineage_id, ALL)
    ]
    (listed,) = app.store.summaries(ALL)
    assert (listed.message_count, listed.segments) == (len(rows), len(exported["segments"]))
    return True
