"""The laws of repair: idempotent, monotone at turn boundaries, no orphan, every call answered right behind its row."""

from __future__ import annotations

from itertools import count

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_core import repair_message_sequence as repair
from hermes_core.context.repair import UNNAMED_TOOL, new_repairs, repaired
from hermes_hookspecs.context import REPAIR_REASONS
from hermes_hookspecs.messages import INTERRUPTED_RESULT, KIND_NOTE, KIND_SUMMARY, Message, ToolCall


def row(role, content="", *, turn="T1", calls=(), answers=None, number=1, **fields):
    return Message(
        id=number,
        lineage_id="L1",
        session_id="S1",
        turn_id=turn,
        role=role,
        content=content,
        timestamp=1,
        tool_calls=tuple(ToolCall(id=call, name=f"tool-{call}") for call in calls),
        tool_call_id=answers,
        tool_name=None if answers is None else f"tool-{answers}",
        **fields,
    )


def shown(rows):
    return [(one.role, one.content or one.tool_call_id or [call.id for call in one.tool_calls]) for one in rows]


# ------------------------------------------------------------------ single rules


def test_a_result_without_its_call_goes():
    assert shown(repair([row("user", "u"), row("assistant", "a"), row("tool", "x", answers="t9")])) == [
        ("user", "u"),
        ("assistant", "a"),
    ]


def test_a_second_result_of_one_call_goes():
    rows = [row("assistant", calls="a"), row("tool", "1", answers="a"), row("tool", "2", answers="a")]

    assert shown(repair(rows)) == [("assistant", ["a"]), ("tool", "1")]


def test_a_call_that_nobody_answered_gets_a_result_right_behind_the_answered_ones():
    rows = [
        row("assistant", calls="abc", token_count=9, reasoning="hm", finish_reason="tool_calls"),
        row("tool", "2", answers="b"),
        row("user", "next", turn="T2"),
        row("tool", "late", answers="a"),
    ]

    repaired = repair(rows)

    assert shown(repaired) == [
        ("assistant", ["a", "b", "c"]),
        ("tool", "2"),
        ("tool", INTERRUPTED_RESULT),
        ("tool", INTERRUPTED_RESULT),
        ("user", "next"),
    ]
    made = repaired[2]
    assert (made.tool_call_id, made.tool_name, made.kind) == ("a", "tool-a", "interrupted")
    assert (made.token_count, made.reasoning, made.finish_reason, made.tool_calls) == (None, None, None, ())


def test_calls_at_the_very_end_stay_open_since_their_turn_may_still_run():
    rows = [row("user", "u"), row("assistant", calls="a")]

    assert repair(rows) == rows


def test_user_rows_merge_within_one_turn_with_what_was_sent_and_attached():
    rows = [row("user", "one"), row("user", "two", sent="[Bob] two"), row("user", "three", turn="T2")]

    merged, other = repair(rows)

    assert (merged.content, merged.sent) == ("one\n\ntwo", "one\n\n[Bob] two")
    assert other.content == "three"


def test_user_rows_without_a_turn_never_merge():
    rows = [row("user", "one", turn=None), row("user", "two", turn=None)]

    assert repair(rows) == rows


def test_rows_for_people_and_hidden_rows_are_left_out_and_part_nothing():
    rows = [
        row("user", "one"),
        row("assistant", "a note", kind=KIND_NOTE),
        row("user", "two"),
        row("user", "taken back", hidden=True),
    ]

    assert shown(repair(rows)) == [("user", "one\n\ntwo")]


def test_the_rows_that_were_given_are_not_touched():
    rows = [row("user", "one"), row("user", "two")]
    before = list(rows)

    repair(rows)

    assert rows == before


def told(rows):
    return [(one.kind, *one.message_ids) for one in repaired(rows)[1]]


def numbered(*rows):
    return [attrs.evolve(one, id=number) for number, one in enumerate(rows, 1)]


def test_of_two_calls_with_one_id_the_first_is_sent():
    rows = numbered(row("assistant", calls="aba"), row("tool", "1", answers="a"), row("tool", "2", answers="b"))

    assert shown(repair(rows)) == [("assistant", ["a", "b"]), ("tool", "1"), ("tool", "2")]
    assert told(rows) == [("doubled-call", 1)]


def test_a_call_of_no_tool_is_sent_under_a_name_that_says_so():
    nameless = attrs.evolve(row("assistant"), tool_calls=(ToolCall(id="a", name=" "), ToolCall(id="b", name="t")))

    (sent,) = repair([nameless])

    assert [call.name for call in sent.tool_calls] == [UNNAMED_TOOL, "t"]
    assert told([nameless]) == [("unnamed-call", 1)]


def test_an_answer_of_nothing_and_a_row_of_an_unknown_role_are_not_sent():
    rows = numbered(row("user", "u"), row("assistant"), row("session_meta", "x"), row("assistant", "a"))

    assert shown(repair(rows)) == [("user", "u"), ("assistant", "a")]
    assert told(rows) == [("empty-answer", 2), ("unknown-role", 3)]


def test_an_answer_of_nothing_parts_no_call_from_its_result():
    rows = numbered(row("assistant", calls="a"), row("assistant"), row("tool", "1", answers="a"))

    assert shown(repair(rows)) == [("assistant", ["a"]), ("tool", "1")]


def test_assistants_that_only_an_orphan_parts_are_treated_in_one_walk():
    rows = numbered(row("assistant", "one"), row("tool", "x", answers="t9"), row("assistant", "two"))

    assert shown(repair(rows)) == [("assistant", "one"), ("assistant", "two")]
    assert repair(repair(rows)) == repair(rows)


