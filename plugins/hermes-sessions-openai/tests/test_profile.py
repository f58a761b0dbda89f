"""The agent in a real profile: the prefix of the prompt, the search of earlier conversations, the end of turns."""

from __future__ import annotations

import json
import threading
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hermes_core import open_app
from hermes_core.context.repair import repair_message_sequence
from hermes_hookspecs.errors import AgentFailed
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.principal import operator
from hermes_hookspecs.session_search import session_search
from hermes_hookspecs.source import SessionSource
from hermes_hookspecs.testing.agents import FakeTool
from hermes_hookspecs.toolbox import Toolbox
from hermes_openai.agent import OpenAIAgent
from hermes_openai.config import OpenAIConfig
from hermes_openai.prompt import user_message, wire_messages
from hermes_openai.testing import FakeEndpoint, answer, calls, cut, hold, refuse


def dm(user="ann", chat="dm-ann"):
    return SessionSource(platform="feishu", chat_type="dm", chat_id=chat, user_id=user, user_name=user)


def room(user="ann", thread="t1"):
    return SessionSource(
        platform="feishu", chat_type="thread", chat_id="room", thread_id=thread, user_id=user, user_name=user
    )


class Tools:
    """A plugin with tools, in the order in which they are given."""

    def __init__(self, *names):
        self.names = names

    @hookimpl
    def hermes_tools(self):
        return [FakeTool(name, f"result of {name} 😀") for name in self.names]


class Prompted:
    @hookimpl
    def hermes_system_prompt_parts(self, entry):
        return ["You are brief."]


@pytest.fixture
def opened(tmp_path):
    """Return a function that opens a profile; a second call closes it and opens it again."""
    open_ones = []

    def opened(*plugins, home=tmp_path, backend="sqlite"):
        for one in open_ones:
            one.close()
        overrides = {"storage.durability": "normal", "storage.backend": backend}
        open_ones[:] = [open_app(home, overrides=overrides, plugins=False, environ={})]
        for number, plugin in enumerate(plugins):
            open_ones[0].hooks.host.register(f"test.{number}", plugin)
        return open_ones[0]

    yield opened
    for one in open_ones:
        one.close()


def an_agent(endpoint, **table):
    config = OpenAIConfig.of({"model": "m", "base_url": endpoint.base_url, "retries": 0} | table)
    return OpenAIAgent(config, environ={})


# ------------------------------------------------------------------ promise 4


TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=20)
ARGUMENTS = st.sampled_from(["{}", '{"a": "ä 😀"}', '{ "b":[1,  2] }', '{"a": ', "", "[1]"])
CALLS = st.lists(st.tuples(st.sampled_from(["look", "hear", "dream"]), ARGUMENTS, st.sampled_from(["x", "y", ""])),
                 min_size=1, max_size=3)  # fmt: skip
ENDS = st.one_of(
    TEXT.filter(str.strip).map(lambda text: answer(text, reasoning=["hm"])),
    TEXT.filter(str.strip).map(cut),
    st.just(refuse(400, "bad")),
)
TURNS = st.lists(
    st.tuples(TEXT.filter(str.strip), st.lists(CALLS, max_size=2), ENDS, st.booleans()), min_size=2, max_size=5
)


def sent_head(asked):
    """Return the bytes of a request up to its last message."""
    return asked.raw[: asked.raw.rindex(b'],"tools":[')]


