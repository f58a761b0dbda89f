"""Chat on a terminal: prompt, keys, recap, and how to come back."""

from __future__ import annotations

import json
import re

import pytest

READY = "\x1b[?2004h"
"""What the prompt switches on when it takes keys: pasting in one piece."""


class Terminal:
    """One running chat."""

    def __init__(self, child):
        self.child = child
        self.shown = ""

    def ready(self):
        self.child.expect_exact(READY)
        self.shown += self.child.before
        return self

    def send(self, text):
        self.child.send(text)
        return self

    def expect(self, text):
        self.child.expect_exact(text)
        self.shown += self.child.before + self.child.after
        return self

    def end(self):
        import pexpect

        self.child.expect(pexpect.EOF)
        self.shown += self.child.before
        self.child.close()
        return self.child.exitstatus


@pytest.fixture
def chat(spawn):
    return lambda *arguments, **options: Terminal(spawn(*arguments, **options))


def listed(script):
    return json.loads(script("sessions", "list", "--all", "--json").out)


def plain(text):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "")


def test_a_conversation_is_held_left_and_taken_up_again_with_its_past(chat, script):
    first = chat("--agent", "echo").ready()
    first.send("hello\r").expect("hello").ready()
    first.send("/title plan\r").expect("plan").ready()
    first.send("\x04")
    assert first.end() == 0
    (row,) = listed(script)
    assert (
        f"Session {row['session_id']} (plan). Go on with: hermes -c   or: hermes -r {row['session_id']}" in first.shown
    )

    second = chat("-c", "plan", "--agent", "echo").ready()
    assert f"╭─ plan ({row['session_id']}) ─" in second.shown
    assert "│ You: hello" in second.shown
    assert "│ ── cli/default/pts-" in second.shown
    second.send("again\r").ready().send("/quit\r")

    assert second.end() == 0
    assert [(row["title"], row["message_count"]) for row in listed(script)] == [("plan", 4)]


def test_leaving_without_a_word_leaves_no_session(chat, script):
    terminal = chat().ready()

    terminal.send("\x04")

    assert terminal.end() == 0
    assert "Session" not in terminal.shown
    assert listed(script) == []


def test_a_chat_without_a_model_begins_with_one_line_that_says_how_to_configure_one(chat, script):
    pytest.importorskip("hermes_openai", reason="an agent with a model says what it lacks")
    terminal = chat(columns=300).ready()

    said = [line for line in plain(terminal.shown).splitlines() if "model" in line]
    terminal.send("hello\r").ready().send("\x04")

    assert terminal.end() == 0
    assert len(said) == 1
    assert said[0].startswith("hermes: for answers by a model, set [plugins.openai] model")
    assert plain(terminal.shown).count("for answers by a model") == 1


def test_each_start_is_a_new_session_and_continue_takes_the_terminals_own(chat, script):
    for question in ("one", "two"):
        terminal = chat("--agent", "echo").ready()
        terminal.send(f"{question}\r").ready().send("\x04")
        assert terminal.end() == 0

    assert len(listed(script)) == 2


def test_control_c_clears_the_line(chat, script):
    terminal = chat("--agent", "echo").ready()

    terminal.send("forget this").expect("forget this").send("\x03").ready()
    terminal.send("keep this\r").ready().send("\x04")

    assert terminal.end() == 0
    record = json.loads(script("sessions", "export").out)
    assert record["messages"][0]["content"] == "keep this"


def test_control_c_stops_the_answer_and_the_chat_goes_on(chat, script, toys):
    terminal = chat("--agent", "toy-waiting", env=toys).ready()

    terminal.send("hello\r").expect("begun\r\n").send("\x03").expect("(stopped)").ready()
    terminal.send("/status\r").expect("session ").ready().send("\x04")

    assert terminal.end() == 0
    record = json.loads(script("sessions", "export").out)
    assert record["messages"][-1]["kind"] == "closing"


def test_a_session_deleted_under_an_open_chat_is_told_and_the_chat_goes_on(chat, script):
    terminal = chat("--agent", "echo").ready()
    terminal.send("one\r").expect("echo 1: one").ready()
    script("sessions", "delete", listed(script)[0]["session_id"], "--yes")

    terminal.send("two\r").expect("this session is gone").ready()
    terminal.send("three\r").expect("echo 1: three").ready().send("\x04")

    assert terminal.end() == 0
    assert [row["preview"] for row in listed(script)] == ["three"]


def test_a_terminal_that_waits_says_for_whom(chat, script, start, toys):
    holder = start("-q", "hello", "--agent", "toy-waiting", env=toys)
    assert holder.stdout.readline() == b"begun\n"
    terminal = chat("-r", listed(script)[0]["session_id"], "--agent", "echo", columns=120).ready()

    terminal.send("me too\r").expect("(Ctrl-C only stops the waiting) for cli/default/run-").expect(
        f"(process {holder.pid} on "
    )
    holder.kill()
    terminal.expect("echo 2: me too").ready().send("\x04")

    assert terminal.end() == 0


