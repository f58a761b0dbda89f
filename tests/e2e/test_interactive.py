"""A person at a terminal."""

from __future__ import annotations

import re

import pytest

pexpect = pytest.importorskip("pexpect")

READY = "\x1b[?2004h"
"""What the prompt switches on when it takes keys: pasting in one piece."""
CONTROLS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[=>]|\x1b\][^\x07]*\x07|\r")

SLOW = """
import asyncio

from hermes_hookspecs.ports.agent import AssistantStep, Progress


class Slow:
    name, model = "slow", None

    async def run(self, turn):
        yield Progress(label="thinking hard")
        await asyncio.sleep(600)
        yield AssistantStep(content="never")


class Plugin:
    @hookimpl
    def hermes_agents(self):
        return (Slow(),)
"""


def plain(text):
    return CONTROLS.sub("", text)


def say(child, text, answer):
    """Type a line and wait for what comes of it."""
    child.expect_exact(READY)
    child.send(f"{text}\r")
    child.expect_exact(answer)


def leave(child):
    child.expect_exact(READY)
    child.sendeof()
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus


def test_start_talk_title_leave_and_go_on(spawn, hermes):
    first = spawn("--agent", "echo")
    first.expect_exact("/help")
    say(first, "hello there", "echo 1: hello there")
    say(first, "/title plan", "Title: plan")
    say(first, "/status", "plan")
    status = leave(first)
    farewell = plain(first.before)

    (listed,) = hermes.json("sessions", "list")
    assert status == 0
    assert (listed["title"], listed["message_count"], listed["source"]) == ("plan", 2, "cli")
    assert listed["session_id"] in farewell
    assert "hermes -c" in farewell

    second = spawn("--agent", "echo", "-c", "plan")
    second.expect_exact(READY)
    recap = plain(second.before)
    second.send("again\r")
    second.expect_exact("echo 2: again")
    assert leave(second) == 0

    assert "hello there" in recap
    assert "echo 1: hello there" in recap
    assert "plan" in recap
    (listed,) = hermes.json("sessions", "list")
    assert listed["message_count"] == 4


def test_bare_continue_shows_the_recap_and_goes_on(spawn, hermes):
    first = spawn("--agent", "echo")
    say(first, "remember me", "echo 1: remember me")
    leave(first)

    second = spawn("-c", "--agent", "echo")
    second.expect_exact(READY)
    recap = plain(second.before)
    second.send("again\r")
    second.expect_exact("echo 2: again")
    leave(second)

    assert "remember me" in recap
    assert len(hermes.json("sessions", "list")) == 1


def test_each_start_is_a_new_session_and_new_begins_another(spawn, hermes):
    first = spawn("--agent", "echo")
    say(first, "one", "echo 1: one")
    say(first, "/new second", "Your next message begins a new session")
    say(first, "two", "echo 1: two")
    leave(first)
    second = spawn("--agent", "echo")
    say(second, "three", "echo 1: three")
    leave(second)

    listed = hermes.json("sessions", "list")
    assert sorted(row["preview"] for row in listed) == ["one", "three", "two"]
    assert {row["title"] for row in listed} == {None, "second"}


def test_quit_leaves_and_nothing_said_is_nothing_kept(spawn, hermes):
    child = spawn("--agent", "echo")
    child.expect_exact(READY)
    child.send("/quit\r")
    child.expect(pexpect.EOF)
    child.close()

    assert child.exitstatus == 0
    assert hermes.json("sessions", "list", "--all") == []


def test_ctrl_c_at_the_prompt_clears_the_line(spawn, hermes):
    child = spawn("--agent", "echo")
    child.expect_exact(READY)
    child.send("not this")
    child.expect_exact("this")
    child.sendintr()
    say(child, "but this", "echo 1: but this")
    assert leave(child) == 0

    (listed,) = hermes.json("sessions", "list")
    assert listed["preview"] == "but this"


def test_ctrl_c_while_a_slow_answer_is_made_stops_it_and_the_talk_goes_on(spawn, hermes, site):
    site("slow", SLOW)
    child = spawn("--agent", "slow", env=site.env)
    child.expect_exact(READY)
    child.send("take your time\r")
    child.expect_exact("thinking hard")
    child.sendintr()
    child.expect_exact("(stopped)")
    say(child, "/title stopped", "Title: stopped")
    assert leave(child) == 0

    assert hermes("-c", "stopped", "-q", "and now?", "--agent", "echo").out == "echo 2: and now?\n"
    (exported,) = hermes.exported()
    assert [row["role"] for row in exported["messages"]] == ["user", "assistant", "user", "assistant"]
    assert exported["messages"][1]["kind"] == "closing"
    assert hermes.json("sessions", "list")[0].get("locked_by") is None


def test_an_answer_that_commands_the_terminal_is_shown_harmless(spawn, hermes):
    hermes("-q", "evil \x1b]0;owned\x07 \x1b[2J text", "--agent", "echo")

    child = spawn("sessions", "list")
    shown = child.read()

    assert "\x1b" not in shown.replace("\x1b[0m", "").replace("\x1b[1m", "")
    assert "owned" in shown