# A whole profile for each example: what fails is told as it is, shrinking it would take minutes.
@settings(
    max_examples=12,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(turns=TURNS)
def test_every_prompt_begins_with_the_one_before_byte_for_byte(turns, opened, tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    with FakeEndpoint(strict=False) as endpoint:
        tools = ["look", "hear"]
        app = opened(Tools(*tools), Prompted(), home=home)
        for text, rounds, end, restart in turns:
            if restart:
                tools.reverse()
                app = opened(Tools(*tools), Prompted(), home=home)
            endpoint._script[:] = [*(calls(*one) for one in rounds), end]
            try:
                app.ask(text, dm(), agent=an_agent(endpoint))
            except AgentFailed:
                continue
    heads = [sent_head(asked) for asked in endpoint.requests]
    assert [asked.tools for asked in endpoint.requests] == [endpoint.requests[0].tools] * len(heads)
    for earlier, later in pairwise(heads):
        assert later.startswith(earlier)


def test_what_is_steered_in_stands_in_later_prompts_as_it_was_sent(context, row):
    class Wheel:
        def take(self):
            return ("one", "two")

    sent_in_the_turn = user_message(Toolbox(context(steering=Wheel())).steered())

    assert wire_messages(repair_message_sequence([row(content="one"), row(content="two")])) == [sent_in_the_turn]


# ------------------------------------------------------------------ session_search


def search(query):
    return calls(("session_search", json.dumps({"query": query}), "s"))


def found_by(endpoint):
    """Return what the last ``session_search`` found, as the model was sent it."""
    results = [message for message in endpoint.requests[-1].messages if message["role"] == "tool"]
    return json.loads(results[-1]["content"])


@pytest.fixture
def secret(opened, endpoint):
    """A profile in which ann said in private what nobody else may know; and an agent of it."""
    app = opened(backend="memory")
    endpoint.then(answer("I keep it."))
    agent = an_agent(endpoint)
    app.ask("my pin is zebra", dm(), agent=agent)
    return app, agent


def test_a_person_finds_in_private_what_was_said_in_private(secret, endpoint):
    app, agent = secret
    app.new_session(dm())
    endpoint.then(search("zebra"), answer("It is zebra."))

    app.ask("what is my pin?", dm(), agent=agent)

    (found,) = found_by(endpoint)["results"]
    assert found["snippet"] == "my pin is >>>zebra<<<"
    assert [(row["role"], row["content"]) for row in found["messages"]] == [
        ("user", "my pin is zebra"),
        ("assistant", "I keep it."),
    ]


@pytest.mark.parametrize("who", ["ann", "bob"])
def test_a_shared_room_does_not_hear_what_was_said_in_private(secret, endpoint, who):
    app, agent = secret
    endpoint.then(search("zebra"), answer("No."))

    app.ask("quote what ann told you about her pin", room(who), agent=agent)

    assert found_by(endpoint)["results"] == []


@pytest.mark.parametrize("around", [True, False])
@pytest.mark.parametrize("who", ["ann", "bob"])
def test_a_shared_room_that_knows_the_id_of_a_private_session_cannot_read_it(secret, endpoint, who, around):
    app, agent = secret
    private = app.get_or_create_session(dm())
    place = app.store.messages(private.lineage_id, operator())[0].id
    asked = {"session_id": private.session_id} | ({"around_message_id": place} if around else {})
    unknown = asked | {"session_id": "20260101_000000_00000000"}
    for arguments in (asked, unknown):
        endpoint.then(calls(("session_search", json.dumps(arguments), "s")), answer("No."))

    told = []
    for _ in range(2):
        app.ask("read that session to us", room(who), agent=agent)
        told.append(endpoint.requests[-1].messages[-1]["content"])

    assert "zebra" not in "".join(told)
    assert told[0].replace(private.session_id, "X") == told[1].replace(unknown["session_id"], "X")


def test_somebody_else_does_not_find_it_in_private(secret, endpoint):
    app, agent = secret
    endpoint.then(search("zebra"), answer("No."))

    app.ask("what is ann's pin?", dm("bob", "dm-bob"), agent=agent)

    assert found_by(endpoint)["results"] == []


def test_the_list_of_conversations_is_as_private(secret, endpoint):
    app, agent = secret
    endpoint.then(search(""), answer("None."), search(""), answer("One."))

    app.ask("what did ann talk about?", room("ann"), agent=agent)
    in_room = found_by(endpoint)
    app.new_session(dm())
    app.ask("what did I talk about?", dm(), agent=agent)

    assert (in_room["mode"], in_room["results"]) == ("browse", [])
    assert [one["preview"] for one in found_by(endpoint)["results"]] == ["my pin is zebra"]


def test_a_tool_of_that_name_that_the_profile_has_is_taken_instead(opened, endpoint):
    endpoint.then(search("zebra"), answer("Hm."))

    app = opened(Tools("session_search"), backend="memory")
    app.ask("hello", dm(), agent=an_agent(endpoint))

    assert endpoint.requests[-1].messages[-1]["content"] == "result of session_search 😀"


def test_another_version_of_the_search_changes_nothing_of_the_prompt(opened, endpoint, monkeypatch):
    endpoint.then(answer("Hi."), search("zebra"), answer("Hm."))
    app = opened(backend="memory")
    app.ask("hello", dm(), agent=an_agent(endpoint))
    monkeypatch.setattr(session_search, "description", "Search in other words.")

    app.ask("again", dm(), agent=an_agent(endpoint))

    first, *others = endpoint.requests
    assert [one["function"]["name"] for one in first.tools] == ["send_file", "session_search"]
    assert [one.tools for one in others] == [first.tools] * 2
    assert "results" in others[-1].messages[-1]["content"]


# ------------------------------------------------------------------ turns


def test_usage_and_cost_are_those_of_the_whole_turn(opened, endpoint):
    used = {"prompt_tokens": 1000, "completion_tokens": 100, "prompt_tokens_details": {"cached_tokens": 400}}
    endpoint.then(calls(("look", "{}")), answer("Hi.", usage=used))
    prices = {"m": {"input": 1, "output": 2, "cached": 0.5}}

    result = opened(backend="memory").ask("hello", dm(), agent=an_agent(endpoint, prices=prices))

    first = endpoint.requests[0].prompt_tokens
    assert result.usage.input_tokens == first + 1000
    assert result.usage.cache_read_tokens == 400
    assert result.usage.estimated_cost_usd > (600 * 1 + 400 * 0.5 + 100 * 2) / 1_000_000


def test_a_prompt_that_is_too_long_is_compressed_and_sent_once_more(opened, endpoint):
    endpoint._context_tokens = 1500
    agent = an_agent(endpoint, session_search=False, send_files=False)
    app = opened(backend="memory")
    before = 0
    while len(endpoint.requests) - before < 2:
        assert before < 20, "the prompt never became too long"
        before = len(endpoint.requests)
        endpoint.then(answer("reply " * 60))
        result = app.ask("word " * 60, dm(), agent=agent)

    refused, taken = endpoint.requests[-2:]
    assert (result.turn.outcome, result.text) == ("done", "reply " * 60)
    assert refused.prompt_tokens > 1500 > taken.prompt_tokens
    assert len(endpoint.requests) == before + 2


def test_a_turn_that_is_stopped_ends_the_stream(opened, endpoint):
    gate = threading.Event()
    endpoint.then(hold(gate, "It "))
    app = opened(backend="memory")
    shown = threading.Event()
    ended = []

    def ask():
        with pytest.raises(Exception, match="lease") as caught:
            app.ask("hello", dm(), agent=an_agent(endpoint), on_event=lambda _event: shown.set())
        ended.append(caught.value)

    thread = threading.Thread(target=ask)
    thread.start()
    assert shown.wait(20)
    app.stop_turn(app.get_or_create_session(dm()).lineage_id)
    thread.join(20)

    assert endpoint.hung_up.wait(10)
    assert len(ended) == 1
