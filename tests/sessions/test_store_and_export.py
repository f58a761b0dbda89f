"""The names that readers of the original look for, and sessions as plain data."""

from __future__ import annotations

import json

import attrs
import pytest

from hermes_core import SessionStore
from hermes_hookspecs.errors import SessionNotFound
from hermes_hookspecs.messages import Attachment, ToolCall
from hermes_hookspecs.ports.agent import AssistantStep, ToolResult, UsageReport
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import SessionSource
from hermes_hookspecs.turns import Usage

SOURCE = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1", user_name="Al")
TERMINAL = SessionSource(platform="cli", chat_id="pts-1")


async def agent(turn):
    yield AssistantStep(tool_calls=(ToolCall(id="a", name="look", arguments='{"x": 1}', effect="read"),), token_count=5)
    yield ToolResult(call_id="a", name="look", content="seen")
    yield UsageReport(usage=Usage(input_tokens=3))
    yield AssistantStep(content="done", finish_reason="stop", reasoning="hm")


def test_a_transcript_is_loaded_as_it_is_stored(app):
    entry = app.sessions.get_or_create_session(SOURCE)
    app.ask("go", SOURCE, agent=agent)

    rows = app.sessions.load_transcript(entry.session_id)

    assert isinstance(app.sessions, SessionStore)
    assert [row.role for row in rows] == ["user", "assistant", "tool", "assistant"]
    with pytest.raises(SessionNotFound):
        app.sessions.load_transcript("nowhere")


def test_a_key_is_switched_to_the_lineage_of_a_session(app):
    old = app.sessions.get_or_create_session(SOURCE)
    new = app.sessions.get_or_create_session(SOURCE, force_new=True)

    entry = app.sessions.switch_session(new.session_key, old.session_id)

    assert entry.session_id == old.session_id
    assert app.sessions.get_or_create_session(SOURCE, touch_activity=False).session_id == old.session_id
    for key, session_id in ((new.session_key, "nowhere"), ("agent:main:cli:dm:chat=9", old.session_id)):
        with pytest.raises(SessionNotFound):
            app.sessions.switch_session(key, session_id)


def test_an_export_has_the_names_that_people_know_and_names_the_entrance_of_each_row(app):
    entry = app.ask("go", SOURCE, agent=agent).entry
    app.ask("and from here", TERMINAL, entry=entry)
    app.rename_session(entry.lineage_id, "plan")

    data = app.sessions.export_session(entry.session_id)

    assert json.loads(json.dumps(data)) == data
    assert {
        "session_id": entry.session_id,
        "lineage_id": entry.lineage_id,
        "source": "feishu",
        "user_id": "ou_1",
        "title": "plan",
        "model": "agent",
        "message_count": 6,
        "tool_call_count": 1,
        "input_tokens": 3,
        "output_tokens": None,
        "parent_session_id": None,
        "end_reason": None,
    }.items() <= data.items()
    rows = data["messages"]
    assert [row["entrance"] for row in rows] == ["feishu"] * 4 + ["cli/default/pts-1"] * 2
    assert [row["session_key"] for row in rows[3:5]] == [entry.session_key, app.session_key(TERMINAL)]
    assert rows[1]["tool_calls"] == [
        {"id": "a", "name": "look", "arguments": '{"x": 1}', "effect": "read", "in_order": False}
    ]
    assert (rows[2]["tool_call_id"], rows[2]["tool_name"]) == ("a", "look")
    assert (rows[3]["finish_reason"], rows[3]["reasoning"], rows[1]["token_count"]) == ("stop", "hm", 5)
    assert rows[0]["user_id"] == "ou_1"


def test_a_lineage_is_exported_with_its_segments_and_all_rows(app):
    entry = app.ask("go", SOURCE, agent=agent).entry

    data = app.export_session(entry.session_id, lineage=True)

    assert data["lineage_session_ids"] == [entry.session_id]
    assert [one["session_id"] for one in data["segments"]] == [entry.session_id]
    assert len(data["messages"]) == 4
    with pytest.raises(SessionNotFound):
        app.export_session("nowhere")


def test_all_sessions_are_exported_oldest_first_and_only_those_of_the_principal(profile, clock):
    app = profile(clock=clock)
    entries = []
    for source in (TERMINAL, SOURCE, SessionSource(platform="cli", chat_id="pts-2")):
        clock.advance(10)
        entries.append(app.get_or_create_session(source))
    clock.advance(10)
    app.ask("later", TERMINAL)

    def exported(principal, **where):
        return [one["session_id"] for one in app.export_sessions(principal, **where)]

    assert exported(operator()) == [entry.session_id for entry in entries]
    assert exported(operator(), source="feishu") == [entries[1].session_id]
    assert exported(app.principal(SOURCE)) == [entries[1].session_id]


def test_an_export_reads_each_lineage_when_it_is_its_turn(app):
    first, second = (app.get_or_create_session(source) for source in (TERMINAL, SOURCE))
    exporting = app.export_sessions(operator())
    seen = next(exporting)["lineage_id"]
    app.delete_session(second.lineage_id if seen == first.lineage_id else first.lineage_id)

    assert list(exporting) == []


def test_attachments_are_exported_by_what_they_are(app):
    from hermes_core.sessions.export import _message

    entry = app.ask("look", SOURCE).entry
    (row, *_) = app.store.messages(entry.lineage_id, operator())
    with_image = attrs.evolve(
        row, attachments=(Attachment(kind="image", name="a.png", size=3, sha256="ff"),), turn_id=None
    )

    data = _message(with_image, {})

    assert data["attachments"] == [
        {"kind": "image", "name": "a.png", "media_type": "", "size": 3, "sha256": "ff", "text": None}
    ]
    assert (data["entrance"], data["session_key"], data["user_id"]) == (None, None, None)
