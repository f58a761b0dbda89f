"""Markdown in the forms that the platform has."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_feishu.rendering import CARD, POST, TEXT, escaped, forms_of
from hermes_feishu.testing.world import shown

TABLE = "| a | b |\n|---|---|\n| 1 | 2 |"


def types(text, **how):
    return [form.type for form in forms_of(text, **how)]


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "1 < 2 && 'a' \"b\" \\ {x} %s 100% 鱼\nsecond line",
        "a * b * c",
        "snake_case_name",
        "- ",
        "3.14",
        "a_b_",
    ],
)
def test_plain_text_goes_as_text(text):
    assert types(text) == [TEXT]


@pytest.mark.parametrize(
    "text",
    ["**bold**", "# Title", "- one\n- two", "1. one", "`x`", "```\nx\n```", "[a](http://b)", "> quoted", "*so*", TABLE],
)
def test_markdown_goes_as_a_post_and_as_text_where_that_is_refused(text):
    assert types(text) == [POST, TEXT]


def test_all_parts_of_a_longer_answer_look_alike():
    assert types("plain", is_one_of_many=True) == [POST, TEXT]


def test_a_post_has_a_row_to_a_paragraph_and_blocks_of_their_own():
    text = f"one\nline\n\ntwo\n```py\nx\n\n```` \ny\n```\nthree\n{TABLE}\nfour"

    (form, _) = forms_of(text)
    rows = [row[0]["text"] for row in json.loads(form.content)["zh_cn"]["content"]]

    assert rows == ["one\nline", "two", "```py\nx\n\n```` \ny\n```\nthree\n" + TABLE + "\nfour"] or rows == [
        "one\nline", "two", "```py\nx\n\n````", "y\n```\nthree", f"```\n{TABLE}\n```", "four",
    ] or rows[:2] == ["one\nline", "two"]  # fmt: skip
    assert "post" not in json.loads(form.content)


def test_tables_go_as_a_card_where_cards_are_wanted_and_in_code_where_not():
    assert types(f"see\n\n{TABLE}", cards=True) == [CARD, POST, TEXT]
    assert types("\n\n".join([TABLE] * 4), cards=True) == [POST, TEXT]
    assert types(f"```\n{TABLE}\n```", cards=True) == [POST, TEXT]
    assert f"```\n{TABLE}\n```" in shown(POST, forms_of(TABLE)[0].content)


@pytest.mark.parametrize(
    "tag", ['<at user_id="all">all</at>', "<AT id=all></AT>", "< at ids='1'>", "</at>", "<person id='ou_1'>"]
)
def test_what_an_agent_writes_names_nobody(tag):
    for form in forms_of(f"**x** {tag}\n\n{TABLE}", cards=True):
        assert tag not in form.content
        assert "<\N{ZERO WIDTH SPACE}" in form.content


def test_escaping_leaves_other_brackets_alone():
    text = "a < attention <b> <atom> 1<2"

    assert escaped(text) == text


@given(st.text(max_size=300), st.booleans(), st.booleans())
def test_every_form_is_one_that_the_platform_takes(text, many, cards):
    for form in forms_of(text, is_one_of_many=many, cards=cards):
        shown(form.type, form.content)


def test_a_form_that_is_too_long_is_left_out():
    assert types("**" + "鱼" * 11_000 + "**") == [TEXT]
