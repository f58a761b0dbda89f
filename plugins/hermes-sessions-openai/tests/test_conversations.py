"""Whole turns: text, tools, limits, usage, and their ends."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from hermes_hookspecs.errors import AuthFailed, ConfigError, ContextOverflow, Rejected
from hermes_hookspecs.ports.agent import TextDelta
from hermes_hookspecs.testing.agents import FakeTool
from hermes_hookspecs.tools import tool
from hermes_openai.testing import answer, calls, cut, hold, refuse, stream_of
from hermes_openai.testing.replies import CUT


def test_text_is_shown_as_it_comes_and_stored_whole(run, endpoint):
    endpoint.then(answer("It ", "rains."))

    shown = run()

    assert [event.text for event in shown if isinstance(event, TextDelta)] == ["It ", "rains."]
    assert (shown.answer, shown.steps[-1].finish_reason) == ("It rains.", "stop")
    assert endpoint.requests[0].messages == [{"role": "user", "content": "hello"}]


def test_tools_are_called_and_their_results_sent(run, endpoint):
    look, send = FakeTool("look", "wet"), FakeTool("send", "sent", effect="write")
    endpoint.then(calls(("send", '{"to": "me"}', "c1"), ("look", "{}", "c2"), text="Let me see."), answer("Done."))

    shown = run(tools=[look, send])

    assert (look.calls, send.calls) == ([{}], [{"to": "me"}])
    assert [(call.id, call.effect) for call in shown.steps[0].tool_calls] == [("c1", "write"), ("c2", "read")]
    assert shown.results == {"c1": "sent", "c2": "wet"}
    assert [message["role"] for message in endpoint.requests[1].messages] == ["user", "assistant", "tool", "tool"]
    assert endpoint.requests[1].messages[1]["content"] == "Let me see."
    assert shown.answer == "Done."


def test_no_tool_runs_before_its_call_was_taken(agent, context, endpoint):
    look = FakeTool("look")
    endpoint.then(calls(("look", "{}")))

    async def stop_at_the_step():
        events = agent().run(context(tools=[look]))
        async for event in events:
            if getattr(event, "tool_calls", ()):
                break
        await events.aclose()

    asyncio.run(stop_at_the_step())

    assert look.calls == []


def test_tools_are_offered_in_the_order_of_their_names(run, endpoint):
    endpoint.then(answer("a"), answer("b"))

    run(tools=[FakeTool("b"), FakeTool("a")])
    run(tools=[FakeTool("a"), FakeTool("b")])

    first, second = endpoint.requests
    assert first.raw == second.raw
    assert [one["function"]["name"] for one in first.tools] == ["a", "b"]


@pytest.mark.parametrize("arguments", ['{"city": ', "no", '"text"'])
def test_broken_arguments_are_answered_and_the_next_request_is_legal(run, endpoint, arguments):
    look = FakeTool("look")
    endpoint.then(calls(("look", arguments)), answer("I see."))

    shown = run(tools=[look])

    assert look.calls == []
    assert "the arguments are no JSON" in next(iter(shown.results.values()))
    assert shown.steps[0].tool_calls[0].arguments == arguments
    assert shown.answer == "I see."


def test_an_unknown_tool_is_answered(run, endpoint):
    endpoint.then(calls(("dream", "{}", "c1")), answer("Sorry."))

    shown = run(tools=[FakeTool("look")])

    assert shown.results == {"c1": "Error: there is no tool 'dream'. There are: look."}


def test_ids_that_are_used_twice_are_told_apart(run, endpoint):
    endpoint.then(calls(("look", "{}", "x")), calls(("look", '{"n": 1}', "x")), answer("Done."))

    shown = run(tools=[FakeTool("look")])

    assert len(shown.results) == 2
    assert shown.answer == "Done."


def test_what_somebody_says_meanwhile_stands_behind_the_results(run, endpoint):
    class Wheel:
        texts = ("stop", "no, go on")

        def take(self):
            taken, self.texts = self.texts, ()
            return taken

    endpoint.then(calls(("look", "{}")), answer("Yes."))

    run(tools=[FakeTool("look")], steering=Wheel())

    assert endpoint.requests[1].messages[-1] == {"role": "user", "content": "stop\n\nno, go on"}


# ------------------------------------------------------------------ usage


def test_usage_is_told_for_each_request_with_what_came_from_the_cache(run, endpoint):
    endpoint.then(calls(("look", "{}")), answer("Done."))

    first, second = run(tools=[FakeTool("look")]).usages

    assert first.cache_read_tokens == 0
    assert second.cache_read_tokens == first.input_tokens
    assert (first.model, first.estimated_cost_usd) == ("m", None)


def test_a_price_makes_a_cost(run, endpoint):
    endpoint.then(answer("Hi.", usage={"prompt_tokens": 1_000_000, "completion_tokens": 500_000}))

    shown = run(prices={"m": {"input": 2, "output": 4}})

    assert shown.usages[0].estimated_cost_usd == 4.0


def test_usage_comes_before_the_step_so_that_it_counts_when_the_lease_is_lost(run, endpoint):
    endpoint.then(answer("Hi."))

    kinds = [type(event).__name__ for event in run()]

    assert kinds == ["TextDelta", "UsageReport", "AssistantStep"]


# ------------------------------------------------------------------ limits


def test_the_last_request_of_a_turn_asks_for_an_answer(run, endpoint):
    endpoint.then(calls(("look", "{}")), answer("That is all I know."))

    shown = run(tools=[FakeTool("look")], max_steps=2)

    assert "tool_choice" not in endpoint.requests[0].body
    assert endpoint.requests[1].body["tool_choice"] == "none"
    assert shown.answer == "That is all I know."


def test_calls_behind_the_last_request_are_not_made(run, endpoint):
    look = FakeTool("look")
    endpoint.then(calls(("look", "{}")), calls(("look", "{}"), text="I would"))

    shown = run(tools=[look], max_steps=2)

    assert len(look.calls) == 1
    assert shown.steps[-1].tool_calls == ()
    assert shown.answer.startswith("I would\n\n[I stopped here: this turn has used up its 2 requests (max_steps).")
    assert shown.steps[-1].finish_reason == "limit"


def test_a_turn_ends_when_its_tokens_are_used_up(run, endpoint):
    endpoint.then(calls(("look", "{}")))

    shown = run(tools=[FakeTool("look")], turn_tokens=10)

    assert "tokens (turn_tokens)" in shown.answer
    assert len(endpoint.requests) == 1


def test_a_turn_ends_when_its_time_is_used_up(run, endpoint):
    events = run.Shown()
    endpoint.then(hold(threading.Event(), "It "))

    with pytest.raises(Exception, match="the turn has no time left"):
        run(events=events, turn_timeout_s=2.0)

    assert (events.answer, events.steps[-1].finish_reason) == ("It ", "cut")
    assert endpoint.hung_up.wait(10)


def test_settings_reach_the_request(run, endpoint):
    endpoint.then(answer("Hi."))

    run(
        temperature=0.5,
        max_tokens=7,
        organisation="org-1",
        project="proj-1",
        environ={"OPENAI_API_KEY": "sk-12345678"},
    )

    (asked,) = endpoint.requests
    assert (asked.body["model"], asked.body["temperature"], asked.body["max_tokens"]) == ("m", 0.5, 7)
    assert asked.headers["authorization"] == "Bearer sk-12345678"
    assert (asked.headers["openai-organization"], asked.headers["openai-project"]) == ("org-1", "proj-1")


def test_what_the_environment_names_for_another_endpoint_is_not_told_to_this_one(run, endpoint, monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "secret")
    endpoint.then(answer("Hi."))

    run()

    assert "secret" not in str(endpoint.requests[0].headers)


def test_the_key_reaches_no_log(run, endpoint, caplog):
    caplog.set_level(logging.DEBUG)
    endpoint.then(refuse(503, "overloaded for sk-12345678"), answer("Hi."))

    shown = run(environ={"OPENAI_API_KEY": "sk-12345678"})

    assert endpoint.requests[0].headers["authorization"] == "Bearer sk-12345678"
    assert "is asked again" in caplog.text
    assert "sk-12345678" not in caplog.text + "".join(shown.labels)


# ------------------------------------------------------------------ ends


def test_an_agent_that_is_not_configured_says_how_that_is_done(run):
    with pytest.raises(ConfigError, match=r"set \[plugins.openai\] model"):
        run(model="")


def test_a_refused_key_is_told_without_the_key(run, agent, endpoint):
    endpoint._key = "sk-right"
    keyed = agent(environ={"OPENAI_API_KEY": "sk-wrong-123"})

    with pytest.raises(AuthFailed, match=r"Incorrect API key provided: \[key\]") as caught:
        run(of=keyed)

    texts = [str(caught.value), repr(keyed.endpoint), str(caught.value.__cause__ or "")]
    assert not any("sk-wrong-123" in text for text in texts)


def test_a_prompt_that_is_too_long_is_told_with_the_limit(run, row, endpoint):
    endpoint._context_tokens = 100

    with pytest.raises(ContextOverflow) as caught:
        run(row(content="word " * 200))

    assert caught.value.limit_tokens == 100
    assert len(endpoint.requests) == 1


def test_a_stream_that_is_cut_keeps_what_was_shown_and_is_not_asked_for_again(run, endpoint):
    events = run.Shown()
    endpoint.then(cut("Half of "), answer("never"))

    with pytest.raises(Exception, match="broke off in the middle"):
        run(events=events)

    assert (events.text, events.answer, events.steps[-1].finish_reason) == ("Half of ", "Half of ", "cut")
    assert len(endpoint.requests) == 1


def test_calls_of_a_stream_that_is_cut_behind_shown_text_are_not_made(run, endpoint):
    look = FakeTool("look")
    events = run.Shown()
    call = {"index": 0, "id": "c", "function": {"name": "look", "arguments": "{}"}}
    endpoint.then(stream_of([{"content": "Let me"}, {"tool_calls": [call]}], finish_reason=None, end=CUT))

    with pytest.raises(Exception, match="broke off"):
        run(events=events, tools=[look])

    assert look.calls == []
    assert events.steps[-1].tool_calls == ()


def test_an_answer_that_the_filter_withheld_is_told(run, endpoint):
    endpoint.then(answer(finish_reason="content_filter"))

    with pytest.raises(Rejected, match="content filter"):
        run()

    assert len(endpoint.requests) == 1


@pytest.mark.parametrize("pieces", [(), ("It ",)])
def test_cancelling_a_turn_closes_the_stream_at_once(agent, context, endpoint, pieces):
    gate = threading.Event()
    endpoint.then(hold(gate, *pieces))

    async def cancel():
        started = asyncio.Event()

        async def turn():
            events = agent().run(context())
            try:
                started.set()
                async for _ in events:
                    pass
            finally:
                await events.aclose()

        task = asyncio.create_task(turn())
        while not endpoint.requests:  # noqa: ASYNC110 - the endpoint lives in a thread
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())

    assert endpoint.hung_up.wait(10)


def test_cancelling_a_turn_cancels_its_tool(agent, context, endpoint):
    endpoint.then(calls(("wait", "{}")))
    seen = []

    async def cancel():
        running = asyncio.Event()

        @tool(effect="read")
        async def wait() -> str:
            """Wait."""
            running.set()
            try:
                await asyncio.Event().wait()
            finally:
                seen.append("ended")

        async def turn():
            events = agent().run(context(tools=[wait]))
            try:
                async for _ in events:
                    pass
            finally:
                await events.aclose()

        task = asyncio.create_task(turn())
        await running.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(cancel())

    assert seen == ["ended"]
    assert len(endpoint.requests) == 1
