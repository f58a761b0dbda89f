"""What is tried again, when, how often; and what is not."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from contextlib import suppress
from email.utils import formatdate
from threading import Event

import pytest

from hermes_hookspecs.errors import AuthFailed, ContextOverflow, Rejected, RetryLater
from hermes_hookspecs.metering import metered
from hermes_hookspecs.ports.agent import TextDelta
from hermes_hookspecs.testing.agents import FakeTool
from hermes_openai.failures import failure_of_body, failure_of_status
from hermes_openai.testing import answer, calls, cut, drop, hold, raw, refuse, stream_of
from hermes_openai.testing.replies import CUT as BREAK


@pytest.mark.parametrize(
    "failing",
    [
        refuse(429, "Rate limit reached", code="rate_limit_exceeded"),
        refuse(500, "The server had an error"),
        raw("<html><title>502 Bad Gateway</title></html>", status=502),
        refuse(503, "overloaded"),
        drop(),
        cut(),
        stream_of([{"reasoning_content": "hm"}], end=BREAK),
        stream_of([{"tool_calls": [{"index": 0, "id": "a", "function": {"name": "look"}}]}], end=BREAK),
        answer(),
        raw('data: {"error": {"code": 502, "message": "Provider disconnected"}}\n\n'),
        raw('data: {"error": {"type": "overloaded_error", "message": "Overloaded"}}\n\n'),
    ],
)
def test_what_passes_is_tried_again(run, endpoint, waits, failing):
    look = FakeTool("look")
    endpoint.then(failing, failing, answer("Hi."))

    shown = run(tools=[look])

    assert (shown.answer, look.calls) == ("Hi.", [])
    assert waits == [0.5, 1.0]
    assert sum("trying again in" in label for label in shown.labels) == 2


def test_it_is_tried_no_more_often_than_allowed(run, endpoint, waits):
    endpoint.then(*[refuse(503, "overloaded")] * 10)

    with pytest.raises(RetryLater, match="HTTP 503: overloaded"):
        run(retries=3)

    assert (len(endpoint.requests), waits) == (4, [0.5, 1.0, 2.0])


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ({"retry_after": "7"}, 7.0),
        ({"retry_after": "7", "retry_after_ms": "250"}, 0.25),
        ({"retry_after": "soon"}, 0.5),
    ],
)
def test_the_hint_of_the_server_is_followed(run, endpoint, waits, headers, wait):
    endpoint.then(refuse(429, "slow down", **headers), answer("Hi."))

    run()

    assert waits == [wait]


def test_a_hint_may_be_a_date():
    failure = failure_of_status(429, "", {"retry-after": formatdate(1030, usegmt=True)}, now=1000.0)

    assert failure.after_s == 30.0


def test_a_server_that_wants_more_time_than_there_is_ends_the_turn(run, endpoint, waits):
    endpoint.then(refuse(429, "come back later", retry_after="90"))

    with pytest.raises(RetryLater) as caught:
        run()

    assert (waits, caught.value.after_s) == ([], 90.0)


def test_a_wait_does_not_go_beyond_the_end_of_the_turn(run, endpoint, waits):
    endpoint.then(refuse(429, "slow down", retry_after="50"))

    with pytest.raises(RetryLater):
        run(turn_timeout_s=20)

    assert waits == []


@pytest.mark.parametrize(
    ("failing", "error"),
    [
        (refuse(400, "bad"), Rejected),
        (refuse(404, "The model 'm' does not exist"), Rejected),
        (refuse(401, "no"), AuthFailed),
        (refuse(403, "no"), AuthFailed),
        (refuse(429, "You exceeded your current quota", code="insufficient_quota"), Rejected),
        (refuse(402, "Insufficient Balance"), Rejected),
        (refuse(503, "no", x_should_retry="false"), Rejected),
    ],
)
def test_what_does_not_pass_is_not_tried_again(run, endpoint, waits, failing, error):
    endpoint.then(failing)

    with pytest.raises(error):
        run()

    assert (len(endpoint.requests), waits) == (1, [])


@pytest.mark.parametrize(
    ("environ", "ends"),
    [
        ({}, "; no key was sent: put it into MY_KEY, or into a file that key_file names"),
        ({"MY_KEY": "sk-12345678"}, "HTTP 401: no"),
    ],
)
def test_who_gave_no_key_is_told_where_it_belongs(run, endpoint, environ, ends):
    endpoint.then(refuse(401, "no"))

    with pytest.raises(AuthFailed) as caught:
        run(environ=environ, key_env="MY_KEY")

    assert str(caught.value).endswith(ends)


def test_a_later_request_of_a_turn_is_tried_again_and_no_tool_runs_twice(run, endpoint):
    send = FakeTool("send", effect="write")
    endpoint.then(calls(("send", "{}")), refuse(503, "overloaded"), drop(), answer("Done."))

    shown = run(tools=[send])

    assert (shown.answer, len(send.calls)) == ("Done.", 1)


def test_text_that_was_shown_is_never_shown_again(run, endpoint, waits):
    endpoint.then(raw('data: {"choices": [{"delta": {"content": "Hi"}}]}\n\n', 'data: {"error": {"code": 502}}\n\n'))

    with pytest.raises(RetryLater):
        run()

    assert (len(endpoint.requests), waits) == (1, [])


@pytest.mark.parametrize("pieces", [(), ("It ",)])
def test_a_server_that_falls_silent_is_left(run, endpoint, pieces):
    endpoint.then(hold(threading.Event(), *pieces))

    with pytest.raises(RetryLater, match=r"said nothing for 0.2 s"):
        run(timeout_s=0.2, retries=0)

    assert endpoint.hung_up.wait(10)


def test_a_server_that_is_not_there_is_told(run):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]

    with pytest.raises(RetryLater, match=rf"http://127.0.0.1:{port}/v1 cannot be reached: .*; is base_url right, and"):
        run(base_url=f"http://127.0.0.1:{port}/v1", retries=1)


def test_where_nothing_is_found_the_settings_are_named_that_say_what_to_look_for(run, endpoint):
    endpoint.then(refuse(404, "The model `n` does not exist."))

    with pytest.raises(Rejected, match=r"HTTP 404: The model `n` does not exist; are base_url and model right\?$"):
        run(model="n")
    with pytest.raises(Rejected, match=r"HTTP 404: Invalid URL .*; are base_url and model right\?$"):
        run(base_url=f"{endpoint.base_url}/chat")


def test_a_request_that_was_given_up_counts_with_what_is_known_of_it(endpoint, agent, context):
    going, arrived, told = Event(), Event(), []
    usage = {"prompt_tokens": 10, "completion_tokens": 1}
    piece = {"choices": [{"index": 0, "delta": {"content": "Hi"}}], "usage": usage}

    def silent(asked):
        arrived.set()
        return raw(": wait\n\n", going)(asked)

    endpoint.then(raw(f"data: {json.dumps(piece)}\n\n", going), silent)
    runner = agent(prices={"m": {"input": 1, "output": 1}})

    async def turn(seen):
        async for event in runner.run(context()):
            if isinstance(event, TextDelta):
                seen.set()

    async def stop(until):
        seen = asyncio.Event()
        task = asyncio.create_task(turn(seen))
        await until(seen)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def asked(_seen):
        await asyncio.to_thread(arrived.wait, 30)

    with metered(told.append):
        asyncio.run(stop(asyncio.Event.wait))
        asyncio.run(stop(asked))
    going.set()

    assert [(one.model, one.input_tokens, one.output_tokens) for one in told] == [("m", 10, 1), ("m", None, None)]
    assert [one.estimated_cost_usd for one in told] == [pytest.approx(1.1e-05), None]


def test_a_wait_can_be_cancelled(endpoint, context):
    from hermes_openai.agent import OpenAIAgent
    from hermes_openai.config import OpenAIConfig

    endpoint.then(refuse(429, "slow down", retry_after="50"))

    async def cancel():
        waiting = asyncio.Event()

        async def sleep(seconds):
            waiting.set()
            await asyncio.Event().wait()

        agent = OpenAIAgent(OpenAIConfig.of({"model": "m", "base_url": endpoint.base_url}), environ={}, sleep=sleep)

        async def turn():
            async for _ in agent.run(context()):
                pass

        task = asyncio.create_task(turn())
        await waiting.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())


def test_an_answer_that_was_of_no_use_is_counted(run, endpoint):
    endpoint.then(answer(), answer("Hi."))

    shown = run()

    assert [usage.input_tokens for usage in shown.usages] == [one.prompt_tokens for one in endpoint.requests]
    assert len(shown.steps) == 1


def test_what_was_used_is_told_before_the_turn_fails(run, endpoint):
    events = run.Shown()
    endpoint.then(answer(finish_reason="content_filter"))

    with pytest.raises(Rejected, match="content filter"):
        run(events=events)

    assert len(events.usages) == 1


# ------------------------------------------------------------------ words of many servers


@pytest.mark.parametrize(
    "words",
    [
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
        "prompt is too long: 210000 tokens > 200000 maximum",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "the request exceeds the available context size, try increasing it",
        "Input is too long for requested model.",
        "Range of input length should be [1, 30720]",
        "This endpoint's maximum context length is 131072 tokens.",
        "Please reduce the length of the messages or completion.",
        "Your input exceeds the context window of this model.",
    ],
)
def test_a_prompt_that_is_too_long_is_recognised(words):
    assert isinstance(
        failure_of_status(400, json.dumps({"error": {"message": words}}), {}, now=0).error, ContextOverflow
    )


@pytest.mark.parametrize("words", ["Invalid 'messages'", "Rate limit: too many requests", "context is required"])
def test_other_complaints_are_not_taken_for_it(words):
    assert not isinstance(failure_of_status(400, words, {}, now=0).error, ContextOverflow)


def test_the_code_alone_tells_it_too():
    failure = failure_of_body({"code": "context_length_exceeded", "message": "no"})

    assert isinstance(failure.error, ContextOverflow)


@pytest.mark.parametrize("error", ["text", {}, {"message": None, "code": True}, ["list"], 7])
def test_an_error_of_any_shape_is_an_error(error):
    assert str(failure_of_body(error).error)
