"""From Markdown to Slack's notation: nothing that was not written by us means anything to Slack."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes_slack.mrkdwn import escaped, mrkdwn
from hermes_slack.words import read


@pytest.mark.parametrize(
    ("markdown", "posted"),
    [
        ("plain & simple", "plain &amp; simple"),
        ("**bold** and *slanted*, ~~gone~~", "*bold* and _slanted_, ~gone~"),
        ("__bold__ and snake_case_name and 2 * 3 * 4", "*bold* and snake_case_name and 2 * 3 * 4"),
        ("这是**重点**吗", "这是\u200b*重点*\u200b吗"),
        ("# A heading #", "*A heading*"),
        ("## A **bold** heading", "*A bold heading*"),
        ("- one\n* two\n  + three", "• one\n• two\n  • three"),
        ("> quoted <b>", "&gt; quoted &lt;b&gt;"),
        ("[text](https://x.example/a?b=1&c=2)", "<https://x.example/a?b=1&amp;c=2|text>"),
        ("[a|b](https://x.example)", "<https://x.example|a¦b>"),
        ("![alt](https://x.example/p.png)", "<https://x.example/p.png|alt>"),
        ("[bad](javascript:alert(1))", "[bad](javascript:alert(1))"),
        ("[**b**](https://x.example/**y**)", "<https://x.example/**y**|**b**>"),
        ("`**code** <!here>`", "`**code** &lt;!here&gt;`"),
        ("```python\n**x** = '<!channel>'\n```\n**after**", "```\n**x** = '&lt;!channel&gt;'\n```\n*after*"),
        ("<!channel>", "&lt;!channel&gt;"),
        ("<https://x.example|label>", "&lt;https://x.example|label&gt;"),
        ("| a | b |\n|---|:-:|\n| 1 | 鱼 |", "```\na  b\n-  --\n1  鱼\n```"),
        ("a | b", "a | b"),
        ("\ue0000\ue001 spoof", "0 spoof"),
    ],
)
def test_what_a_text_becomes(markdown, posted):
    assert mrkdwn(markdown) == posted


@settings(deadline=None)
@given(st.text())
def test_whatever_is_said_the_only_notation_in_angles_is_links(text):
    for found in re.findall(r"<([^>]*)>?", mrkdwn(text)):
        assert found.startswith(("http://", "https://", "mailto:"))


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["<!channel>", "<@U1>", "[", "](", "https://x", ")", "`", "```", "\n", "**", "|", "a", "-", "&lt;!here&gt;"]
        )
    )
)
def test_whatever_is_put_together_nobody_is_named(pieces):
    posted = mrkdwn("".join(pieces))

    assert not re.search(r"<[!@#]", posted)


@settings(deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_what_is_escaped_is_read_as_it_was(text):
    assert read(escaped(text)) == text
