"""The recap of a resumed session."""

from __future__ import annotations

import pytest
from wcwidth import wcswidth

from hermes_cli.recap import RecapLimits, build_recap, draw_recap, without_reasoning
from hermes_hookspecs.messages import KIND_NOTE, KIND_RECOVERY, KIND_SUMMARY, Attachment, Message, ToolCall


def row(role, content="", **more):
    return Message(
        id=1, lineage_id="L1", session_id="s1", turn_id=more.pop("turn_id", "T1"), role=role, content=content,
        timestamp=0, **more,
    )  # fmt: skip


def calls(*names):
    return tuple(ToolCall(id=str(at), name=name) for at, name in enumerate(names))


def texts(rows, **limits):
    recap = build_recap(rows, RecapLimits(**limits), str)
    return [(entry.role, entry.text) for entry in recap.entries]


LAST = row("assistant", "the end")


def test_users_and_assistants_are_shown_and_nobody_else():
    rows = [
        row("system", "be nice"),
        row("user", "hello"),
        row("assistant", "", tool_calls=calls("terminal")),
        row("tool", "result", tool_call_id="0"),
        row("assistant", "hi"),
    ]

    assert texts(rows) == [("user", "hello"), ("assistant", "hi")]


@pytest.mark.parametrize("kind", [KIND_NOTE, KIND_RECOVERY, KIND_SUMMARY])
def test_rows_that_no_person_wrote_or_read_are_left_out(kind):
    assert texts([row("user", "x", kind=kind), row("user", "y")]) == [("user", "y")]


def test_ten_exchanges_are_shown_and_the_others_counted():
    rows = [row(role, f"{role} {at}") for at in range(13) for role in ("user", "assistant")]

    recap = build_recap(rows, RecapLimits(), str)

    assert len(recap.entries) == 20
    assert recap.earlier == 6
    assert recap.entries[0].text == "user 3"


def test_users_are_cut_by_characters():
    assert texts([row("user", "x" * 301)]) == [("user", "x" * 300 + "...")]
    assert texts([row("user", "x" * 300)]) == [("user", "x" * 300)]


def test_assistants_are_cut_by_lines_and_then_by_characters():
    rows = [
        row("assistant", "a\nb\nc\nd"),
        row("assistant", "\n".join(["y" * 90] * 4)),
        row("assistant", "z" * 201),
        LAST,
    ]

    shown = [text for _, text in texts(rows)]

    assert shown[0] == "a\nb\nc ..."
    assert shown[1] == ("y" * 90 + "\n" + "y" * 90 + "\n" + "y" * 90)[:200] + "..."
    assert shown[2] == "z" * 200 + "..."


def test_the_last_answer_is_complete_even_when_a_question_follows():
    long = "\n".join(f"line {at} " + "w" * 80 for at in range(50))
    rows = [row("assistant", long), row("assistant", long), row("user", "and then?")]

    (_, first), (_, second), (_, third) = texts(rows)

    assert first.endswith("...")
    assert second == long
    assert third == "and then?"


def test_tool_calls_are_folded_to_their_number_and_names():
    many = calls("terminal", "read_file", "terminal")
    rows = [
        row("assistant", "looking", tool_calls=many),
        row("assistant", "one", tool_calls=calls("x")),
        row("assistant", "all", tool_calls=calls("a", "b", "c", "d", "e")),
        LAST,
    ]

    shown = [text for _, text in texts(rows)]

    assert shown[:3] == [
        "looking [3 tool calls: terminal, read_file]",
        "one [1 tool call: x]",
        "all [5 tool calls: a, b, c, d, ...]",
    ]


