"""Group G: which session is meant, and that it goes on."""

from __future__ import annotations

import json

import pytest

from hermes_hookspecs.errors import AmbiguousReference, SessionNotFound
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import SessionSource

ALL = operator()


@pytest.fixture
def two(open_home, alice, bob):
    """Return the session ids of two conversations; nobody has the home open."""
    with open_home() as app:
        return [app.ask(text, source, agent="echo").entry.session_id for text, source in (("one", alice), ("two", bob))]


def common_beginning(one, two):
    length = next(place for place, (left, right) in enumerate(zip(one, two, strict=True)) if left != right)
    return one[:length]


def unique_beginning(wanted, other):
    return wanted[: len(common_beginning(wanted, other)) + 1]


# ------------------------------------------------------------------ G07

COMMANDS = {
    "show": lambda ref: ("sessions", "show", ref),
    "rename": lambda ref: ("sessions", "rename", ref, "another"),
    "export": lambda ref: ("sessions", "export", "-", "--session-id", ref),
    "delete": lambda ref: ("sessions", "delete", ref, "--yes"),
    "resume": lambda ref: ("-r", ref, "-q", "go on", "--agent", "echo"),
    "continue": lambda ref: (f"--continue={ref}", "-q", "go on", "--agent", "echo"),
    "session": lambda ref: (f"--session={ref}", "--continue", "-q", "go on", "--agent", "echo"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_g07_an_ambiguous_beginning_lists_the_candidates_and_changes_nothing(hermes, open_home, two, command):
    ran = hermes(*COMMANDS[command](common_beginning(*two)))

    assert (ran.status, ran.out) == (2, "")
    assert all(session in ran.err for session in two)
    assert ran.err.count("\n") == 1
    app = open_home()
    assert [(summary.title, summary.message_count) for summary in app.store.summaries(ALL)] == [(None, 2)] * 2


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "continue"])
@pytest.mark.parametrize("blank", ["", "  "])
def test_g07_a_blank_reference_is_an_error_even_with_one_session(hermes, open_home, alice, command, blank):
    with open_home() as app:
        app.ask("the only one", alice, agent="echo")

    ran = hermes(*COMMANDS[command](blank))

    assert ran.status in (1, 2)
    assert ran.out == ""
    assert ran.err.count("\n") == 1
    with open_home() as app:
        assert [(summary.title, summary.message_count) for summary in app.store.summaries(ALL)] == [(None, 2)]


@pytest.mark.parametrize("command", COMMANDS)
def test_g07_a_unique_beginning_is_enough_for_every_command(hermes, open_home, two, command):
    ran = hermes(*COMMANDS[command](unique_beginning(two[1], two[0])))

    assert ran.status == 0, ran.err
    summaries = {summary.session_id: summary for summary in open_home().store.summaries(ALL)}
    assert (summaries[two[0]].title, summaries[two[0]].message_count) == (None, 2)
    if command == "delete":
        assert two[1] not in summaries
    elif command == "rename":
        assert summaries[two[1]].title == "another"
    elif command in ("resume", "continue", "session"):
        assert summaries[two[1]].message_count == 4
    else:
        assert two[1] in ran.out


def test_g07_id_before_title_before_beginning(open_home, two):
    app = open_home()
    first, second = (app.resolve(session, ALL).lineage for session in two)
    beginning = unique_beginning(two[0], two[1])

    app.rename_session(second.id, beginning)
    by_title = app.resolve(beginning, ALL)
    app.rename_session(second.id, two[0])
    by_id = app.resolve(two[0], ALL)

    assert (by_title.lineage.id, by_title.by) == (second.id, "title")
    assert (by_id.lineage.id, by_id.by) == (first.id, "id")


@pytest.mark.parametrize("wild", ["%", "_", "2%", "*", "20??", "[2]", "2026\x00", "'", "-1"])
def test_g07_a_reference_is_text_and_no_pattern(open_home, two, wild):
    with pytest.raises(SessionNotFound):
        open_home().resolve(wild, ALL)


def test_g07_what_is_somebody_elses_does_not_exist(open_home, two, alice):
    app = open_home()
    principal = app.principal(alice)
    app.rename_session(app.resolve(two[1], ALL).lineage.id, "secret")

    assert app.resolve(common_beginning(*two), principal).session.id == two[0]
    for reference in (two[1], "secret", two[1][:-1]):
        with pytest.raises(SessionNotFound) as hidden:
            app.resolve(reference, principal)
        with pytest.raises(SessionNotFound) as absent:
            app.resolve("nowhere", principal)
        assert str(hidden.value).replace(reference, "") == str(absent.value).replace("nowhere", "")


def test_g07_the_slash_command_resolves_the_same_way(hermes, open_home, two):
    ambiguous = hermes("--agent", "echo", stdin=f"/resume {common_beginning(*two)}\n")
    unique = hermes("--agent", "echo", stdin=f"/resume {unique_beginning(two[0], two[1])}\ngo on\n")

    assert ambiguous.status == 1
    assert all(session in ambiguous.err for session in two)
    assert (unique.status, unique.out.splitlines()[-1]) == (0, "echo 2: go on")


def test_g07_candidates_of_one_title_in_two_places_are_shown_not_guessed(open_home, two):
    app = open_home()
    for session in two:
        app.rename_session(app.resolve(session, ALL).lineage.id, "plan")

    with pytest.raises(AmbiguousReference) as raised:
        app.resolve("plan", ALL)

    assert sorted(raised.value.candidates) == sorted((session, "plan") for session in two)


# ------------------------------------------------------------------ G09


def test_g09_one_question_to_an_earlier_session_is_answered_from_it_and_kept_in_it(hermes):
    asked = json.loads(hermes("-q", "remember 42", "--agent", "echo", "--json").out)

    again = hermes("--resume", asked["session_id"], "-q", "which number?", "--agent", "echo")

    assert (again.status, again.out) == (0, "echo 2: which number?\n")
    (listed,) = json.loads(hermes("sessions", "list", "--json").out)
    assert (listed["session_id"], listed["message_count"]) == (asked["session_id"], 4)


def test_g09_an_ended_session_is_reopened(hermes, open_home):
    source = SessionSource(platform="cli", chat_id="pts-9", user_id="me")
    with open_home() as app:
        entry = app.ask("remember 42", source, agent="echo").entry
        app.leave_session(source, entry)
        ended = app.store.session(entry.session_id, ALL)

    again = hermes("-r", entry.session_id, "-q", "which number?", "--agent", "echo")

    assert ended.end_reason == "session_reset"
    assert again.out == "echo 2: which number?\n"
    reopened = open_home().store.session(entry.session_id, ALL)
    assert (reopened.ended_at, reopened.end_reason) == (None, None)


def test_g09_a_turn_alone_reopens_it(open_home, alice):
    app = open_home()
    entry = app.ask("remember 42", alice, agent="echo").entry
    app.leave_session(alice, entry)

    result = app.ask("which number?", alice, entry=entry, agent="echo")

    assert result.text == "echo 2: which number?"
    assert app.store.session(entry.session_id, ALL).ended_at is None


def test_g09_the_model_of_the_session_is_the_one_it_began_with(hermes, open_home):
    asked = json.loads(hermes("-q", "remember 42", "--agent", "echo", "--json").out)

    hermes("-r", asked["session_id"], "-q", "and?")

    assert open_home().store.session(asked["session_id"], ALL).model == "echo"
