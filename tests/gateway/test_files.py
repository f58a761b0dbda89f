"""A file from the tool or agent that makes it to its reader: once, with the answer, through kills and retries."""

from __future__ import annotations

import asyncio
from hashlib import sha256

import pytest

from hermes_hookspecs.errors import AttachmentRefused
from hermes_hookspecs.files import FileResult, OutgoingFile
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.messages import Attachment, ToolCall
from hermes_hookspecs.outbox import SENT
from hermes_hookspecs.ports.agent import AssistantStep, TextDelta, ToolResult
from hermes_hookspecs.ports.platform import Deferred, PlatformAbilities, Sent
from hermes_hookspecs.principal import operator
from hermes_hookspecs.testing.agents import ScriptedAgent, bring, call, echo, fail, say
from hermes_hookspecs.tools import tool

CHART = OutgoingFile(name="chart.png", data=b"PNG")
REPORT = OutgoingFile(name="report.pdf", data=b"PDF")


@tool(effect="idempotent")
def draw() -> OutgoingFile:
    """Draw a chart."""
    return CHART


@tool(effect="idempotent")
def report() -> FileResult:
    """Write a report."""
    return FileResult(files=(REPORT,), text="three pages")


class Tools:
    @hookimpl
    def hermes_tools(self):
        return (draw, report)


@pytest.fixture
def hall(open_hall):
    hall = open_hall(plugins=[Tools()])
    hall.abilities = PlatformAbilities(max_file_bytes=1_000_000)
    return hall


def seen(hall):
    return [part.file or part.text for part in hall.sender.received()]


def attached(hall):
    rows = hall.app.store.messages(hall.lineage(), operator())
    return [(row.role, [one.name for one in row.attachments]) for row in rows if row.attachments]


def kept(hall, file=CHART):
    """Keep a file as a process did that has died since; return what its row names."""
    number = hall.app.attachments.put(file.data, lineage_id=hall.app.get_or_create_session(hall.source()).lineage_id)
    return Attachment(kind=file.kind, name=file.name, media_type=file.media_type, size=file.size, sha256=number)


def test_what_a_tool_makes_arrives_behind_the_answer(hall):
    hall.say("draw it")

    hall.work(ScriptedAgent(call("draw", "c1"), call("report", "c2"), say("there they are")))

    assert seen(hall) == ["there they are", "chart.png", "report.pdf"]
    assert attached(hall) == [("tool", ["chart.png"]), ("tool", ["report.pdf"])]
    (delivery,) = hall.app.store.deliveries()
    assert (delivery.status, [one.name for one in delivery.files]) == (SENT, ["chart.png", "report.pdf"])
    received = {part.file: part.sha256 for part in hall.sender.received() if part.file}
    assert received == {one.name: sha256(one.data).hexdigest() for one in (CHART, REPORT)}


def test_the_model_is_told_what_becomes_of_its_files(hall):
    hall.say("draw it")

    hall.work(ScriptedAgent(call("draw", "c1"), call("report", "c2"), say("there")))

    results = [content for role, content in hall.rows() if role == "tool"]
    assert results == [
        "[chart.png, 3 bytes] goes to the person with your answer.",
        "three pages\n[report.pdf, 3 bytes] goes to the person with your answer.",
    ]


def test_an_agent_brings_files_itself_and_needs_no_words(hall):
    hall.say("draw it")

    hall.work(ScriptedAgent(bring(CHART, REPORT)))

    assert seen(hall) == ["chart.png", "report.pdf"]
    assert attached(hall) == [("assistant", ["chart.png", "report.pdf"])]


def test_the_same_file_twice_arrives_once(hall):
    hall.say("draw it")

    hall.work(ScriptedAgent(call("draw", "c1"), call("draw", "c2"), bring(CHART, content="done")))

    assert seen(hall) == ["done", "chart.png"]


def test_files_stay_with_their_own_answer(hall):
    hall.say("draw it")
    hall.work(ScriptedAgent(call("draw", "c1"), say("there")))
    hall.say("thanks")

    hall.work(ScriptedAgent(echo()))

    assert seen(hall) == ["there", "chart.png", "thanks"]


def test_a_file_of_a_turn_that_died_arrives_with_the_answer_of_its_retry_once(hall):
    hall.die("draw it", calls=[("c1", "draw", "idempotent")], results=[("c1", "drawn", kept(hall))])

    hall.work(ScriptedAgent(say("there it is")))
    hall.work(ScriptedAgent(say("nothing more")))

    assert hall.turns() == [("interrupted", 1), ("done", 2)]
    assert seen(hall) == ["there it is", "chart.png"]


def test_a_file_that_a_retry_makes_again_arrives_once(hall):
    hall.die("draw it", calls=[("c1", "draw", "idempotent")], results=[("c1", "drawn", kept(hall))])

    hall.work(ScriptedAgent(call("draw", "c2"), say("there it is")))

    assert seen(hall) == ["there it is", "chart.png"]


def test_a_file_of_a_turn_that_failed_is_not_sent_and_not_remembered(hall):
    hall.say("draw it")
    hall.work(ScriptedAgent(call("draw", "c1"), fail(RuntimeError("the model is away"))))
    hall.say("again")

    hall.work(ScriptedAgent(echo()))

    assert "chart.png" not in seen(hall)
    assert seen(hall)[-1] == "again"


