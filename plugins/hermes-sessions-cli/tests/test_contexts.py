"""``sessions show REF --context``: what would be sent now, safe to print, and as data."""

from __future__ import annotations

import json

import pytest

from hermes_hookspecs.messages import Attachment
from hermes_hookspecs.ports.agent import AssistantStep


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
    assert "sent      conversation: 3 messages, about " in ran.out
    assert "sent      attachments: 1 message, about " in ran.out
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


def test_a_session_that_is_not_there_is_said_so(hermes):
    ran = hermes("sessions", "show", "nobody", "--context")

    assert ran.status != 0
    assert "nobody" in ran.err