def test_rows_of_nothing_but_calls_are_shown_when_asked_for():
    rows = [row("assistant", "", tool_calls=calls("terminal")), LAST]

    assert texts(rows) == [("assistant", "the end")]
    assert texts(rows, skip_tool_only=False)[0] == ("assistant", "[1 tool call: terminal]")


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("<think>secret</think>answer", "answer"),
        ("<THINKING depth=2>a\nb</THINKING>\nanswer", "answer"),
        ("before <reasoning>x</reasoning> after", "before  after"),
        ("answer <think>never closed", "answer"),
        ("lost head</think> answer", "lost head answer"),
        ("a < b and <thinker> stay", "a < b and <thinker> stay"),
    ],
)
def test_reasoning_is_left_out(text, rest):
    assert without_reasoning(text) == rest


def test_an_answer_of_nothing_but_reasoning_is_not_there():
    assert texts([row("user", "q"), row("assistant", "<think>hm</think>")]) == [("user", "q")]


def test_attachments_are_named_by_their_kind():
    attachments = (Attachment(kind="image"), Attachment(kind="document"))

    assert texts([row("user", "look", attachments=attachments)]) == [("user", "look\n[image]\n[document]")]
    assert texts([row("user", "", attachments=attachments[:1])]) == [("user", "[image]")]


def test_a_stored_message_cannot_command_the_terminal():
    rows = [row("user", "\x1b[2Jhi"), row("assistant", "\u202eok", tool_calls=calls("\x1b]0;x\x07"))]

    assert texts(rows) == [("user", "␛[2Jhi"), ("assistant", "\\u202eok [1 tool call: ␛]0;x␇]")]


def test_a_cut_keeps_joined_emoji_together():
    assert texts([row("user", "x" * 299 + "👩‍💻")]) == [("user", "x" * 299 + "...")]


def test_no_exchanges_wanted_still_says_how_many_there_are():
    recap = build_recap([row("user", "a"), LAST], RecapLimits(exchanges=0), str)

    assert (recap.entries, recap.earlier) == ((), 2)


def panel(rows, width=80, doors=None, **limits):
    door_of = (lambda turn: doors[turn]) if doors else str
    return draw_recap(build_recap(rows, RecapLimits(**limits), door_of), "plan", "20260901_120000_0123abcd", width)


def test_the_panel_names_the_entrance_wherever_it_changes():
    doors = {"T1": "cli/default/pts-3, ann", "T2": "feishu, 小明"}
    rows = [
        row("user", "one", turn_id="T1"),
        row("assistant", "two", turn_id="T1"),
        row("user", "three", turn_id="T2"),
        row("assistant", "four", turn_id="T2"),
        row("user", "five", turn_id="T1"),
    ]

    lines = panel(rows, doors=doors)

    assert lines[1:-1] == [
        "│ ── cli/default/pts-3, ann",
        "│ You: one",
        "│ Hermes: two",
        "│ ── feishu, 小明",
        "│ You: three",
        "│ Hermes: four",
        "│ ── cli/default/pts-3, ann",
        "│ You: five",
    ]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_the_panel_fits_the_screen_whatever_the_script(width):
    rows = [row("user", "周报汇总" * 60), row("assistant", "words and 👩‍💻 " * 40)]

    lines = panel(rows, width)

    assert max(wcswidth(line) for line in lines) <= min(width, 100)
    assert wcswidth(lines[0]) == wcswidth(lines[-1])


def test_the_panel_counts_what_it_leaves_out():
    rows = [row("user", str(at)) for at in range(30)]

    assert "│ ... 10 earlier messages ..." in panel(rows)
    assert "│ ... 1 earlier message ..." in panel(rows[:3], exchanges=1)


@pytest.mark.parametrize("width", [24, 40, 80, 120])
def test_the_heading_shows_the_whole_id_and_cuts_the_title(width):
    session_id = "20260901_120000_0123abcd"
    recap = build_recap([LAST], RecapLimits(), str)

    heading = draw_recap(recap, "周报汇总 and a long title " * 6, session_id, width)[0]
    untitled = draw_recap(recap, "", session_id, width)[0]

    assert f"… ({session_id}) " in heading
    assert untitled.startswith(f"╭─ {session_id} ")
    if width >= 40:
        assert wcswidth(heading) <= min(width, 100)
