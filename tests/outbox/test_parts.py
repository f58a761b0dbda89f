"""Cutting a text into parts: nothing is lost, nothing is taken apart that people see as one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_core.outbox.characters import is_border
from hermes_core.outbox.parts import REPEAT_MARK, mark_repeat, parts_of, split_text
from hermes_hookspecs.ports.platform import PlatformAbilities

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
THUMB = "\U0001f44d\U0001f3fd"
FLAGS = "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7"
ALPHABET = st.sampled_from(
    [
        *("a", "b", "word ", " ", "\t", "\n", "\n\n", "\r\n", ". ", "。", "！", "长", "각", "`"),
        "e\u0301",
        FAMILY,
        FLAGS,
        THUMB,
    ]
)
FENCED = st.sampled_from(
    ["```\n", "```python\n", "\n```\n", "~~~\n", "    x = 1\n", "text\n", "\n", "long line of code; " * 3]
)


def _ink(text):
    """Return what is left without white space."""
    return "".join(text.split())


@given(st.lists(ALPHABET, max_size=80).map("".join), st.integers(1, 40))
def test_parts_lose_only_white_space_and_are_never_blank_or_too_long(text, most):
    parts = split_text(text, most)

    assert all(part.strip() for part in parts)
    assert all(len(part) <= most for part in parts)
    if "```" not in text:
        assert _ink("".join(parts)) == _ink(text)


@given(st.lists(FENCED, max_size=40).map("".join), st.integers(32, 120))
def test_cutting_code_blocks_loses_no_line_of_code_and_leaves_no_block_open(text, most):
    parts = split_text(text, most)

    assert all(len(part) <= most for part in parts)
    without_fences = [_ink(part).replace("`", "").replace("~", "").replace("python", "") for part in parts]
    assert "".join(without_fences) == _ink(text).replace("`", "").replace("~", "").replace("python", "")


@given(st.lists(ALPHABET, max_size=60).map("".join), st.integers(12, 40))
def test_a_character_as_people_see_it_is_never_cut(text, most):
    at = 0

    for part in split_text(text, most)[:-1]:
        if "`" in part:
            return
        at = text.index(part, at) + len(part)
        assert is_border(text, at)


def test_a_text_that_fits_is_left_as_it_is():
    assert split_text("  one\n\ntwo  ", 12) == ("  one\n\ntwo  ",)


@pytest.mark.parametrize("text", ["", " ", "\n\n\t "])
def test_white_space_has_no_parts(text):
    assert split_text(text, 1) == ()
    assert parts_of(text, PlatformAbilities()) == ()


def test_cuts_prefer_paragraphs_to_lines_to_sentences_to_words():
    assert split_text("one two.\n\nthree four\nfive", 24) == ("one two.\n\nthree four", "five")
    assert split_text("first paragraph\n\nsecond one\nline", 24) == ("first paragraph", "second one\nline")
    assert split_text("One is here. Two is there", 20) == ("One is here.", "Two is there")
    assert split_text("你好世界。再见世界。然后呢我们", 12) == ("你好世界。再见世界。", "然后呢我们")
    assert split_text("some words go on", 12) == ("some words", "go on")
    assert split_text("x" * 25, 10) == ("x" * 10, "x" * 10, "x" * 5)


def test_a_blank_that_carries_an_accent_is_no_border_of_words():
    assert split_text("aaaa bbbb \u0301cc", 10) == ("aaaa", "bbbb \u0301cc")


def test_the_indentation_of_a_line_behind_a_cut_stays():
    assert split_text("- first item\n\n    - below it", 20) == ("- first item", "    - below it")


def test_a_code_block_that_is_cut_is_closed_and_opened_again():
    code = "\n".join(f"line {number}" for number in range(10))

    parts = split_text(f"```python\n{code}\n```\nthe end", 50)

    assert all(part.startswith("```python\n") and part.count("```") == 2 for part in parts[:-1])
    assert parts[-1].endswith("the end")
    assert [line for part in parts for line in part.split("\n") if line.startswith("line")] == code.split("\n")


def test_a_cut_never_leaves_an_empty_code_block_behind():
    parts = split_text("word " * 8 + "\n```\nx = 1\ny = 2\n```\n" + "tail " * 9, 52)

    assert all("```\n```" not in part for part in parts)


@pytest.mark.parametrize(
    "text",
    ["e\u0301", FAMILY, FLAGS[:2], THUMB, "❤\ufe0f", "\u1112\u1161\u11ab", "\r\n", "\ud83d\ude00"],
    ids=["accent", "family", "flag", "skin tone", "variant", "hangul", "line end", "surrogates"],
)
def test_no_cut_inside(text):
    assert [place for place in range(1, len(text)) if is_border(text, place)] == []


def test_flags_are_cut_between_countries():
    assert [place for place in range(1, 4) if is_border(FLAGS, place)] == [2]


def test_room_is_kept_for_the_mark_of_a_repeat_unless_the_platform_knows_repeats():
    text = "x" * 200

    marked = parts_of(text, PlatformAbilities(max_length=100))
    forgetful = parts_of(text, PlatformAbilities(max_length=100, idempotent_send=True, idempotent_for_s=60))
    unmarked = parts_of(text, PlatformAbilities(max_length=100, idempotent_send=True))

    assert all(len(mark_repeat(part.text, 100)) <= 100 for part in marked)
    assert all(mark_repeat(part.text, 100).startswith(REPEAT_MARK) for part in marked)
    assert forgetful == marked
    assert [len(part.text) for part in unmarked] == [100, 100]


def test_a_mark_that_has_no_room_is_left_out_rather_than_text():
    assert mark_repeat("0123456789", 12) == "0123456789"


def test_a_code_block_behind_a_mark_still_begins_its_line():
    assert mark_repeat("```\nx\n```", 100) == f"{REPEAT_MARK}\n```\nx\n```"


def test_parts_without_room_are_refused():
    with pytest.raises(ValueError, match="hold no text"):
        split_text("x", 0)


def test_a_long_row_of_flags_is_cut_between_flags_in_a_time_that_grows_with_its_length_alone():
    looks = 0

    class Watched(str):
        __slots__ = ()

        def __getitem__(self, at):
            nonlocal looks
            looks += 1
            return super().__getitem__(at)

    text = Watched("\U0001f1e9\U0001f1ea" * 4000)

    parts = split_text(text, 41)

    assert "".join(parts) == text
    assert {len(part) % 2 for part in parts} == {0}
    assert looks < 10 * len(text)
