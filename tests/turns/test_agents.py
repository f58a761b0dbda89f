"""Who answers: functions, named agents, the built-in ones, and the past that they may see."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

import pytest

from hermes_core.search.history import SearchingHistory
from hermes_core.search.scan import ScanIndex
from hermes_hookspecs.errors import AgentFailed, ConfigError
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.ports.agent import AssistantStep
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import SessionSource

ALICE = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_alice", user_name="Alice")
BOB = SessionSource(platform="feishu", chat_id="oc_2", user_id="ou_bob", user_name="Bob")


# ------------------------------------------------------------------ functions


def test_a_plain_function_may_block_since_it_runs_on_a_thread(app):
    seen = []

    def function(turn):
        seen.append(threading.current_thread())
        return turn.text.upper()

    result = app.ask("hi", ALICE, agent=function)

    assert result.text == "HI"
    assert seen[0] is not threading.main_thread()


async def _async(prefix, turn):
    await asyncio.sleep(0)
    return f"{prefix} {turn.text}"


class _Callable:
    async def __call__(self, turn):
        return f"called {turn.text}"


@pytest.mark.parametrize(
    ("function", "answer"),
    [(partial(_async, "async"), "async hi"), (_Callable(), "called hi"), (lambda turn: "", "")],
)
def test_whatever_can_be_called_answers(app, function, answer):
    result = app.ask("hi", ALICE, agent=function)

    assert result.text == answer


def test_no_answer_is_no_row(app):
    result = app.ask("hi", ALICE, agent=lambda turn: "")

    assert [row.role for row in app.store.messages(result.entry.lineage_id, operator())] == ["user"]
    assert result.turn.outcome == "done"


def test_a_function_that_returns_something_else_fails_its_turn(app):
    with pytest.raises(AgentFailed, match="count returned int; an agent function returns its answer as text"):
        app.ask("hi", ALICE, agent=count)


def test_a_forgotten_return_fails_its_turn(app):
    def forgetful(turn):
        turn.text.upper()

    with pytest.raises(AgentFailed, match="forgetful returned nothing; an agent function returns its answer as text"):
        app.ask("hi", ALICE, agent=forgetful)


def count(turn):
    return 3


# ------------------------------------------------------------------ names


def test_the_configured_agent_answers_and_recall_does_where_none_is_configured(profile):
    configured = profile({"agent.runner": "echo"}, home="one")
    fresh = profile({"agent.runner": ""}, home="two")

    assert configured.ask("hi", ALICE).text == "echo 1: hi"
    assert fresh.ask("hi", ALICE).text.startswith("I kept your message.")


def test_an_agent_of_a_plugin_is_known_by_name_and_the_first_of_a_name_has_it(profile):
    class Loud:
        name = "loud"
        model = "m1"

        async def run(self, turn):
            yield AssistantStep(content=turn.text.upper())

    class OtherEcho(Loud):
        name = "echo"

    class Brings:
        @hookimpl
        def hermes_agents(self):
            return [Loud(), OtherEcho()]

    app = profile(plugins=[Brings()])

    assert app.agent_names() == ["echo", "loud", "recall"]
    assert app.ask("hi", ALICE, agent="loud").text == "HI"
    assert app.ask("hi", ALICE, agent="echo").text == "HI"
    assert app.ask("hi", ALICE, agent=Loud()).text == "HI"


@pytest.mark.parametrize(
    ("settings", "agent", "message"),
    [
        ({}, "nobody", "there is no agent 'nobody'; there are: echo, recall"),
        ({"agent.runner": "nobody"}, None, "option --agent: there is no agent 'nobody'"),
    ],
)
def test_an_unknown_name_is_refused_before_anything_is_stored(profile, settings, agent, message):
    app = profile(settings)

    with pytest.raises(ConfigError) as caught:
        app.ask("hi", ALICE, agent=agent)

    assert str(caught.value).startswith(message)
    assert (caught.value.section, caught.value.key) == ("agent", "runner")
    assert app.store.summaries(operator()) == ()


def test_what_is_neither_name_nor_function_nor_agent_is_refused(app):
    with pytest.raises(TypeError, match="an agent is a name, a function"):
        app.ask("hi", ALICE, agent=7)


def test_tools_and_commands_are_handed_to_the_agent(profile):
    class Clock:
        name, description, effect, parameters = "clock", "tells the time", "read", {}

        async def call(self, arguments, turn):
            return "noon"

    class Brings:
        @hookimpl
        def hermes_tools(self):
            return [Clock()]

    async def agent(turn):
        yield AssistantStep(content=await turn.tools["clock"].call({}, turn) + " " + dict(turn.commands)["new"])

    app = profile(plugins=[Brings()])

    assert app.ask("hi", ALICE, agent=agent).text.startswith("noon begin a new session")


# ------------------------------------------------------------------ the past


def test_recall_finds_what_the_same_person_said_elsewhere_and_nothing_of_others(profile):
    app = profile({"agent.runner": "recall"})
    app.ask("the secret word is kiwi", BOB, agent=lambda turn: "noted")
    app.ask("the harmless word is mango", ALICE, agent=lambda turn: "noted")
    app.get_or_create_session(ALICE, force_new=True)

    assert "mango" in app.ask("mango", ALICE).text
    answer = app.ask("kiwi", ALICE).text

    assert "No earlier session mentions “kiwi”" in answer
    assert "secret" not in answer
    assert "Lately you talked in:" not in answer


def test_recall_says_at_the_beginning_what_there_is_and_what_can_be_typed(profile):
    app = profile({"agent.runner": "recall"})
    app.ask("the harmless word is mango", ALICE, agent=lambda turn: "noted")
    app.get_or_create_session(ALICE, force_new=True)

    first = app.ask("kiwi", ALICE).text
    second = app.ask("plum", ALICE).text

    assert "Lately you talked in:" in first
    assert "Commands: /help  /new  /sessions  /resume  /search; /help lists all" in first
    assert second == "I kept your message. No earlier session mentions “plum”."


def test_recall_does_not_remember_its_own_answers(profile):
    app = profile({"agent.runner": "recall"})
    app.ask("hello", ALICE)
    app.get_or_create_session(ALICE, force_new=True)

    assert "No earlier session mentions “commands”" in app.ask("commands", ALICE).text


def test_the_operator_finds_everything_with_title_and_neighbourhood(profile):
    app = profile({"agent.runner": "recall"})
    long = "x " * 200 + "needle" + " y" * 200
    entry = app.ask(long, BOB, agent=lambda turn: "noted").entry
    app.rename_session(entry.lineage_id, "Bob's plan")

    answer = app.ask("needle", SessionSource(platform="cli", chat_id="pts-1")).text

    assert f"- Bob's plan ({entry.session_id}): user: …" in answer
    assert "needle" in answer
    assert len(answer) < 600


def test_history_finds_one_row_of_each_other_lineage_a_persons_before_an_answer(app):
    entries = []
    for number in range(4):
        source = SessionSource(platform="cli", chat_id=f"pts-{number}")
        app.ask(f"apple pie {number}", source, agent=lambda turn: "no PIE with Apple today")
        entries.append(app.ask("apple only", source, agent=lambda turn: "ok").entry)
    history = SearchingHistory(app.store, lambda: ScanIndex(app.store), operator(), entries[3].lineage_id)

    found = history.search("apple PIE", limit=2)

    assert [(summary.lineage_id, row.role) for summary, row in found] == [
        (entries[2].lineage_id, "user"),
        (entries[1].lineage_id, "user"),
    ]
    assert [row.role for _, row in history.search("no today", limit=1)] == ["assistant"]
    assert history.search("   ") == ()
    assert history.search("nowhere to be found") == []
    assert len(history.recent(limit=2)) == 2
    assert entries[3].lineage_id not in {one.lineage_id for one in history.recent(limit=9)}


def test_echo_counts_what_it_heard(app):
    assert [app.ask(text, ALICE).text for text in ("a", "b")] == ["echo 1: a", "echo 2: b"]


def test_what_was_said_in_private_is_not_quoted_where_others_hear_it(profile):
    app = profile({"agent.runner": "recall"})
    private = SessionSource(platform="feishu", chat_id="p2p", user_id="ou_alice", user_id_alt="on_alice")
    group = SessionSource(
        platform="feishu", chat_type="group", chat_id="oc_team", user_id="ou_alice", user_id_alt="on_alice"
    )
    app.ask("my salary is 4711 florins", private, agent="echo")

    assert "No earlier session mentions" in app.ask("florins", group).text
    team = app.ask("the team has 12 florins", group, agent="echo").entry
    app.get_or_create_session(private, force_new=True)
    answer = app.ask("florins", private).text
    assert "4711" in answer
    assert team.session_id in answer


def test_what_a_room_said_stays_in_reach_of_that_room_alone(profile):
    app = profile({"agent.runner": "recall", "routing.group_sessions_per_user": False})
    team, other = (SessionSource(platform="feishu", chat_type="group", chat_id=chat, user_id="ou_1") for chat in "ab")
    app.ask("the plan is mango", team, agent="echo")

    assert "No earlier session mentions" in app.ask("mango", other).text
    app.get_or_create_session(team, force_new=True)
    assert "the plan is mango" in app.ask("mango", team).text
