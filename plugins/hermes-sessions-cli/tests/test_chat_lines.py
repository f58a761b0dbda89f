"""Chat without a terminal, in this process: which session, what is printed, which exit status."""

from __future__ import annotations

import json

import pytest

from hermes_hookspecs.errors import LeaseBusy, LeaseLost, StoreFull


def listed(hermes):
    return json.loads(hermes("sessions", "list", "--json").out)


@pytest.mark.parametrize("options", [["-c"], ["-r", "{id}"], ["--session", "{id}"], ["--session={id}", "--continue"]])
def test_every_way_to_go_on_leads_to_the_same_session(hermes, options):
    hermes("-q", "one")
    session_id = listed(hermes)[0]["session_id"]

    ran = hermes(*(each.format(id=session_id) for each in options), "-q", "two")

    assert ran.status == 0
    assert [(row["session_id"], row["message_count"]) for row in listed(hermes)] == [(session_id, 4)]


def test_resume_wins_over_continue(hermes):
    hermes("-q", "one")
    hermes("-q", "two")
    newer, older = (row["session_id"] for row in listed(hermes))

    hermes("-c", newer, "-r", older, "-q", "three")

    assert {row["session_id"]: row["message_count"] for row in listed(hermes)} == {newer: 2, older: 4}


def test_nothing_to_go_on_with_is_exit_1(hermes):
    ran = hermes("-c", "-q", "hello")

    assert (ran.status, ran.out) == (1, "")
    assert ran.err == "hermes: there is no earlier session to go on with; `hermes` begins one\n"
    assert listed(hermes) == []


def test_a_reference_to_nothing_changes_nothing(hermes):
    hermes("-q", "one")

    ran = hermes("-c", "nothing", "-q", "hello")

    assert ran.status == 1
    assert len(listed(hermes)) == 1


def test_a_run_without_a_message_leaves_no_session_behind(hermes):
    assert hermes(stdin="\n/status\n/quit\nnever asked\n").status == 0

    assert json.loads(hermes("sessions", "list", "--all", "--json").out) == []


def test_a_failed_command_goes_on_and_is_told_by_the_exit_status(hermes):
    ran = hermes(stdin="/nope\nhello\n")

    assert ran.status == 1
    assert "hello" in ran.out
    assert "/nope" in ran.err


def test_a_question_of_a_dash_is_stdin_as_one_message(hermes):
    hermes("-q", "-", stdin="line one\nline two\n")

    (session,) = hermes("sessions", "export").out.splitlines()
    assert json.loads(session)["messages"][0]["content"].rstrip("\n") == "line one\nline two"


def test_json_of_a_question_is_one_object(hermes):
    ran = hermes("-q", "hello", "--json", "--agent", "echo")

    answer = json.loads(ran.out)
    assert answer["session_id"] == listed(hermes)[0]["session_id"]
    assert answer["outcome"] == "done"
    assert "hello" in answer["text"]


def test_new_begins_another_session_with_its_title(hermes):
    ran = hermes(stdin="one\n/new second\ntwo\n")

    assert ran.status == 0
    assert {row["title"] for row in listed(hermes)} == {None, "second"}


def test_hostile_input_is_kept_shown_safely_and_exported_as_utf_8(hermes):
    hostile = "\x1b[2J\x00 \u202e 周报 👩‍💻".encode() + b" \xff\xfe"

    ran = hermes(stdin=hostile + b"\n")

    assert ran.status == 0
    assert "\x1b" not in ran.out
    (record,) = hermes("sessions", "export").out.splitlines()
    assert json.loads(record)["messages"][0]["content"] == hostile.decode("utf-8", "replace")


def test_a_message_of_ten_megabytes_works(hermes):
    ran = hermes(stdin="x" * 10_000_000 + "\n")

    assert ran.status == 0
    assert listed(hermes)[0]["message_count"] == 2


def test_a_lease_that_cannot_be_had_ends_the_lines_with_exit_75(hermes, app, monkeypatch):
    asked = []

    async def busy(text, source, *, on_wait, **more):
        asked.append(text)
        on_wait("feishu (process 7 on host)\x1b[2J answers")
        raise LeaseBusy("somebody else answers there; your message was withdrawn")

    monkeypatch.setattr(app, "ask_async", busy)

    ran = hermes(stdin="one\ntwo\n")

    assert (ran.status, ran.out, asked) == (75, "", ["one"])
    assert ran.err == (
        "hermes: waiting: feishu (process 7 on host)␛[2J answers\n"
        "hermes: somebody else answers there; your message was withdrawn\n"
    )


def test_a_turn_that_was_stopped_elsewhere_is_told_and_the_lines_go_on(hermes, app, monkeypatch):
    ask = app.ask_async

    async def first_is_lost(text, *arguments, **more):
        if text == "one":
            raise LeaseLost("L1", 7)
        return await ask(text, *arguments, **more)

    monkeypatch.setattr(app, "ask_async", first_is_lost)

    ran = hermes(stdin="one\ntwo\n")

    assert ran.status == 1
    assert "two" in ran.out
    assert ran.err.startswith("hermes: the lease of L1 ")


def test_a_store_that_fails_ends_the_lines_with_its_own_status(hermes, app, monkeypatch):
    async def full(*arguments, **more):
        raise StoreFull("no space left")

    monkeypatch.setattr(app, "ask_async", full)

    ran = hermes(stdin="one\ntwo\n")

    assert (ran.status, ran.out, ran.err) == (74, "", "hermes: no space left\n")
