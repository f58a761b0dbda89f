"""Signs: what of the punctuation of a text an index holds, and what it must hold for a needle to be there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_hookspecs.text.folding import fold
from hermes_hookspecs.text.segments import segments
from hermes_hookspecs.text.signs import index_signs, needed_signs

TEXTS = st.lists(
    st.one_of(
        st.sampled_from(
            ["=>", "。", "，", "a_b", " ", "é", "服务", "~/.x", "«»", "हिन्दी।", "🎉", "\t", "～", "e\u0301", "\u2028"]
        ),
        st.text(max_size=4),
    ),
    max_size=10,
).map("".join)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("let x => y", {"=", ">", "=>"}),
        ("docs/setup.md a_b", {"/", ".", "_"}),
        ("把服务，重启。", {",", "。"}),
        ("ＣＤ ～／", {"~", "/", "~/"}),
        ("a - -", {"-"}),
        ("plain words 服务 🎉", set()),
    ],
)
def test_signs_and_touching_pairs_of_them_are_kept(text, kept):
    assert index_signs(fold(text)) == kept


@pytest.mark.parametrize(
    ("needle", "needed"), [("=>>", ("=>", ">>")), ("$", ("$",)), ("~/.config", ("~/", "/.")), ("path", ()), ("", ())]
)
def test_a_needle_needs_the_pairs_of_its_signs(needle, needed):
    assert needed_signs(needle) == needed


@given(TEXTS, st.data())
def test_every_text_holds_what_each_part_of_it_needs(text, data):
    folded = fold(text)
    start = data.draw(st.integers(0, len(folded)))
    end = data.draw(st.integers(start, len(folded)))

    assert index_signs(folded).issuperset(needed_signs(folded[start:end]))


@given(TEXTS)
def test_every_character_is_a_space_a_sign_or_part_of_a_segment(text):
    folded = fold(text)
    inside = {at for run in segments(folded) for at in range(run.start, run.end)}
    between = {one for at, one in enumerate(folded) if at not in inside and one != " "}

    assert {sign for sign in index_signs(folded) if len(sign) == 1} == between
