"""``sessions show REF --context``: what would be sent now, safe to print, and as data."""

from __future__ import annotations

import json

import pytest

from hermes_cli.columns import display_width
from hermes_cli.contexts import context_lines
from hermes_hookspecs.messages import Attachment
from hermes_hookspecs.ports.agent import AssistantStep
from hermes_hookspecs.source import SessionSource


@pytest.fixture
def talked(app, say):
    """A conversation with a picture whose name is hostile, and an answer of nothing; returns its session id."""
    source = say("first words", "noted").entry.source
    picture = Attachment(kind="image", name="\x1b[31mcat\n.png", sha256=app.attachments.put(b"cat"))

    async def silent(turn):
        yield AssistantStep(content="")

    return app.ask("look", source, agent=silent, attachments=(picture,)).entry.session_id


def test_the_context_is_shown_with_its_parts_and_what_was_repaired(hermes, talked):
    ran = hermes("sessions", "show", talked, "--context")

    assert ran.status == 0
    lines = ran.out.splitlines()
    assert lines[0] == f"context   {talked}"
    assert [line.split()[1:3] for line in lines if line.startswith("sent ")] == [
        ["conversation", "3"],
        ["attachments", "1"],
    ]
    assert "repaired  empty-answer, row " in ran.out
    assert "an answer without a text and without calls is not sent" in ran.out
    assert [line for line in lines if line.startswith(("user>", "assistant>", "user (attachments)>"))] == [
        "user> first words",
        "assistant> noted",
        "user> look",
        next(line for line in lines if line.startswith("user (attachments)> [image, “")),
    ]


def test_nothing_from_outside_reaches_the_terminal_as_an_escape(hermes, talked):
    assert "\x1b" not in hermes("sessions", "show", talked, "--context").out


def test_the_context_as_data_has_every_message(hermes, talked):
    record = json.loads(hermes("sessions", "show", talked, "--context", "--json").out)

    assert [row["role"] for row in record["messages"]] == ["user", "assistant", "user", "user"]
    assert [repair["kind"] for repair in record["repairs"]] == ["empty-answer"]
    assert record["tokens"] == sum(part["tokens"] for part in record["parts"])
    assert record["session_id"] == talked


@pytest.fixture
def compressed(app, say):
    """A long conversation in Chinese whose head is a summary, with a round of calls; returns its session id."""
    import asyncio

    from hermes_hookspecs.messages import ToolCall
    from hermes_hookspecs.ports.agent import ToolResult

    for number in range(12):
        entry = say(
            f"请帮我看第{number}个文件，路径是 src/日志/worker{number}.py，还没修好。" * 3, "已经修复了。" * 20
        ).entry

    async def working(turn):
        yield AssistantStep(content="", tool_calls=(ToolCall(id="a", name="查看", arguments='{"路径": "日志"}'),))
        yield ToolResult(call_id="a", name="查看", content="内容" * 60)
        yield AssistantStep(content="看完了")

    asyncio.run(app.compress_session(entry.lineage_id, entry.source))
    return app.ask("再看一遍", entry.source, agent=working).entry.session_id


@pytest.mark.parametrize("columns", [80, 120])
def test_no_line_passes_the_screen_whatever_the_script(app, compressed, columns):
    report = app.context_report(compressed)

    lines = list(context_lines(report, columns))

    assert max(map(display_width, lines)) <= columns
    assert max(map(display_width, lines)) > columns - 4
    sent = [line for line in lines if line.startswith("sent ")]
    assert [line.split()[1] for line in sent] == ["summary", "kept", "conversation"]
    assert len({display_width(line) for line in sent}) == 1
    left = next(line for line in lines if line.startswith("left out"))
    assert "messages: before the part that is kept" in left
    assert any("calls 查看" in line for line in lines)
    assert "".join(line.strip() for line in lines).count("内容" * 5) >= 1


def test_a_message_that_was_too_long_is_said_to_be_so(app, hermes):
    from hermes_hookspecs.errors import ContextOverflow

    def narrow(turn):
        if sum(len(row.content) for row in turn.messages) > 8000:
            raise ContextOverflow("too long", limit_tokens=2000)
        return "fine"

    source = SessionSource(platform="cli", chat_id="pts-9", user_id="me")
    session = app.ask("字" * 30_000, source, agent=narrow).entry.session_id

    ran = hermes("sessions", "show", session, "--context")

    assert "left out  1 message: even the last ones were too long for the model" in ran.out
    assert "the middle is left out here, and kept" in ran.out
    assert len(ran.out) < 9000


def test_a_session_that_is_not_there_is_said_so(hermes):
    ran = hermes("sessions", "show", "nobody", "--context")

    assert ran.status != 0
    assert "nobody" in ran.err