def test_a_summary_never_merges_with_what_stands_behind_it():
    rows = numbered(row("user", "before", kind=KIND_SUMMARY), row("user", "now"))

    assert repair(rows) == rows


def test_each_repair_is_told_with_its_kind_and_rows():
    rows = numbered(
        row("user", "one"),
        row("tool", "x", answers="t9"),
        row("user", "two"),
        row("user", "three"),
        row("assistant", calls="ab"),
        row("tool", "1", answers="a"),
        row("tool", "1 again", answers="a"),
        row("user", "next", turn="T2"),
        row("tool", "late", answers="b"),
    )

    assert told(rows) == [
        ("joined", 1, 3, 4),
        ("orphaned-result", 2),
        ("unanswered-call", 5),
        ("doubled-result", 7),
        ("orphaned-result", 9),
    ]
    assert {kind for kind, *_ in told(rows)} <= set(REPAIR_REASONS)


def test_rows_that_are_legal_are_told_nothing_of():
    rows = [row("user", "u"), row("assistant", calls="a"), row("tool", "1", answers="a"), row("assistant", "done")]

    assert repaired(rows) == (rows, ())


def test_a_repair_is_new_to_one_turn_only():
    first = numbered(row("user", "one", turn="T1"), row("user", "two", turn="T1"))
    second = numbered(*first, row("assistant", calls="a", turn="T1"), row("user", "three", turn="T2"))
    third = numbered(*second, row("assistant", "done", turn="T2"), row("user", "four", turn="T3"))

    def new(rows):
        return [(one.kind, *one.message_ids) for one in new_repairs(rows, repaired(rows)[1])]

    assert new(first) == [("joined", 1, 2)]
    assert new(second) == [("unanswered-call", 3)]
    assert new(third) == []


# ------------------------------------------------------------------ laws


@st.composite
def transcripts(draw):
    """Any rows in any order, in turns that follow each other; ids of calls repeat now and then."""
    numbers = count(1)
    rows = []
    for turn in range(draw(st.integers(1, 5))):
        for _ in range(draw(st.integers(0, 6))):
            role = draw(st.sampled_from(["user", "assistant", "tool", "tool"]))
            rows.append(
                row(
                    role,
                    draw(st.sampled_from(["", "x", "y"])),
                    turn=draw(st.sampled_from([f"T{turn}", f"T{turn}", None])),
                    number=next(numbers),
                    calls=draw(st.sampled_from(["", "a", "ab", "aba", "abc", "c"])) if role == "assistant" else "",
                    answers=draw(st.sampled_from("abcd")) if role == "tool" else None,
                    kind=draw(st.sampled_from(["", "", "", KIND_NOTE])),
                    hidden=draw(st.integers(0, 9)) == 0,
                    sent=draw(st.sampled_from([None, None, "[Al] x"])) if role == "user" else None,
                )
            )
    return rows


def boundaries(rows):
    """Places between rows where one turn has ended and another begins."""
    return [
        n
        for n in range(len(rows) + 1)
        if not {one.turn_id for one in rows[:n]} & {one.turn_id for one in rows[n:]} - {None}
    ]


@given(transcripts())
@settings(max_examples=100, deadline=None)
def test_repair_is_idempotent(rows):
    once = repair(rows)

    assert repair(once) == once


@given(transcripts())
@settings(max_examples=100, deadline=None)
def test_repair_of_the_first_turns_is_a_prefix_of_the_repair_of_more(rows):
    whole = repair(rows)

    for n in boundaries(rows):
        part = repair(rows[:n])
        assert whole[: len(part)] == part


@given(transcripts())
@settings(max_examples=100, deadline=None)
def test_something_is_told_exactly_where_something_was_changed(rows):
    visible = [one for one in rows if one.kind != KIND_NOTE and not one.hidden]
    copy, repairs = repaired(rows)

    assert (copy == visible) == (not repairs)
    assert {number for one in repairs for number in one.message_ids} <= {one.id for one in visible}


@given(transcripts())
@settings(max_examples=100, deadline=None)
def test_every_call_is_answered_once_right_behind_its_row_and_nothing_else_is_answered(rows):
    repaired = repair(rows)
    open_calls = set()

    for place, one in enumerate(repaired):
        if one.role == "tool":
            assert one.tool_call_id in open_calls
            open_calls.remove(one.tool_call_id)
            continue
        assert not open_calls, f"row {place} stands between a call and its result"
        open_calls = {call.id for call in one.tool_calls}
        assert not one.hidden
        assert one.kind != KIND_NOTE


@given(transcripts())
@settings(max_examples=100, deadline=None)
def test_nothing_that_was_said_is_lost_or_told_in_another_order(rows):
    kept = [one for one in rows if one.role != "tool" and not one.hidden and one.kind != KIND_NOTE]
    kept = [one for one in kept if one.role != "assistant" or one.content or one.tool_calls]
    said = [part for one in repair(rows) if one.role != "tool" for part in one.content.split("\n\n")]

    assert said == [one.content for one in kept]


@pytest.mark.parametrize("role", ["assistant", "system"])
def test_other_roles_never_merge(role):
    rows = [row(role, "one"), row(role, "two")]

    assert repair(rows) == rows


def test_a_generator_of_rows_will_do():
    assert repair(iter([row("user", "u")])) == [row("user", "u")]


def test_a_row_that_is_joined_keeps_the_place_of_the_first():
    first, second = row("user", "one", number=4), attrs.evolve(row("user", "two"), id=5)

    (joined,) = repair([first, second])

    assert joined.id == 4
