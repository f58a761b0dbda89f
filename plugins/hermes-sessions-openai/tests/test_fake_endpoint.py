"""The fake endpoint says what the real one says."""

from __future__ import annotations

import asyncio

import openai
import pytest
from openai import AsyncOpenAI

from hermes_openai.testing import FakeEndpoint, answer, calls, cut, drop, refuse

USER = {"role": "user", "content": "hello"}


def named(name):
    function = {"name": name, "arguments": "{}"}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": function}],
    }


ASKING = named("look")
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "wet"}


def ask(endpoint, *messages, key="sk-1", **fields):
    async def ask():
        async with AsyncOpenAI(api_key=key, base_url=endpoint.base_url, max_retries=0) as client:
            answered = await client.chat.completions.create(model="m", messages=list(messages), **fields)
            if not fields.get("stream"):
                return answered
            async with answered:
                return [piece async for piece in answered]

    return asyncio.run(ask())


def test_the_official_client_understands_a_whole_answer(endpoint):
    endpoint.then(answer("Hi."))

    answered = ask(endpoint, USER)

    assert answered.choices[0].message.content == "Hi."
    assert answered.usage.total_tokens == answered.usage.prompt_tokens + answered.usage.completion_tokens


def test_the_official_client_understands_a_stream(endpoint):
    endpoint.then(calls(("look", '{"n": 1}', "c1"), text="Let me see."))

    pieces = ask(endpoint, USER, stream=True, stream_options={"include_usage": True})

    choices = [piece.choices[0] for piece in pieces if piece.choices]
    wanted = [call for choice in choices for call in choice.delta.tool_calls or ()]
    assert "".join(call.function.arguments for call in wanted) == '{"n": 1}'
    assert choices[-1].finish_reason == "tool_calls"
    assert pieces[-1].usage.prompt_tokens > 0


def test_usage_is_told_only_where_it_is_wanted(endpoint):
    endpoint.then(answer("Hi."))

    assert [piece.usage for piece in ask(endpoint, USER, stream=True) if piece.usage] == []


def test_what_two_prompts_begin_with_comes_from_the_cache(endpoint):
    endpoint.then(answer("a"), answer("b"), answer("c"))

    first, second, third = ask(endpoint, USER), ask(endpoint, USER, USER), ask(endpoint, RESULT | {"role": "user"})

    assert second.usage.prompt_tokens_details.cached_tokens == first.usage.prompt_tokens
    assert third.usage.prompt_tokens_details.cached_tokens < first.usage.prompt_tokens


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ((), "too short"),
        ((USER, RESULT), "must be a response to a preceding message"),
        ((USER, ASKING, USER), "did not have response messages: c1"),
        ((USER, ASKING), "did not have response messages: c1"),
        ((USER, ASKING, RESULT, RESULT), "must be a response"),
        ((USER | {"content": None},), "expected a string, got null"),
        ((USER | {"role": "bot"},), "Invalid value: 'bot'"),
        ((USER, named("look!"), RESULT), r"tool_calls\[0\].function.name': string does not match pattern"),
    ],
)
def test_messages_that_break_the_rules_are_refused(endpoint, messages, said):
    endpoint.then(answer("never"))

    with pytest.raises(openai.BadRequestError, match=said):
        ask(endpoint, *messages)

    assert endpoint.left == 1


def test_legal_messages_are_taken(endpoint):
    endpoint.then(answer("Hi."))

    assert ask(endpoint, USER, ASKING, RESULT, USER)


def test_a_wrong_key_is_refused():
    with FakeEndpoint(answer("never"), key="sk-right") as endpoint, pytest.raises(openai.AuthenticationError):
        ask(endpoint, USER, key="sk-wrong")


def test_a_prompt_that_is_too_long_is_refused():
    with FakeEndpoint(context_tokens=5) as endpoint, pytest.raises(openai.BadRequestError) as caught:
        ask(endpoint, USER | {"content": "long " * 50})

    assert caught.value.code == "context_length_exceeded"


def test_an_error_carries_its_headers(endpoint):
    endpoint.then(refuse(429, "slow down", retry_after="2"))

    with pytest.raises(openai.RateLimitError) as caught:
        ask(endpoint, USER)

    assert caught.value.response.headers["retry-after"] == "2"


def test_connections_break_where_they_should(endpoint):
    endpoint.then(drop(), cut("Hi"))

    with pytest.raises(openai.APIConnectionError):
        ask(endpoint, USER)
    with pytest.raises(openai.APIConnectionError):
        ask(endpoint, USER, stream=True)
    assert endpoint.left == 0


def test_behind_the_end_of_its_script_everything_is_refused(endpoint):
    with pytest.raises(openai.BadRequestError, match="at its end"):
        ask(endpoint, USER)
