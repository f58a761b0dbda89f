"""Folding: what a person who searches does not mean is not there; what carries meaning stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_hookspecs.text.folding import fold, fold_with_origins

ODD = "abc 的数据库かがｶﾞﾃﾞㅎㅏ가각ᄀ\u1161é\u0301\u200b_-ไทยำ\u00b4\u309bßİΣς\r\n\t\x00\ufe0f🎉ＡÅ"
texts = st.text(
    alphabet=st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from(ODD)),
    max_size=30,
)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Café CRÈME", "cafe creme"),
        ("STRASSE Straße", "strasse strasse"),
        ("İstanbul", "istanbul"),
        ("ΟΔΥΣΣΕΎΣ", "οδυσσευσ"),
        ("Ёлка", "елка"),
        ("ＡＢＣ１２３，", "abc123,"),
        ("ﾃｽﾄ ﾊﾟｽ", "テスト パス"),
        ("か\u3099", "が"),
        ("ㅎㅏㄴ", "ㅎㅏㄴ"),
        ("ﾡ", "ㄱ"),
        ("葛\U000e0100飾", "葛飾"),
        ("data\u00adbase", "database"),
        ("a\r\n\t b\x00\x1bc\u3000d", "a b c d"),
        ("用 docker 部署 v2", "用docker部署v2"),
        ("数据 库", "数据 库"),
        ("हिन्दी", "हिन्दी"),
        ("  ", ""),
    ],
)
def test_texts_fold(text, folded):
    assert fold(text) == folded


def test_sound_is_kept():
    assert fold("が") != fold("か")
    assert fold("ไม้") != fold("ไม")


@given(texts)
def test_folding_twice_changes_nothing(text):
    assert fold(fold(text)) == fold(text)


@given(texts)
def test_origins_belong_to_the_same_folded_text(text):
    folded, origins = fold_with_origins(text)

    assert folded == fold(text)
    assert len(origins) == len(folded) + 1
    assert origins == sorted(origins)
    assert origins[-1] == len(text)


def test_an_origin_is_where_the_cluster_begins():
    text = "x ﾊﾟｽ e\u0301"

    folded, origins = fold_with_origins(text)

    assert [text[origin] for origin in origins[:-1]] == ["x", "ﾊ", "ｽ", "e"]
    assert folded == "xパスe"


@given(st.text(alphabet="aZ ,\t\n的数據がガ가ｶﾞﾊﾟＡ！　“…—々ー", max_size=30))
def test_usual_texts_fold_as_all_texts_do(text):
    assert fold(text) == fold(f"{text}\u200b") == fold_with_origins(text)[0]


@given(
    st.lists(
        st.sampled_from(["Word", " ", "  ", "\n", "数据", "か", "ガー", "한국", "！", "…", "ヿ", "ｶﾞ", "a"]), max_size=9
    ).map("".join)
)
def test_origins_are_the_same_whether_or_not_each_character_has_to_be_looked_at(text):
    folded, origins = fold_with_origins(text)
    slowly, far = fold_with_origins(f"{text}。\u00e9")

    assert slowly.startswith(folded)
    assert far[: len(folded)] == origins[:-1]
