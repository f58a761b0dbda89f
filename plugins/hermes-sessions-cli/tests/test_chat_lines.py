"""Chat without a terminal, in this process: which session, what is printed, which exit status."""

from __future__ import annotations

import asyncio
import json
import signal

import pytest

from hermes_cli.conversation import interrupts_win
from hermes_hookspecs.errors import AgentFailed, LeaseBusy, LeaseLost, SessionNotFound, StoreFull
from hermes_hookspecs.source import SessionSource

CHAT = SessionSource(platform="cli", chat_id="pts-9", user_id="ming")


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
    assert ran.err.startswith("hermes: no terminal has an earlier session to go on with; `hermes` begins one, and")
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
    assert ran.err == "hermes: the turn was stopped from elsewhere; what it had stored is kept\n"


def test_a_store_that_fails_ends_the_lines_with_its_own_status(hermes, app, monkeypatch):
    async def full(*arguments, **more):
        raise StoreFull("no space left")

    monkeypatch.setattr(app, "ask_async", full)

    ran = hermes(stdin="one\ntwo\n")

    assert (ran.status, ran.out, ran.err) == (74, "", "hermes: no space left\n")


@pytest.fixture
def gone(app, monkeypatch):
    """Let the session be deleted, as from another terminal, before the line ``two`` is taken."""
    from hermes_cli.conversation import Conversation

    take = Conversation.take

    async def deleted_before_two(self, text, **more):
        if text in ("two", "/title two"):
            app.delete_session(self.entry.lineage_id)
        return await take(self, text, **more)

    monkeypatch.setattr(Conversation, "take", deleted_before_two)


GONE = "hermes: this session is gone: it was deleted from elsewhere; your next message begins a new one\n"


def test_a_session_deleted_meanwhile_is_told_and_the_next_message_begins_a_new_one(hermes, gone):
    ran = hermes(stdin="one\ntwo\nthree\n")

    assert (ran.status, ran.out) == (1, "echo 1: one\necho 1: three\n")
    assert ran.err == GONE
    assert [row["preview"] for row in listed(hermes)] == ["three"]


def test_a_command_in_a_session_deleted_meanwhile_says_so_too(hermes, gone):
    ran = hermes(stdin="one\n/title two\n/status\nthree\n")

    assert ran.out.splitlines()[-1] == "echo 1: three"
    assert "none yet; your next message begins one" in ran.out
    assert ran.err == f"{GONE}There is no session yet; send a message first.\n"


def test_a_session_deleted_while_its_turn_runs_is_told_as_gone(hermes, app, monkeypatch):
    ask = app.ask_async

    async def deleted_while_it_runs(text, source, *, entry, **more):
        if text != "one":
            return await ask(text, source, entry=entry, **more)
        app.delete_session(entry.lineage_id)
        raise LeaseLost(entry.lineage_id, 7)

    monkeypatch.setattr(app, "ask_async", deleted_while_it_runs)

    ran = hermes(stdin="one\ntwo\n")

    assert (ran.status, ran.out, ran.err) == (1, "echo 1: two\n", GONE)


def test_a_message_settled_by_a_reset_is_told_and_the_next_begins_a_new_session(hermes, app, monkeypatch):
    ask = app.ask_async

    async def first_is_settled(text, source, *, entry, **more):
        if text == "two":
            raise SessionNotFound(entry.lineage_id)
        return await ask(text, source, entry=entry, **more)

    monkeypatch.setattr(app, "ask_async", first_is_settled)

    ran = hermes(stdin="one\ntwo\nthree\n")

    assert ran.err == "hermes: this session was reset from elsewhere; your next message begins a new one\n"
    assert ran.out == "echo 1: one\necho 1: three\n"
    assert len(listed(hermes)) == 2


def test_help_names_the_way_out_under_the_other_commands(hermes):
    *commands, way_out = hermes(stdin="/help\n").out.splitlines()

    assert way_out.split()[0] == "/quit"
    assert way_out.index("leave") == next(line.index("what can be") for line in commands if "/help" in line)


def test_going_on_behind_a_failed_turn_says_what_to_do(hermes, app):
    def fail(turn):
        raise RuntimeError("no model today")

    entry = app.new_session(CHAT)
    with pytest.raises(AgentFailed):
        app.ask("hello", CHAT, entry=entry, agent=fail)

    ran = hermes("-r", entry.session_id, "-q", "again")
    after = hermes("-r", entry.session_id, "-q", "and again")

    assert "hermes: The last turn failed" in ran.err
    assert "send the message again" in ran.err
    assert "The last turn" not in after.err


def test_an_interrupt_between_the_end_of_a_task_and_of_its_loop_is_an_interrupt():
    async def nothing():
        await asyncio.to_thread(int)  # so that closing the runner has threads to wait for

    def interrupted_late(runner):
        loop = runner.get_loop()
        task = loop.create_task(nothing())
        task.add_done_callback(lambda _: signal.raise_signal(signal.SIGINT))
        loop.run_until_complete(task)

    with pytest.raises(KeyboardInterrupt), interrupts_win(), asyncio.Runner() as runner:
        interrupted_late(runner)


def test_a_runtime_error_of_the_work_stays_one():
    with pytest.raises(RuntimeError, match="broken"), interrupts_win():
        raise RuntimeError("broken")
