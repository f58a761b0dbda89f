"""``hermes routes``: list, explain."""

from __future__ import annotations

import json

import pytest

from hermes_hookspecs.source import SessionSource


def test_routes_are_listed_with_what_they_lead_to(hermes, say, app):
    assert hermes("routes", "list").err.startswith("No routes yet")
    result = say("hello")
    app.rename_session(result.entry.lineage_id, "plan")

    ran = hermes("routes", "list")
    (record,) = json.loads(hermes("routes", "list", "--json").out)

    assert ran.out.splitlines()[1].split()[:2] == [result.entry.session_key, result.entry.session_id]
    assert (record["session_key"], record["session_id"], record["title"]) == (
        result.entry.session_key,
        result.entry.session_id,
        "plan",
    )
    assert record["chat_id"] == "oc_1"


def terminal(at):
    return SessionSource(platform="cli", chat_id=f"pts-{at}", user_id="ming")


def test_routes_of_terminals_are_counted_and_shown_only_to_who_asks(hermes, say):
    assert hermes("routes", "list").err.startswith("No routes yet")
    for at in range(3):
        say("hello", source=terminal(at))

    only_terminals = hermes("routes", "list")
    chat = say("hello").entry
    some = hermes("routes", "list")
    everything = hermes("routes", "list", "--all")

    assert (only_terminals.out, only_terminals.err) == ("", "3 of terminals (--all shows them)\n")
    assert [line.split()[0] for line in some.out.splitlines()[1:]] == [chat.session_key]
    assert some.err == "3 of terminals (--all shows them)\n"
    assert len(json.loads(hermes("routes", "list", "--json").out)) == 1
    assert len(everything.out.splitlines()) == 1 + 4
    assert everything.err == ""
    assert hermes("routes", "list", "--all", "-n", "1").err == "3 more (--limit shows more)\n"


@pytest.mark.parametrize("width", [80, 120])
def test_routes_fit_the_screen_with_both_ends_of_their_keys(hermes, app, say, monkeypatch, width):
    source = SessionSource(platform="feishu", chat_id="oc_" + "0123456789" * 6, user_id="ou_end")
    entry = say("hello", source=source).entry
    app.rename_session(entry.lineage_id, "t" * 90)
    piped = hermes("routes", "list").out
    monkeypatch.setattr("hermes_cli.front_end.width_of", lambda out: width)

    lines = hermes("routes", "list").out.splitlines()

    assert max(map(len, lines)) <= width
    assert lines[1].startswith("agent:main:feishu:")
    assert lines[1].split()[:2] == [lines[1].split()[0], entry.session_id]
    assert ("TITLE" in lines[0]) is (width == 120)
    assert entry.session_key in piped
    assert "t" * 90 in piped


def test_a_route_is_explained_by_key_and_by_source(hermes, say):
    entry = say("hello").entry

    by_key = json.loads(hermes("routes", "explain", entry.session_key, "--json").out)
    by_source = json.loads(
        hermes("routes", "explain", "--platform", "feishu", "--chat", "oc_1", "--user", "ou_ming", "--json").out
    )
    text = hermes("routes", "explain", entry.session_key).out

    assert by_key == by_source
    assert by_key["session_id"] == entry.session_id
    assert by_key["reasons"]
    assert entry.session_key in text
    assert entry.session_id in text


def test_an_unknown_key_is_refused(hermes):
    ran = hermes("routes", "explain", "agent:main:none")

    assert (ran.status, ran.out) == (1, "")
    assert "no route has the key" in ran.err


def test_this_terminal_is_explained_without_arguments(hermes):
    assert "run-" in hermes("routes", "explain").out
