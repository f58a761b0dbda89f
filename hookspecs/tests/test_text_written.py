"""The look at a text as it is written drops nothing that is there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_hookspecs.text.folding import fold
from hermes_hookspecs.text.parsing import parse
from hermes_hookspecs.text.query import Phrase, Prefix, Word, matches
from hermes_hookspecs.text.written import may_hold_as_written

TEXTS = st.one_of(
    st.text(max_size=30),
    st.lists(
        st.sampled_from(
            ["Nginx", "服务", " ", "，", "ＡＢ", "ｶﾞ", "か", "한국", "é", "ı", "\u00ad", "\x00", "…", "=>", "①"]
        ),
        max_size=9,
    ).map("".join),
)


@given(TEXTS, st.data(), st.sampled_from([Word, Phrase, Prefix]))
def test_every_part_of_a_text_may_be_held_by_it(text, data, kind):
    folded = fold(text)
    start = data.draw(st.integers(0, len(folded)))
    query = kind(folded[start : data.draw(st.integers(start, len(folded)))])

    assert may_hold_as_written(query)(text) or not matches(query, text)


@pytest.mark.parametrize(
    ("query", "text", "may"),
    [
        ("nginx", "the Nginx，服务", True),
        ("nginx", "the server，服务", False),
        ("重启 nginx", "nginx 服务", False),
        ("重启 OR nginx", "nginx 服务", True),
        ("nginx服务", "用 nginx 的", True),  # the longest run is there
        ("nginx -服务", "nginx 服务", True),
        ("nginx", "ｎｇｉｎｘ", True),
        ("=>", "服务", True),
    ],
)
def test_a_text_is_dropped_where_it_certainly_lacks_a_word(query, text, may):
    assert may_hold_as_written(parse(query))(text) is may
