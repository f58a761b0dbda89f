"""Segmentation and needles: whatever a needle occurs in, its tokens are in the index of, one behind the other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_hookspecs.text.folding import fold
from hermes_hookspecs.text.needles import EXACT, INSIDE, PREFIX, SUFFIX, Needle, occurs, query_tokens
from hermes_hookspecs.text.segments import LONGEST_TERM, index_tokens, pieces, segments, term_trigrams

PIECES = (
    "nginx",
    "服务",
    "重启了",
    " ",
    ",",
    "ab",
    "c",
    "ｶﾞﾃ",
    "한국어",
    "ไทย",
    "é",
    "x" * 150,
    "0123456789" * 20,
    "_",
    "𠮷",
)
texts = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=8).map("".join),
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20),
)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Hello, World", "hello world"),
        ("把nginx服务重启", "把 nginx 服务 务重 重启 启"),
        ("部署", "部署 署"),
        ("docs/setup.md a_b", "docs setup md a b"),
        ("自動ﾃｽﾄ", "自動 動テ テス スト ト"),
        ("v2版", "v2 版"),
        ("한국어 글", "한국 국어 어 글"),
        ("ไทย", "ไท ทย ย"),
        ("𠮷野", "𠮷野 野"),
        ("हिन्दी।", "हिन्दी"),
        ("🎉🚀", "🎉🚀 🚀"),
        ("... -> ()", ""),
    ],
)
def test_texts_are_cut_where_the_script_changes(text, tokens):
    assert index_tokens(text).tokens == tokens.split()


def test_terms_are_the_words_that_have_parts():
    found = index_tokens("the ok nginx 服务服 nginx")

    assert found.terms == {"the", "nginx"}


def test_a_long_word_becomes_overlapping_pieces():
    word = "".join(f"{number:04}" for number in range(100))

    stored = index_tokens(word).tokens

    assert max(map(len, stored)) == LONGEST_TERM
    assert list(stored) == list(pieces(word))
    assert all(any(word[at : at + 64] in piece for piece in stored) for at in range(len(word) - 63))


@pytest.mark.parametrize(
    ("needle", "tokens"),
    [
        (Needle.of("nginx"), [("nginx", INSIDE)]),
        (Needle.of("ab"), [("ab", EXACT)]),
        (Needle.of("部"), [("部", PREFIX)]),
        (Needle.of("部署"), [("部署", EXACT)]),
        (Needle.of("把nginx服务"), [("把", EXACT), ("nginx", EXACT), ("服务", EXACT)]),
        (Needle.of("setup.md"), [("setup", SUFFIX), ("md", EXACT)]),
        (Needle.of("on.setup"), [("on", EXACT), ("setup", PREFIX)]),
        (Needle.phrase("nightly build"), [("nightly", EXACT), ("build", EXACT)]),
        (Needle.prefix("a"), [("a", PREFIX)]),
        (Needle.prefix("nightly bu"), [("nightly", EXACT), ("bu", PREFIX)]),
        (Needle.of("->"), []),
    ],
)
def test_a_needle_says_what_an_index_must_hold(needle, tokens):
    assert [(token.text, token.match) for token in query_tokens(needle)] == tokens


@given(texts, st.data())
def test_the_tokens_of_every_part_stand_in_the_index_without_a_gap(text, data):
    folded = fold(text)
    start = data.draw(st.integers(0, len(folded)))
    end = data.draw(st.integers(start, len(folded)))
    stored = index_tokens(text).tokens

    for needle in (Needle.of(folded[start:end]), Needle.phrase(folded[start:end]), Needle.prefix(folded[start:end])):
        wanted = query_tokens(needle)
        held = any(
            all(at + n < len(stored) and token.accepts(stored[at + n]) for n, token in enumerate(wanted))
            for at in range(len(stored) + 1)
        )
        assert held or not needle.occurs(folded), (needle, wanted, stored)


@given(texts, st.data())
def test_every_part_of_cjk_and_every_longer_part_of_a_word_occurs(text, data):
    folded = fold(text)
    runs = [run for run in segments(folded) if run.gram or run.end - run.start >= 3]
    if not runs:
        return
    run = data.draw(st.sampled_from(runs))
    least = 1 if run.gram else 3
    start = data.draw(st.integers(run.start, run.end - least))
    end = data.draw(st.integers(start + least, run.end))

    assert occurs(folded[start:end], text)


def test_no_token_holds_what_separates_tokens():
    tokens = index_tokens("a.b\x00c\u3000d-e_f 数据,库 g\u2028h 'x'").tokens

    assert all(token.isalnum() for token in tokens)


@pytest.mark.parametrize(
    ("needle", "text", "found"),
    [
        ("at", "at home", True),
        ("at", "cat", False),
        ("cat", "concatenate", True),
        ("qz", "编号qz已核对", True),
        ("x,y", "x,yz", False),
        ("#42", "#421", False),
        ("a_b", "变量a_b值", True),
        ("a_b", "变量axb值", False),
        ("100%完成", "进度100了完成", False),
        ("3.1", "13.14", False),
        ("", "x", False),
    ],
)
def test_short_words_are_found_whole_and_longer_ones_inside(needle, text, found):
    assert occurs(needle, text) is found


def test_a_later_place_counts_when_an_earlier_one_is_part_of_a_word():
    assert list(Needle.of("is").spans("this is it")) == [(5, 7)]


def test_trigrams_of_a_part_are_among_those_of_its_term():
    assert set(term_trigrams("atena")) <= set(term_trigrams("concatenate"))
    assert term_trigrams("ab") == ()
    assert term_trigrams("aaaa") == ("aaa",)
