"""``session_search`` as a model calls it: plain arguments in, JSON out, never an exception for a mistake."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace

import pytest

from hermes_core.search.history import SearchingHistory
from hermes_core.search.scan import ScanIndex
from hermes_hookspecs.ids import LineageId
from hermes_hookspecs.principal import principal_of
from hermes_hookspecs.session_search import session_search
from hermes_hookspecs.testing.scene import ALL, key_of, source_at


@pytest.fixture
def call(store):
    """Return a function that calls the tool in a turn, of nobody's lineage and as the operator if nothing is said."""

    def call(principal=ALL, own="none", **arguments):
        history = SearchingHistory(store, lambda: ScanIndex(store), principal, LineageId(own))
        return json.loads(asyncio.run(session_search.call(arguments, SimpleNamespace(history=history))))

    return call


def test_an_agent_gets_json_with_the_names_of_the_original(scene, call):
    entry = scene.enter()
    scene.talk(entry, "昨天的数据库迁移", "done")

    data = call(query="数据库", role_filter="user, assistant", limit=50)

    (found,) = data["results"]
    assert (data["success"], data["mode"], data["query"], data["count"]) == (True, "discover", "数据库", 1)
    assert (found["session_id"], found["matched_role"]) == (entry.session_id, "user")
    assert found["snippet"] == "昨天的>>>数据库<<<迁移"
    assert [row.get("anchor", False) for row in found["messages"]] == [True, False]
    assert {"bookend_start", "bookend_end", "messages_before", "messages_after", "parent_session_id"} <= set(found)


def test_what_was_found_can_be_read_around_and_read(scene, call):
    entry = scene.enter()
    for number in range(4):
        scene.talk(entry, f"question {number}", f"answer {number}")

    (found,) = call(query='"question 2"')["results"]
    around = call(session_id=found["session_id"], around_message_id=str(found["match_message_id"]), window=1)
    whole = call(session_id=found["session_id"])

    assert around["mode"] == "scroll"
    assert [row["content"] for row in around["results"][0]["messages"]] == ["answer 1", "question 2", "answer 2"]
    assert (whole["mode"], len(whole["results"][0]["messages"]), whole["truncated"]) == ("read", 8, False)


def test_nothing_is_asked_for_and_the_latest_conversations_are_listed_without_the_own(scene, call):
    mine, other = (scene.enter(key_of(chat), source_at(chat)) for chat in ("mine", "other"))
    for entry in (mine, other):
        scene.talk(entry, "hello")

    data = call(own=mine.lineage_id)

    assert (data["mode"], [one["session_id"] for one in data["results"]]) == ("browse", [other.session_id])


def test_a_turn_sees_what_its_principal_may_see(scene, call):
    mine, foreign = (scene.enter(key_of(chat), source_at(chat, user)) for chat, user in (("a", "ou_1"), ("b", "ou_2")))
    for entry in (mine, foreign):
        scene.talk(entry, "the pin is zebra")
    me = principal_of(source_at("a"), shared=False)

    assert [one["session_id"] for one in call(me, query="zebra")["results"]] == [mine.session_id]
    assert [one["session_id"] for one in call(me)["results"]] == [mine.session_id]
    assert call(me, session_id=foreign.session_id)["success"] is False


def test_order_roles_platform_and_dates_reach_the_search(scene, call):
    for chat in ("a", "b"):
        entry = scene.enter(key_of(chat), source_at(chat))
        scene.talk(entry, "needle", "an answer with omega")

    def chats(**arguments):
        data = call(**arguments)
        return [one["session_id"] for one in data["results"]]

    assert chats(query="needle", sort="oldest") == chats(query="needle", sort="newest")[::-1]
    assert chats(query="omega", role_filter="user") == []
    assert len(chats(query="omega", role_filter="assistant")) == 2
    assert chats(query="needle", source="nowhere") == []
    assert len(chats(query="needle", until="1970-01-02")) + len(chats(query="needle", since="1970-01-02")) == 2
    assert chats(query="needle", since="2999-01-01T10:00") == []


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"query": '"open'}, "never closed"),
        ({"session_id": "nobody"}, "nobody"),
        ({"around_message_id": 3}, "name its session too"),
        ({"query": "x", "since": "yesterday"}, "since is a date like"),
        ({"query": "x", "role_filter": "king"}, "there is no role 'king'"),
    ],
)
def test_a_mistake_of_a_model_is_an_answer(call, fields, said):
    data = call(**fields)

    assert data["success"] is False
    assert said in data["error"]