def test_what_was_shown_of_an_answer_that_is_files_alone_ends_as_the_line_of_the_first(open_hall):
    hall = open_hall({"gateway.stream_interval_s": 0.02})
    hall.abilities = PlatformAbilities(max_file_bytes=1_000_000, edits=True)
    edits = []

    async def edit(part, message_id):
        edits.append((part.text, part.is_draft))
        return Sent(platform_message_id=message_id)

    async def agent(turn):
        yield TextDelta(text="Let me draw.")
        async with asyncio.timeout(20):
            while not hall.app.store.states("streaming", now=hall.clock.now()):  # noqa: ASYNC110 - in the store
                await asyncio.sleep(0.005)
        yield AssistantStep(content="Let me draw.", tool_calls=(ToolCall(id="c1", name="draw", effect="read"),))
        yield ToolResult(call_id="c1", name="draw", content="drawn", files=(await turn.outgoing.add(CHART),))
        yield AssistantStep(content="")

    hall.sender.edit = edit
    hall.say("draw it")

    hall.work(agent)

    assert seen(hall) == ["Let me draw.", "chart.png"]
    assert edits == [("[chart.png, 3 bytes]", False)]
    assert hall.app.store.states("streaming", now=hall.clock.now()) == ()


def test_bytes_stay_until_they_are_sent(hall):
    hall.say("draw it")
    hall.sender.then(Deferred(reason="later", at=hall.clock.now() + 3_600_000))
    hall.work(ScriptedAgent(bring(CHART)))
    assert seen(hall) == []

    hall.app.maintain()
    swept = hall.app.attachments.sweep(lambda _: True, older_than_s=-1)
    (delivery,) = hall.app.store.deliveries()
    hall.app.outbox.retry(delivery.id)
    hall.work()

    assert (swept, seen(hall)) == (0, ["chart.png"])


@pytest.mark.parametrize(
    ("settings", "result"),
    [
        ({"outbox.max_file_bytes": 2}, "it has 3 bytes, the most is 2 bytes ([outbox] max_file_bytes)"),
        ({"outbox.max_files": 0}, "no files can be sent from here"),
        ({"outbox.max_file_bytes": 0}, "no files can be sent from here"),
        ({"attachments.max_bytes": 2}, "an attachment of 3 bytes was not taken; the most is 2"),
    ],
)
def test_a_limit_is_told_to_the_model_in_one_line_and_the_answer_goes(open_hall, settings, result):
    hall = open_hall(settings, plugins=[Tools()])
    hall.abilities = PlatformAbilities(max_file_bytes=1_000_000)
    hall.say("draw it")

    hall.work(ScriptedAgent(call("draw", "c1"), say("sorry")))

    (said,) = [content for role, content in hall.rows() if role == "tool"]
    assert said.startswith("Error: ")
    assert said.endswith(result)
    assert seen(hall) == ["sorry"]


def test_an_answer_brings_so_many_files_and_no_more(open_hall):
    hall = open_hall({"outbox.max_files": 1}, plugins=[Tools()])
    hall.abilities = PlatformAbilities(max_file_bytes=1_000_000)
    hall.say("draw it")

    hall.work(ScriptedAgent(call("draw", "c1"), call("report", "c2"), call("draw", "c3"), say("one")))

    results = [content for role, content in hall.rows() if role == "tool"]
    assert results[1] == (
        "three pages\nError: report.pdf was not taken: an answer brings at most 1 files ([outbox] max_files)"
    )
    assert results[2] == results[0]
    assert seen(hall) == ["one", "chart.png"]


def test_files_of_one_name_and_size_count_each(open_hall):
    hall = open_hall({"outbox.max_files": 2})
    hall.abilities = PlatformAbilities(max_file_bytes=1_000_000)
    said = []

    async def agent(turn):
        adding = [turn.outgoing.add(OutgoingFile(name="chart.png", data=data)) for data in (b"1", b"2", b"3", b"1")]
        said.extend(await asyncio.gather(*adding, return_exceptions=True))
        yield AssistantStep(content="there", files=tuple(one for one in said if isinstance(one, Attachment)))

    hall.say("draw it")
    hall.work(agent)

    assert [type(one) for one in said].count(AttachmentRefused) == 1
    assert seen(hall) == ["there", "chart.png", "chart.png"]


def test_a_path_in_an_answer_sends_nothing(hall, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("the password")
    hall.say(f"MEDIA:{secret}")

    hall.work(ScriptedAgent(say(f"MEDIA:{secret} [file]({secret})")))

    assert seen(hall) == [f"MEDIA:{secret} [file]({secret})"]


def test_what_was_not_added_in_the_turn_fails_it(hall):
    stranger = Attachment(kind="image", name="chart.png", media_type="image/png", size=3, sha256="0" * 64)

    async def agent(turn):
        yield AssistantStep(content="there", files=(stranger,))

    hall.say("draw it")
    hall.work(agent)

    assert hall.turns() == [("failed", 1)]
    assert "could not be answered" in seen(hall)[0]


def test_who_waits_for_the_answer_gets_the_files_with_it(hall):
    async def agent(turn):
        yield AssistantStep(content="there", files=(await turn.outgoing.add(CHART),))

    result = hall.app.ask("draw it", hall.source(), agent=agent)

    assert (result.text, [one.name for one in result.files]) == ("there", ["chart.png"])
    assert hall.app.attachments.get(result.files[0].sha256) == CHART.data
    assert hall.app.store.deliveries() == ()


def test_erasing_a_conversation_takes_its_files_along(hall):
    hall.say("draw it")
    hall.work(ScriptedAgent(call("draw", "c1"), say("there")))

    hall.app.delete_session(hall.lineage())

    assert hall.app.attachments.get(sha256(CHART.data).hexdigest()) is None
    assert hall.app.store.deliveries() == ()
