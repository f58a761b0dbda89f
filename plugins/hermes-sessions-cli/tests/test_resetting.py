"""``hermes reset explain``: when, why, and which setting says so."""

from __future__ import annotations

import json

import pytest

from hermes_hookspecs.source import SessionSource

hermes_core = pytest.importorskip("hermes_core")

CHAT = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_ming")
CONFIG = """
[session_reset]
mode = "idle"
idle_minutes = 60
timezone = "Asia/Shanghai"
"""


@pytest.fixture
def entry(tmp_path):
    """A conversation in a home in which conversations end an hour after the last word."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(CONFIG, encoding="utf-8")
    with hermes_core.open_app(home, overrides={"storage.durability": "normal"}, plugins=False, environ={}) as app:
        return app.ask("hello", CHAT, agent="echo").entry


def test_a_conversation_is_explained_by_its_key_and_by_its_id(script, tmp_path, entry):
    by_key = json.loads(script("reset", "explain", entry.session_key, "--json").out)
    by_id = json.loads(script("reset", "explain", entry.session_id, "--json").out)

    assert by_key == by_id
    (record,) = by_key
    assert (record["session_key"], record["session_id"]) == (entry.session_key, entry.session_id)
    assert (record["verdict"], record["timezone"], record["pins"]) == ("keep", "Asia/Shanghai", [])
    assert record["next_at"] == record["last_activity"] + 3_600_000
    config = str(tmp_path / "home" / "config.toml")
    assert {"key": "mode", "value": '"idle"', "origin": config} in record["settings"]
    assert {"key": "at_hour", "value": "4", "origin": "default"} in record["settings"]


def test_people_see_the_end_in_the_zone_that_is_counted_in(script, tmp_path, entry):
    lines = script("reset", "explain", entry.session_key).out.splitlines()

    assert lines[0].split() == ["key", entry.session_key]
    assert [line.split()[0] for line in lines[:5]] == ["key", "session", "last", "now", "ends"]
    assert lines[4].endswith("Asia/Shanghai")
    assert lines[6].split() == ["SETTING", "VALUE", "FROM"]
    assert lines[7].split() == ["mode", '"idle"', str(tmp_path / "home" / "config.toml")]


def test_what_no_key_leads_to_says_how_it_ended(hermes, say, app):
    entry = say("hello").entry
    app.leave_session(CHAT, None)

    by_id = hermes("reset", "explain", entry.session_id).out
    by_key = hermes("reset", "explain", entry.session_key).out
    (record,) = json.loads(hermes("reset", "explain", entry.session_id, "--json").out)

    assert "no key leads to it; it ended at" in by_id
    assert "there is nothing to end: the key leads to no conversation" in by_key
    assert (record["verdict"], record["end_reason"]) == ("nothing", "session_reset")


def test_what_is_not_there_is_an_error(hermes):
    ran = hermes("reset", "explain", "nothing")

    assert ran.status != 0
    assert "nothing" in ran.err
