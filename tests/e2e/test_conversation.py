"""Talk, leave, come back: what a stranger does first."""

from __future__ import annotations

import signal

import pytest

from hermes_core import SessionSource, open_app
from hermes_hookspecs.principal import operator


def test_what_was_said_is_found_again_under_its_title(hermes):
    first = hermes(stdin="hello\n/title plan\n")
    again = hermes("-c", "plan", "-q", "again")

    assert (first.status, again.status) == (0, 0)
    assert first.out.splitlines()[-1] == "Title: plan"
    (listed,) = hermes.json("sessions", "list")
    assert (listed["title"], listed["message_count"]) == ("plan", 4)
    (exported,) = hermes.exported()
    assert [row["content"] for row in exported["messages"] if row["role"] == "user"] == ["hello", "again"]
    shown = hermes("sessions", "show", "plan").out
    assert shown.index("hello") < shown.index("again")


@pytest.mark.parametrize(
    "options",
    [
        ("--session={}", "--continue"),
        ("--session", "{}", "-c"),
        ("-c", "--session={}"),
        ("-r", "{}"),
        ("--resume={}",),
        ("-c", "{}"),
        ("--continue={}",),
        ("-r", "{}", "-c", "another"),
        ("-c", "another", "-r", "{}"),
        ("--continue=nowhere", "--resume", "{}"),
        ("-r", "{}", "--session", "another"),
    ],
    ids=" ".join,
)
def test_every_way_to_say_it_goes_on_with_that_session(hermes, home, options):
    with open_app(home, plugins=False) as app:
        here, there = (SessionSource(platform="cli", chat_id=f"run-{number}", user_id="me") for number in (1, 2))
        wanted = app.ask("one", here, agent="echo").entry.session_id
        app.rename_session(app.ask("other", there, agent="echo").entry.lineage_id, "another")

    ran = hermes(*(option.format(wanted) for option in options), "--agent", "echo", "-q", "two")

    assert (ran.status, ran.out) == (0, "echo 2: two\n")
    with open_app(home, plugins=False) as app:
        counts = {summary.session_id: summary.message_count for summary in app.store.summaries(operator())}
    assert len(counts) == 2
    assert counts[wanted] == 4


def test_bare_continue_takes_the_latest_of_the_terminal(hermes):
    hermes("-q", "older", "--agent", "echo")
    latest = hermes.json("-q", "latest", "--agent", "echo")["session_id"]

    ran = hermes.json("-c", "-q", "and?", "--agent", "echo")

    assert (ran["session_id"], ran["text"]) == (latest, "echo 2: and?")


def test_bare_continue_without_a_past_says_so(hermes):
    ran = hermes("-c", "-q", "and?")

    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("hermes: no terminal has an earlier session to go on with; `hermes` begins one, and")
    assert hermes.json("sessions", "list", "--all") == []


def test_each_run_without_a_terminal_is_a_session_of_its_own_and_leaves_no_route(hermes):
    for text in ("one", "two"):
        assert hermes("-q", text, "--agent", "echo").out == f"echo 1: {text}\n"

    assert len(hermes.json("sessions", "list")) == 2
    assert hermes.json("routes", "list", "--all") == []


def test_lines_of_a_pipe_are_messages_and_commands_in_order(hermes):
    ran = hermes("--agent", "echo", stdin="one\n\n/title first\n/new second\ntwo\n/quit\nnever\n")

    assert ran.status == 0, ran.err
    assert [line for line in ran.out.splitlines() if line.startswith("echo")] == ["echo 1: one", "echo 1: two"]
    listed = {row["title"]: row["message_count"] for row in hermes.json("sessions", "list")}
    assert listed == {"first": 2, "second": 2}


def test_a_line_that_fails_is_told_and_counts_in_the_exit_status(hermes):
    ran = hermes("--agent", "echo", stdin="one\n/nonsense\ntwo\n")

    assert ran.status == 1
    assert [line for line in ran.out.splitlines() if line.startswith("echo")] == ["echo 1: one", "echo 2: two"]
    assert "/nonsense" in ran.err


def test_an_interrupt_while_a_pipe_is_read_ends_at_once_and_keeps_what_was_said(hermes):
    process = hermes.start("--agent", "echo")
    process.stdin.write(b"one\n/title kept\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"echo 1: one\n"
    assert process.stdout.readline() == b"Title: kept\n"

    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)

    assert (process.returncode, err) == (130, b"")
    (listed,) = hermes.json("sessions", "list")
    assert listed["message_count"] == 2


@pytest.mark.slow
def test_first_use_of_a_fresh_home_by_several_processes_at_once_just_works(hermes):
    processes = [hermes.start("-q", f"hello {number}", "--agent", "echo") for number in range(6)]

    ends = [process.communicate(timeout=60) for process in processes]

    assert [process.returncode for process in processes] == [0] * 6, ends
    assert sorted(out for out, _ in ends) == [f"echo 1: hello {number}\n".encode() for number in range(6)]
    assert [err for _, err in ends] == [b""] * 6
    listed = hermes.json("sessions", "list")
    assert [row["message_count"] for row in listed] == [2] * 6
    assert hermes.home.stat().st_mode & 0o777 == 0o700
    assert {path.name: path.stat().st_mode & 0o777 for path in hermes.home.glob("state.db*")} == {
        path.name: 0o600 for path in hermes.home.glob("state.db*")
    }