def test_while_it_waits_the_status_line_says_that_control_c_stops_only_the_waiting(chat, script, start, toys):
    holder = start("-q", "hello", "--agent", "toy-waiting", env=toys)
    assert holder.stdout.readline() == b"begun\n"
    terminal = chat("-r", listed(script)[0]["session_id"], "--agent", "toy-waiting", columns=120, env=toys).ready()

    terminal.send("me too\r").expect("(Ctrl-C only stops the waiting)")
    holder.kill()
    terminal.expect("begun").send("\x03").expect("(stopped)").ready().send("\x04")

    assert terminal.end() == 0


def test_a_stop_that_was_typed_while_the_answer_was_written_is_not_taken_for_a_command(chat, script):
    terminal = chat("--agent", "echo").ready()

    terminal.send("hello\r/stop\r").expect("/stop came too late").ready()
    terminal.send("\x04")

    assert terminal.end() == 0


def test_the_recap_ends_with_what_to_do_where_the_last_message_has_no_answer(chat, script, start, toys):
    holder = start("-q", "hello", "--agent", "toy-waiting", env=toys)
    assert holder.stdout.readline() == b"begun\n"
    holder.kill()
    holder.wait(60)

    terminal = chat("-r", listed(script)[0]["session_id"], "--agent", "echo").ready()

    assert "The last turn was interrupted; send the message again to have it answered." in plain(terminal.shown)
    terminal.send("\x04")
    assert terminal.end() == 0


def test_pasted_lines_are_one_message(chat, script):
    terminal = chat("--agent", "echo").ready()

    terminal.send("\x1b[200~line one\nline two\x1b[201~").expect("line two").send("\r").ready().send("\x04")

    assert terminal.end() == 0
    assert json.loads(script("sessions", "export").out)["messages"][0]["content"] == "line one\nline two"


def test_a_failing_agent_does_not_end_the_chat(chat, toys):
    terminal = chat("--agent", "toy-raising", env=toys).ready()

    terminal.send("hello\r").expect("no model today").ready().send("\x04")

    assert terminal.end() == 0
    assert "Traceback" not in terminal.shown


def test_what_went_wrong_breaks_between_words_and_brings_no_recap(chat, toys):
    terminal = chat("--agent", "toy-raising", env=toys, columns=40).ready()

    terminal.send("hello\r").expect("today)").ready().send("\x04")

    assert terminal.end() == 0
    told = "hermes: toy-raising failed: an error in\nits code (RuntimeError: no model today)\n"
    assert told in plain(terminal.shown)
    assert "╭─" not in terminal.shown


def test_a_reply_breaks_between_words(chat):
    terminal = chat("--agent", "echo", columns=30).ready()

    terminal.send("hello\r").ready().send("/usage\r").expect("All conversations").ready().send("\x04")

    assert terminal.end() == 0
    assert "Here: nothing was reported\nAll conversations: nothing was\nreported\n" in plain(terminal.shown)


def test_resume_inside_the_chat_shows_the_past_of_the_other_session(chat, script):
    script("--agent", "echo", stdin="old question\n/title old\n")
    terminal = chat("--agent", "echo").ready()

    terminal.send("new question\r").ready().send("/resume old\r").expect("│ You: old question").ready().send("\x04")

    assert terminal.end() == 0
    assert "(old). Go on with" in terminal.shown


def test_a_minimal_recap_is_one_line(chat, script):
    script("--agent", "echo", stdin="old question\n/title old\n")

    terminal = chat("-c", "old", env={"HERMES_DISPLAY_RESUME_DISPLAY": "minimal"}).ready()

    assert "hermes: going on with old (" in terminal.shown
    assert "╭─" not in terminal.shown


@pytest.mark.parametrize("columns", [80, 120])
def test_a_list_on_a_terminal_fits_its_width(spawn, script, columns):
    import pexpect
    from wcwidth import wcswidth

    script("--agent", "echo", stdin="周报汇总\n/title " + "周报汇总 v2 " * 8 + "\n")
    script("--agent", "echo", stdin="plain text " * 12 + "\n")

    child = spawn("sessions", "list", columns=columns)
    child.expect(pexpect.EOF)
    lines = plain(child.before).splitlines()

    assert len(lines) == 3
    assert len({wcswidth(line[: line.rindex("  cli  ")]) for line in lines[1:]}) == 1
    assert {wcswidth(line) for line in lines[1:]} == {columns - len("LAST ACTIVE") + len("just now")}
    assert all("just now" in line for line in lines[1:])


def test_deleting_asks_first(spawn, script):
    import pexpect

    script("-q", "hello")
    session_id = listed(script)[0]["session_id"]

    child = spawn("sessions", "delete", session_id)
    child.expect_exact("for good? [y/N] ")
    child.send("y\r")
    child.expect(pexpect.EOF)

    assert listed(script) == []
