"""A prompt that its endpoint finds too long, in a real profile: compressed, sent once more, and never a third time."""

from __future__ import annotations

import pytest

from hermes_core import open_app
from hermes_hookspecs.errors import AgentFailed
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.messages import KIND_CLOSING, TOOL, USER
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import SessionSource
from hermes_hookspecs.testing.agents import FakeTool
from hermes_openai.agent import OpenAIAgent
from hermes_openai.config import OpenAIConfig
from hermes_openai.testing import answer, calls, refuse

ALL = operator()
ANN = SessionSource(platform="feishu", chat_type="dm", chat_id="dm-ann", user_id="ann")
LONG = "word " * 240
TOO_LONG = "This model's maximum context length is 3000 tokens. Please reduce the length of the messages."


@pytest.fixture
def app(tmp_path):
    with open_app(tmp_path, overrides={"storage.backend": "memory"}, plugins=False, environ={}) as app:
        yield app


@pytest.fixture
def waits():
    return []


@pytest.fixture
def agent(endpoint, waits):
    """An agent with the usual repetitions."""

    async def sleep(seconds):
        waits.append(seconds)

    config = OpenAIConfig.of({"model": "m", "base_url": endpoint.base_url, "session_search": False})
    return OpenAIAgent(config, environ={}, sleep=sleep)


def _talk(app, agent, endpoint, count):
    for number in range(count):
        endpoint.then(answer(f"answer {number} {LONG}"))
        entry = app.ask(f"question {number} {LONG}", ANN, agent=agent).entry
    return entry


def _overflow():
    return refuse(400, TOO_LONG, code="context_length_exceeded")


def _segments(app, entry):
    return app.store.segments(entry.lineage_id, ALL)


def test_an_overflow_is_compressed_and_asked_exactly_once_more(app, agent, endpoint, waits):
    entry = _talk(app, agent, endpoint, 6)
    asked = len(endpoint.requests)
    endpoint.then(_overflow(), answer("It fits."))

    result = app.ask("the last question", ANN, agent=agent)

    refused, taken = endpoint.requests[asked:]
    assert (result.text, endpoint.left, waits) == ("It fits.", 0, [])
    assert refused.prompt_tokens > 3000 > taken.prompt_tokens
    assert taken.messages[-1]["content"] == refused.messages[-1]["content"] == "the last question"
    assert len(_segments(app, entry)) == 2
    rows = app.store.messages(entry.lineage_id, ALL)
    assert [row.content for row in rows if row.role == USER][-1] == "the last question"
    assert sum(row.content == "It fits." for row in rows) == 1


def test_an_overflow_that_stays_one_is_one_clear_error(app, agent, endpoint, waits):
    entry = _talk(app, agent, endpoint, 6)
    asked = len(endpoint.requests)
    endpoint.then(_overflow(), _overflow(), answer("never"))

    with pytest.raises(AgentFailed, match=r"^openai failed: .*maximum context length is 3000 tokens"):
        app.ask("the last question", ANN, agent=agent)

    assert (len(endpoint.requests) - asked, endpoint.left, waits) == (2, 1, [])
    closings = [row for row in app.store.messages(entry.lineage_id, ALL) if row.kind == KIND_CLOSING]
    assert [row.content.count("3000 tokens") for row in closings] == [1]
    assert len(_segments(app, entry)) == 2


def test_the_turn_behind_a_lasting_overflow_is_a_turn_like_any_other(app, agent, endpoint):
    _talk(app, agent, endpoint, 6)
    endpoint.then(_overflow(), _overflow())
    with pytest.raises(AgentFailed):
        app.ask("the last question", ANN, agent=agent)
    endpoint.then(answer("Here I am."))

    result = app.ask("still there?", ANN, agent=agent)

    assert result.text == "Here I am."
    assert endpoint.requests[-1].prompt_tokens < 3000


def test_an_overflow_behind_a_tool_runs_no_tool_twice(app, agent, endpoint):
    look = FakeTool("look", f"wet {LONG}")

    class Tools:
        @hookimpl
        def hermes_tools(self):
            return [look]

    app.hooks.host.register("test.tools", Tools())
    entry = _talk(app, agent, endpoint, 6)
    asked = len(endpoint.requests)
    endpoint.then(calls(("look", "{}", "c1")), _overflow(), answer("It is wet."))

    result = app.ask("how is the weather?", ANN, agent=agent)

    assert (result.text, len(endpoint.requests) - asked, look.calls) == ("It is wet.", 3, [{}])
    assert [row.content for row in app.store.messages(entry.lineage_id, ALL) if row.role == TOOL] == [f"wet {LONG}"]
    assert f"wet {LONG}".strip() in endpoint.requests[-1].raw.decode()


def test_an_overflow_with_nothing_to_leave_out_is_not_asked_again(app, agent, endpoint):
    endpoint.then(_overflow(), answer("never"))

    with pytest.raises(AgentFailed, match="3000 tokens"):
        app.ask("hello", ANN, agent=agent)

    assert (len(endpoint.requests), endpoint.left) == (1, 1)
