"""Group A, on a platform whose ids are unique inside a workspace only."""

from __future__ import annotations

import asyncio

import attrs
import pytest

from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import SessionSource

ALL = operator()


def slack(team, chat="C9", kind="channel", **fields):
    named = {"user_id": "U5"} | fields
    return SessionSource(platform="slack", scope_id=team, chat_id=chat, chat_type=kind, **named)


def said_before(app, source, text):
    """Say ``text``; return what people had said in that session before."""
    seen = []

    def agent(turn):
        seen.extend(row.content for row in turn.messages if row.role == "user")
        return "noted"

    app.ask(text, source, agent=agent)
    return seen[:-1]


# ------------------------------------------------------------------ A01


def test_a01_equal_ids_in_two_workspaces_are_four_conversations(app):
    sources = [slack(team, *place) for team in ("T1", "T2") for place in (("C9", "channel"), ("D9", "dm"))]

    first = [said_before(app, source, f"alpha of {source.scope_id}") for source in sources]
    second = [said_before(app, source, "what did I say?") for source in sources]

    assert first == [[]] * 4
    assert second == [[f"alpha of {source.scope_id}"] for source in sources]
    assert app.store.stats().lineages == 4


@pytest.mark.parametrize("kind", ["dm", "channel", "group"])
def test_a01_a_route_without_a_workspace_is_nobodys_until_a_plugin_says_whose(app, kind):
    app.ask("alpha", slack(None, kind=kind))

    assert said_before(app, slack("T1", kind=kind), "what did I say?") == []


@pytest.mark.parametrize("platform", ["feishu", "weixin", "webhook", "cli"])
def test_a01_a_scope_moves_no_key_of_another_platform(app, platform):
    source = attrs.evolve(slack(None), platform=platform)

    assert app.session_key(attrs.evolve(source, scope_id="T1")) == app.session_key(source)


# ------------------------------------------------------------------ A05


def test_a05_a_command_in_a_channel_has_the_key_of_its_senders_messages(app):
    people = [slack("T1", user_id=user) for user in ("U_ann", "U_ben")]
    entries = [app.ask("hello", source).entry for source in people]
    events = [
        MessageEvent(source=source, text="/title plan", identities=(source.user_id,), received_at=app.clock.now())
        for source in people
    ]

    results = asyncio.run(app.accept(events))

    rows = [app.store.inbox_item(result.id) for result in results]
    assert [row.kind for row in rows] == ["control", "control"]
    assert [row.session_key for row in rows] == [entry.session_key for entry in entries]
    assert len({row.session_key for row in rows}) == 2


# ------------------------------------------------------------------ A10


def test_a10_top_level_messages_of_a_channel_are_one_session_and_a_thread_is_another(app, open_home):
    for number in range(3):
        said_before(app, slack("T1", message_id=f"17.{number}"), f"message {number}")
    in_thread = said_before(app, slack("T1", thread_id="17.1", message_id="17.9"), "an answer in the thread")
    app.close()

    again = open_home()

    assert in_thread == []
    assert said_before(again, slack("T1", message_id="18.0"), "and on") == [f"message {number}" for number in range(3)]
    (there,) = said_before(again, slack("T1", thread_id="17.1"), "there, too")
    assert there.endswith("an answer in the thread")  # a thread is shared: the sender stands before it
    assert len(again.store.summaries(ALL)) == 2
