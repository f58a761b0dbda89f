"""The answer of a turn, printed as it is written."""

from __future__ import annotations

from io import StringIO
from types import SimpleNamespace

import pytest

from hermes_cli.answers import AnswerPrinter, StatusLine
from hermes_hookspecs.messages import ToolCall
from hermes_hookspecs.ports.agent import AssistantStep, Progress, TextDelta, ToolResult


def printed(*events, text=""):
    out = StringIO()
    printer = AnswerPrinter(out, StatusLine(StringIO()))
    for event in events:
        printer.event(event)
    printer.finish(SimpleNamespace(text=text))
    return out.getvalue()


def test_pieces_are_printed_as_they_come():
    out = StringIO()
    printer = AnswerPrinter(out, StatusLine(StringIO()))

    printer.event(TextDelta(text="Hel"))

    assert out.getvalue() == "Hel"
    printer.event(TextDelta(text="lo"))
    assert out.getvalue() == "Hello"


def test_an_answer_that_came_in_pieces_is_not_printed_again():
    events = (TextDelta(text="Hel"), TextDelta(text="lo"), AssistantStep(content="Hello"))

    assert printed(*events, text="Hello") == "Hello\n"


def test_an_answer_without_pieces_is_printed_once():
    assert printed(AssistantStep(content="Hello"), text="Hello") == "Hello\n"
    assert printed(text="Hello") == "Hello\n"


def test_what_is_said_before_a_tool_stands_on_a_line_of_its_own():
    events = (
        TextDelta(text="Let me look."),
        AssistantStep(content="Let me look.", tool_calls=(ToolCall(id="1", name="look"),)),
        ToolResult(call_id="1", name="look", content="42"),
        AssistantStep(content="It is 42."),
    )

    assert printed(*events, text="It is 42.") == "Let me look.\nIt is 42.\n"


def test_an_answer_that_ends_its_line_gets_no_empty_one():
    assert printed(text="Hello\n") == "Hello\n"
    assert printed(TextDelta(text="Hello\n"), AssistantStep(content="Hello\n"), text="Hello\n") == "Hello\n"


def test_an_empty_answer_is_an_empty_line():
    assert printed(text="") == "\n"


def test_escapes_in_an_answer_are_shown_not_obeyed():
    assert printed(TextDelta(text="\x1b"), TextDelta(text="[2J"), text="\x1b[2J") == "␛[2J\n"


def test_the_status_line_goes_away_before_the_answer():
    screen = StringIO()
    status = StatusLine(screen, 80)
    printer = AnswerPrinter(screen, status)

    printer.event(Progress(label="searching"))
    status.show(f"... {printer.label}")
    printer.event(TextDelta(text="found"))

    assert screen.getvalue() == "\r\x1b[K\x1b[2m... searching\x1b[0m\r\x1b[Kfound"
    assert printer.writing


def test_a_stream_that_is_no_terminal_gets_no_status():
    screen = StringIO()

    StatusLine(screen).show("busy")

    assert screen.getvalue() == ""


class Broken(StringIO):
    def write(self, text):
        raise BrokenPipeError


def test_an_output_that_breaks_is_told_at_the_end_and_not_to_the_agent():
    printer = AnswerPrinter(Broken(), StatusLine(StringIO()))

    printer.event(TextDelta(text="Hel"))
    printer.event(TextDelta(text="lo"))

    with pytest.raises(BrokenPipeError):
        printer.finish(SimpleNamespace(text="Hello"))
