"""The words of a message as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_slack.words import raw_words, read, shared_words, without_mention

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from(["type", "text", "elements", "blocks", "fields", "attachments", "is_share", "url", "user_id"]),
        inner | st.sampled_from(["rich_text", "rich_text_section", "rich_text_list", "section", "context", "link"]),
        max_size=5,
    ),
    max_leaves=30,
)  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"),
        ("<@U1> and <@U2|ann>", "@U1 and @ann"),
        ("<#C1|general> <#C2>", "#general #C2"),
        ("<!here> <!channel|channel> <!subteam^S1|@team> <!subteam^S2>", "@here @channel @team @subteam"),
        ("<!date^1392734382^{date}|Feb 18>", "Feb 18"),
        ("<https://x.example/?a=1&amp;b=2>", "https://x.example/?a=1&b=2"),
        ("<https://x.example|x.example>", "x.example"),
        ("<https://x.example/y|the page>", "the page (https://x.example/y)"),
        ("<mailto:a@x.example|a@x.example>", "a@x.example"),
        ("&lt;@U1&gt;", "<@U1>"),
    ],
)
def test_notation_is_read_as_people_see_it(raw, words):
    assert read(raw) == words


def test_a_text_that_stands_in_blocks_alone_is_read():
    section = {"type": "rich_text_section", "elements": [
        {"type": "text", "text": "see "}, {"type": "link", "url": "https://x.example"},
        {"type": "user", "user_id": "U1"},
    ]}  # fmt: skip
    item = {"type": "rich_text_section", "elements": [{"type": "text", "text": "a <b>"}]}
    blocks = [
        {"type": "rich_text", "elements": [
            section,
            {"type": "rich_text_list", "elements": [item, item]},
            {"type": "rich_text_quote", "elements": [{"type": "text", "text": "said"}]},
            {"type": "rich_text_preformatted", "elements": [{"type": "text", "text": "x = 1"}]},
        ]},
        {"type": "section", "text": {"type": "mrkdwn", "text": "*more*"}},
    ]  # fmt: skip

    assert read(raw_words({"text": "", "blocks": blocks})) == (
        "see https://x.example@U1\n- a <b>\n- a <b>\n> said\n```\nx = 1\n```\n*more*"
    )


def test_shared_messages_are_quoted_and_previews_are_not():
    attachments = [
        {"is_msg_unfurl": True, "author_name": "ann", "text": "the plan"},
        {"title": "a page", "text": "a preview", "from_url": "https://x.example"},
    ]

    assert shared_words({"attachments": attachments}) == ["ann: the plan"]


@settings(deadline=None)
@given(JSON)
def test_whatever_blocks_hold_they_are_read(value):
    message = {"blocks": [value], "attachments": [value]}

    assert isinstance(read(raw_words(message)), str)
    assert isinstance(shared_words(message), list)


@settings(deadline=None)
@given(st.text())
def test_without_its_mention_a_text_is_what_it_was(text):
    assert without_mention(f"<@U0BOT> {text}", "U0BOT").strip(" \t,:") == without_mention(text, "U0BOT").strip(" \t,:")
