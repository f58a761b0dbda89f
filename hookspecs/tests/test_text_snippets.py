"""Snippets: one safe line around the hits."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_hookspecs.text.parsing import parse
from hermes_hookspecs.text.snippets import snippet


def _shown(text, typed, width=60):
    return snippet(text, parse(typed), width=width).replace("\x02", "[").replace("\x03", "]")


@pytest.mark.parametrize(
    ("text", "typed", "shown"),
    [
        ("one needle here", "needle", "one [needle] here"),
        ("自動ﾃｽﾄ結果", "テスト", "自動[ﾃｽﾄ]結果"),
        ("in der Straße", "strasse", "in der [Straße]"),
        ("用 docker 部署", "docker部署", "用 [docker 部署]"),
        ("e\u0301te\u0301 ici", "ete", "[e\u0301te\u0301] ici"),
        ("two\n lines\tof needle", "needle", "two lines of [needle]"),
        ("\x02fake\x03 \x1b[31mneedle", "needle", "fake [31m[needle]"),
        ("abcabc", "abc bca", "[abcabc]"),
        ("nothing of it", "else", "nothing of it"),
    ],
)
def test_hits_are_marked(text, typed, shown):
    assert _shown(text, typed) == shown


@pytest.mark.parametrize("text", ["a needle 数据库", "数据库 needle \t数据库", "数据库needle"])
def test_blanks_that_folding_takes_out_are_no_part_of_a_hit(text):
    assert "[needle]" in _shown(text, "needle")


def test_the_part_with_the_most_hits_is_shown():
    text = f"alpha {'filler ' * 40} alpha beta {'filler ' * 40}"

    assert "[alpha] [beta]" in _shown(text, "alpha beta")


def test_a_hit_far_inside_a_long_text_is_found():
    text = f"{'填充文字' * 5000}针{'填充文字' * 5000}"

    shown = _shown(text, "针")

    assert "[针]" in shown
    assert shown.startswith("…")
    assert shown.endswith("…")


@given(st.text(max_size=300), st.integers(20, 80))
def test_whatever_the_text_the_line_is_safe_and_fits(text, width):
    line = snippet(f"{text} needle {text}", parse("needle"), width=width)

    bare = line.replace("\x02", "").replace("\x03", "").strip("…")
    columns = sum(2 if unicodedata.east_asian_width(one) in {"W", "F"} else 1 for one in bare)
    marks = len([one for one in bare if unicodedata.category(one) in {"Mn", "Me"}])
    assert all(unicodedata.category(one) not in {"Cc", "Cf", "Cs", "Zl", "Zp"} for one in bare)
    assert columns - 2 * marks <= width
    assert line.count("\x02") == line.count("\x03") >= 1
