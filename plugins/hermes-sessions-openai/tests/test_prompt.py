"""Rows as an endpoint is sent them."""

from __future__ import annotations

import json

import pytest

from hermes_hookspecs.messages import ToolCall
from hermes_hookspecs.session_search import session_search
from hermes_openai.prompt import wire_messages, wire_tools


def test_every_role_has_its_form(row):
    rows = [
        row("system", "be brief"),
        row("user", "[Ann] hello"),
        row("assistant", "let me see", tool_calls=(ToolCall(id="c", name="look", arguments='{ "n":1}'),)),
        row("tool", "wet", tool_call_id="c", tool_name="look"),
        row("assistant", "It rains.", reasoning="secret", finish_reason="stop", token_count=3),
    ]

    assert wire_messages(rows) == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "[Ann] hello"},
        {
            "role": "assistant",
            "content": "let me see",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "look", "arguments": '{ "n":1}'}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "wet"},
        {"role": "assistant", "content": "It rains."},
    ]


@pytest.mark.parametrize("blank", ["", "\n "])
def test_a_row_that_only_asks_has_no_content(row, blank):
    (message,) = wire_messages([row("assistant", blank, tool_calls=(ToolCall(id="c", name="look"),))])

    assert message["content"] is None


def test_a_row_that_says_nothing_is_left_out(row):
    assert wire_messages([row("assistant", ""), row("assistant", "\n")]) == []


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("{}", "{}"),
        ("", "{}"),
        ('{"a": ', {"unreadable": '{"a": '}),
        ("[1]", {"unreadable": "[1]"}),
        ('{"a": NaN}', {"unreadable": '{"a": NaN}'}),
    ],
)
def test_broken_arguments_of_earlier_calls_are_sent_inside_an_object(row, written, sent):
    (message,) = wire_messages([row("assistant", "", tool_calls=(ToolCall(id="c", name="look", arguments=written),))])

    arguments = message["tool_calls"][0]["function"]["arguments"]
    assert (arguments if isinstance(sent, str) else json.loads(arguments)) == sent


@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ("look", "look"),
        ("functions.look", "functions_look"),
        ("schau\n!", "schau__"),
        ("", "unnamed"),
        ("x" * 99, "x" * 64),
    ],
)
def test_the_name_of_an_earlier_call_is_one_that_endpoints_take(row, asked, sent):
    (message,) = wire_messages([row("assistant", "", tool_calls=(ToolCall(id="c", name=asked),))])

    assert message["tool_calls"][0]["function"]["name"] == sent


def test_half_a_character_is_replaced_as_the_stores_do(row):
    half = "a\ud83d"
    rows = [row(content=half), row("tool", half, tool_call_id="c"), row("assistant", half)]

    assert [message["content"] for message in wire_messages(rows)] == ["a\ufffd"] * 3


def test_reasoning_is_sent_back_where_a_model_wants_it(row):
    rows = [row("assistant", "a", reasoning="hm"), row("assistant", "b")]

    assert [message.get("reasoning_content") for message in wire_messages(rows)] == [None, None]
    sent = wire_messages(rows, reasoning_field="reasoning_content")
    assert [message.get("reasoning_content") for message in sent] == ["hm", None]


def test_a_tool_is_sent_with_its_schema():
    (sent,) = wire_tools([session_search])

    assert sent["function"]["name"] == "session_search"
    assert list(sent["function"]["parameters"]["properties"])[:3] == ["query", "session_id", "around_message_id"]
