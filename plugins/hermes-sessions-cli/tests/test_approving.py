"""Dangerous calls at a terminal: a person is asked, and decides. A real terminal, a store on disk."""

from __future__ import annotations

import json
import re
import signal

import pytest

from hermes_cli.approving import QUESTION, request_lines
from hermes_cli.terminal import source_of
from hermes_core.app import open_app
from hermes_hookspecs.approvals import MOST_SHOWN, OPEN, Approval
from hermes_hookspecs.source import SessionSource

QUESTION_SHOWN = QUESTION.rstrip()
READY = "\x1b[?2004h"


class Chat:
    """A chat with the agent that asks, at its prompt."""

    def __init__(self, child):
        self.child = child
        self.child.expect_exact(READY)

    def say(self, text):
        self.child.send(f"{text}\r")
        return self

    def asked(self, what):
        self.child.expect_exact("May remove be called (write)?")
        self.child.expect_exact(f"path: {what}")
        self.child.expect_exact(QUESTION_SHOWN)
        return self

    def press(self, keys):
        self.child.send(keys)
        return self

    def expect(self, text):
        self.child.expect_exact(text)
        return self

    def ready(self):
        self.child.expect_exact(READY)
        return self

    def leave(self):
        import pexpect

        self.child.send("\x04")
        self.child.expect(pexpect.EOF)
        self.child.close()
        return self.child.exitstatus


@pytest.fixture
def chat(spawn, toys):
    return lambda **env: Chat(spawn("--agent", "toy-asking", env={**toys, **env}, columns=100))


@pytest.fixture
def app_of_script(tmp_path):
    """Return a function that runs something on the script's profile from outside, as its operator."""

    def run(act):
        with open_app(tmp_path / "home", plugins=False, environ={}) as app:
            return act(app, source_of("elsewhere"))

    return run


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ("y\r", "told: x is gone"),
        ("yes\r", "told: x is gone"),
        ("n\r", "said no."),
        ("\r", "said no."),
        ("\x03", "said no."),
        ("\x04", "said no."),
    ],
    ids=["y", "yes", "n", "enter", "control-c", "control-d"],
)
def test_the_person_decides_and_the_turn_goes_on(chat, keys, told):
    terminal = chat().say("x").asked("x")

    terminal.press(keys).expect(told)

    assert terminal.ready().leave() == 0


def test_what_is_no_answer_is_asked_again(chat):
    terminal = chat().say("x").asked("x")

    terminal.press("perhaps\r").expect(QUESTION_SHOWN).press("y\r").expect("told: x is gone")

    assert terminal.ready().leave() == 0


def test_always_holds_for_the_session_and_for_no_other(chat):
    terminal = chat().say("one two").asked("one").press("a\r").expect("told: one is gone").expect("told: two is gone")
    terminal.ready().say("three").expect("told: three is gone").ready()

    terminal.say("/new").ready().say("four").asked("four").press("n\r").expect("said no.")

    assert terminal.ready().leave() == 0


def test_once_holds_for_one_call(chat):
    terminal = chat().say("one two").asked("one").press("y\r").expect("told: one is gone")

    terminal.asked("two").press("n\r").expect("said no.")

    assert terminal.ready().leave() == 0


def test_what_was_typed_before_the_question_answers_nothing(chat):
    terminal = chat()

    terminal.press("x\ry\r").asked("x").press("n\r").expect("said no.")

    terminal.asked("y").press("n\r").expect("said no.")  # it was the next message, and not lost
    assert terminal.ready().leave() == 0


def test_an_answer_from_elsewhere_takes_the_question_away(chat, app_of_script):
    terminal = chat().say("x").asked("x")

    app_of_script(lambda app, source: app.oversight.answer("", source, approve=True))

    assert terminal.expect("told: x is gone").expect("nobody waits for this answer any more").ready().leave() == 0


def test_a_request_whose_time_is_over_is_refused_and_the_question_goes_away(chat):
    terminal = chat(HERMES_AGENT_APPROVAL_TIMEOUT_S="5").say("x").asked("x")

    terminal.expect("nobody answered within 5 s").expect("nobody waits for this answer any more")

    assert terminal.ready().leave() == 0


def test_a_signal_from_outside_stops_the_turn_and_takes_the_question_away(chat):
    terminal = chat().say("x").asked("x")

    terminal.child.kill(signal.SIGINT)

    terminal.expect("(stopped)").ready()
    assert terminal.leave() == 0


def test_where_nobody_can_be_asked_the_call_is_refused_in_words(script, toys):
    asked = script("-q", "x", "--agent", "toy-asking", env=toys)
    piped = script("--agent", "toy-asking", env=toys, stdin="x\n")

    for ran in (asked, piped):
        assert ran.status == 0
        assert "told: Error: remove was not called: it needs the approval of a person" in ran.out


def test_each_call_is_on_record_with_who_decided(chat, app_of_script):
    terminal = chat().say("one two three").asked("one").press("n\r").asked("two").press("a\r")
    terminal.expect("told: three is gone").ready().leave()

    settled = app_of_script(lambda app, _: [(one.status, bool(one.answered_by)) for one in app.store.approvals()])

    assert settled == [("approved", True), ("approved", True), ("denied", True)]


# ------------------------------------------------------------------ what is shown


def request(arguments, tool_name="remove"):
    return Approval(
        id="a1",
        lineage_id="l1",
        session_id="s1",
        turn_id="t1",
        call_id="c1",
        tool_name=tool_name,
        effect="write",
        arguments=arguments,
        status=OPEN,
        asked_at=0,
        expires_at=1,
        settled_at=None,
        session_key=None,
        source=SessionSource(platform="cli", chat_id="pts-1", user_id="ming"),
    )


def test_every_argument_stands_behind_its_name_in_readable_text():
    written = json.dumps({"path": "/tmp/周报.md", "force": True})

    assert request_lines(request(written), 80) == [
        "May remove be called (write)?",
        "  path: /tmp/周报.md",
        "  force: true",
    ]


def test_no_argument_can_pass_for_another_one_or_command_the_terminal():
    written = json.dumps({"command": "true\nforce: \x1b[2Jno", "na\nme": "\u202eevil"})

    lines = request_lines(request(written, "ru\x1bn"), 80)

    assert lines == [
        "May ru␛n be called (write)?",
        "  command: true",
        "      force: ␛[2Jno",
        "  na me: \\u202eevil",
    ]


@pytest.mark.parametrize("written", ["not json", "[1, 2]", '"text"'])
def test_what_is_no_object_is_shown_as_it_was_written(written):
    assert request_lines(request(written), 80)[1:] == [f"  {written}"]


def test_a_call_without_arguments_is_one_line():
    assert len(request_lines(request("{}"), 80)) == len(request_lines(request(""), 80)) == 1


def test_long_arguments_fit_the_terminal_and_what_is_cut_is_said():
    lines = request_lines(request("周" * MOST_SHOWN), 80)

    assert all(re.fullmatch(r" *周+", line) for line in lines[1:-1])
    assert all(len(line.strip()) * 2 + (len(line) - len(line.strip())) <= 80 for line in lines[1:-1])
    assert lines[-1] == f"  (only the first {MOST_SHOWN} characters are shown)"
