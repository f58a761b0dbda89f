"""What the client shows, and what it does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_weixin.config import WeixinConfig
from hermes_weixin.markdown import filtered
from hermes_weixin.splitting import FILE_FORMAT, parts_within


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("**bold** and `code` and [link](https://x)", "**bold** and `code` and [link](https://x)"),
        ("see ![a chart](https://x/y.png) here", "see  here"),
        ("##### deep ##", "deep"),
        ("#### four", "#### four"),
        ("*重要* and *plain*", "重要 and *plain*"),
        ("_很好_ snake_case_name", "很好 snake_case_name"),
        ("***都是***", "都是"),
        ("一个*斜体*词和___重___点", "一个斜体词和重点"),
        ("2 * 3 * 4 and my_文件_name", "2 * 3 * 4 and my_文件_name"),
        ("**重要**", "**重要**"),
        ("```py\n*重要* ![x](y)\n```\n*重要*", "```py\n*重要* ![x](y)\n```\n重要"),
        ("`*重要*` stays", "`*重要*` stays"),
        ("![only](https://x)", "only"),
        ("", ""),
    ],
)
def test_the_filter(text, sent):
    assert filtered(text) == sent


@given(st.text(alphabet="ab 中*_`#![]()\n", max_size=80))
def test_filtering_twice_is_filtering_once_where_nothing_is_left_to_take(text):
    once = filtered(text)

    assert once.strip() or not text.strip() or once == text


def test_a_long_answer_is_a_line_and_a_file():
    text = "word " * 4000

    first, document = parts_within(text, WeixinConfig(), left=9)

    assert "whole answer is in the file" in first.text
    assert (document.text, document.format) == (text, FILE_FORMAT)


def test_with_one_message_left_an_answer_of_two_is_a_file():
    (document,) = parts_within("x" * 3000, WeixinConfig(), left=1)

    assert document.format == FILE_FORMAT


@given(st.text(alphabet="ab中 \n`", min_size=1, max_size=600), st.integers(100, 200))
def test_parts_are_short_enough_and_lose_nothing_but_white_space(text, most):
    parts = parts_within(text, WeixinConfig(chunk_characters=most, file_from_parts=1000), left=1000)

    assert all(len(part.text) <= most for part in parts)
    kept = "".join("".join(part.text.split()) for part in parts)
    wanted = "".join(text.split())
    assert kept.replace("`", "") == wanted.replace("`", "")
