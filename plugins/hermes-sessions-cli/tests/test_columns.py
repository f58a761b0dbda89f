"""Columns and cuts by what a screen shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from hermes_cli.columns import clip, clip_middle, display_width, layout, prefix_of, wrap

CODER = "👩‍💻"
ROWS = [
    ["ID", "TITLE", "N"],
    ["20260901_120000_0123abcd", "周报汇总 v2", "1"],
    ["20260901_120000_0123abce", f"emoji {CODER} x", "12"],
    ["20260901_120000_0123abcf", "a long plain title " * 8, "123"],
    ["20260901_120000_0123abcg", "很长的标题" * 20, "1234"],
]


def ends_of_titles(lines):
    """Return the columns in which the last cell of each line ends."""
    return {wcswidth(line) for line in lines}


@pytest.mark.parametrize("width", [80, 120])
def test_columns_end_under_each_other_whatever_the_titles_are(width):
    lines = layout(ROWS, width=width, giving=1, right=frozenset({2}))

    assert ends_of_titles(lines) == {width}
    assert all(line.startswith(row[0]) for line, row in zip(lines, ROWS, strict=True))
    assert CODER in lines[2]
    assert lines[3].split("  ")[1].endswith("…")


def test_without_a_terminal_nothing_is_cut_and_columns_still_align():
    lines = layout(ROWS, width=None, giving=1, right=frozenset({2}))

    assert len(ends_of_titles(lines)) == 1
    assert all(row[1].rstrip() in line for line, row in zip(lines, ROWS, strict=True))


def test_an_id_is_complete_even_on_a_screen_narrower_than_it():
    (line,) = layout([["20260901_120000_0123abcd", "a title that is long", "9"]], width=20, giving=1)

    assert line.startswith("20260901_120000_0123abcd  ")
    assert line.endswith("9")


def test_a_cut_never_parts_a_sign():
    assert clip(f"abc{CODER}def", 5) == "abc…"
    assert clip(f"abc{CODER}def", 6) == f"abc{CODER}…"
    assert clip("周报汇总", 4) == "周…"
    assert clip("cafe\u0301s", 5) == "cafe\u0301s"
    assert clip("short", 5) == "short"


def test_a_beginning_of_so_many_characters_never_ends_inside_a_sign():
    assert prefix_of(f"ab{CODER}", 3) == "ab"
    assert prefix_of(f"ab{CODER}c", 5) == f"ab{CODER}"
    assert prefix_of("abcdef", 3) == "abc"
    assert prefix_of("ab", 3) == "ab"


@given(st.text(max_size=80), st.integers(min_value=1, max_value=60))
def test_a_beginning_is_a_prefix_and_not_longer(text, count):
    head = prefix_of(text, count)

    assert text.startswith(head)
    assert len(head) <= count


@given(st.text(alphabet="ab 周\u0301👩\u200d💻", max_size=60), st.integers(min_value=4, max_value=30))
def test_wrapped_lines_fit_and_lose_nothing_but_blanks(text, width):
    lines = wrap(text, width)

    assert all(display_width(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_wrapping_keeps_indentation_and_breaks_at_blanks():
    assert wrap("    code\nplain words here", 11) == ["    code", "plain words", "here"]
    assert wrap("abcdefgh", 3) == ["abc", "def", "gh"]
    assert wrap("", 10) == [""]


def test_no_rows_are_no_lines():
    assert layout([], width=80, giving=0) == []


@pytest.mark.parametrize("text", ["agent:main:feishu:dm:chat=oc_1", "周报汇总" * 9, f"a{CODER}" * 20])
@pytest.mark.parametrize("width", [8, 15, 29])
def test_a_cut_in_the_middle_keeps_both_ends(text, width):
    cut = clip_middle(text, width)

    assert wcswidth(cut) <= width
    head, tail = cut.split("…")
    assert text.startswith(head)
    assert text.endswith(tail)
    assert head
    assert tail
    assert clip_middle(text, 200) == text
