"""The plugin guide's part on serving says what becomes of a delivery, and how to test a sender of one's own."""

from __future__ import annotations

import asyncio

import pytest
from docs_pages import ROOT

from hermes_core import SessionSource, open_app
from hermes_hookspecs import MessageEvent
from hermes_hookspecs.errors import AuthFailed, Rejected, RetryLater
from hermes_hookspecs.files import OutgoingFile
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.ports.platform import Deferred, PlatformAbilities, Sent, ServedEntrance
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.testing.agents import ScriptedAgent, call, say
from hermes_hookspecs.testing.platform import RecordingSender, arrived_but
from hermes_hookspecs.tools import tool

GUIDE = ROOT / "docs" / "plugin-guide.md"
PATIENCE_S = 30
QUICK = {"storage.backend": "memory", "inbox.batch_window_s": 0.0, "agent.runner": "echo"}
FAR_MS = 4_000_000_000_000
RESULTS = {
    "`Sent`": Sent(platform_message_id="m-1"),
    "`Deferred(at)`": Deferred(reason="quiet hours", at=FAR_MS),
    "`Deferred()`": Deferred(reason="write first"),
    "`RetryLater`": RetryLater("busy", after_s=3600),
    "`RetryLater(maybe_sent)`": RetryLater("lost", after_s=3600, maybe_sent=True),
    "`AuthFailed`": AuthFailed("token"),
    "`Rejected`": Rejected("too rude"),
    "anything else": OSError("?"),
}
COUNTED = {"`RetryLater`", "`RetryLater(maybe_sent)`", "anything else"}
UNCERTAIN = {"`RetryLater(maybe_sent)`", "anything else"}


def event(app, text, number=1, chat="oc_1"):
    source = SessionSource(platform="fake", chat_id=chat, user_id="ou_1", message_id=f"om_{number}")
    identity = f"fake:{chat}:om_{number}"
    return MessageEvent(source=source, text=text, identities=(identity,), received_at=app.clock.now())


async def until(condition):
    """Give way to the others until ``condition()`` holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.005)


async def serve_until(app, served, condition):
    """Serve until ``condition()`` holds."""
    serving = asyncio.create_task(app.work([served]))
    await until(condition)
    serving.cancel()
    await asyncio.wait({serving})


def _rows():
    text = GUIDE.read_text(encoding="utf-8").partition("| `send` ends with |")[2].partition("\n\n")[0]
    rows = [row for row in text.splitlines() if row.startswith("| ")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows if "---" not in row]


@tool(effect="idempotent")
def chart(values: list[int]) -> OutgoingFile:
    """Draw a chart for the person.

    :param values: from left to right.
    """
    lines = "\n".join("#" * value for value in values)
    return OutgoingFile(name="chart.txt", data=lines.encode())


class ChartPlugin:
    @hookimpl
    def hermes_tools(self):
        return (chart,)


def test_a_file_that_a_tool_returns_goes_along_with_the_answer(tmp_path):
    sender = RecordingSender()
    abilities = PlatformAbilities(max_file_bytes=1_000_000)
    served = ServedEntrance(entrance=Entrance("fake"), sender=sender, abilities=abilities)
    agent = ScriptedAgent(call("chart", "c1", '{"values": [1, 3]}'), say("there it is"))

    with open_app(tmp_path, overrides=QUICK, environ={}) as app:
        app.hooks.host.register("chart", ChartPlugin())
        asyncio.run(app.accept([event(app, "hello")]))
        asyncio.run(app.work([served], agent=agent, until_idle=True))

    assert [part.file or part.text for part in sender.received()] == ["there it is", "chart.txt"]
    assert sender.calls[1].media.data == b"#\n###"


def test_a_part_whose_connection_broke_too_late_says_that_it_may_be_a_repeat(tmp_path):
    sender = RecordingSender(answers=[arrived_but(RetryLater("connection lost", after_s=0.001, maybe_sent=True))])
    served = ServedEntrance(entrance=Entrance("fake"), sender=sender)

    with open_app(tmp_path, overrides=QUICK, environ={}) as app:
        asyncio.run(app.accept([event(app, "hello")]))
        asyncio.run(serve_until(app, served, lambda: len(sender.texts()) == 2))

    assert sender.texts() == ["echo 1: hello", "(may be a repeat) echo 1: hello"]


def test_the_table_has_a_row_for_all_that_a_sender_can_say():
    assert [row[0] for row in _rows()] == list(RESULTS)


class Moody:
    """A sender that says one thing of the first answer, and sends all others."""

    def __init__(self, said):
        self.said, self.asked = said, False

    async def send(self, part):
        if "first" not in part.text:
            return Sent()
        self.asked = True
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


async def scene(app, sender):
    """Let the first answer be sent, then one behind it and one to another address; leave when all had their chance."""
    await app.accept([event(app, "first")])
    serving = asyncio.create_task(app.work([ServedEntrance(entrance=Entrance("fake"), sender=sender)]))
    await until(lambda: sender.asked and app.outbox.list()[0].status != "sending")
    await app.accept([event(app, "behind", 2), event(app, "elsewhere", 3, chat="oc_2")])
    await until(lambda: len(app.outbox.list()) == 3)
    serving.cancel()  # what may go goes out before it has left
    await asyncio.wait({serving})


@pytest.mark.parametrize("row", _rows(), ids=lambda row: row[0].strip("`"))
def test_what_a_sender_says_does_what_the_table_says(row, tmp_path):
    said, status, _, address, account = row
    patient = QUICK | {"outbox.retry_first_s": 600.0}

    with open_app(tmp_path, overrides=patient, environ={}) as app:
        asyncio.run(scene(app, Moody(RESULTS[said])))
        found = {one.text.partition(": ")[2]: one for one in app.outbox.list()}

    assert f"`{found['first'].status}`" == status
    assert (found["first"].failures > 0) == (said in COUNTED)
    assert found["first"].uncertain == (said in UNCERTAIN)
    assert {"sent": "goes on", "waiting": "waits"}[found["behind"].status] == address
    assert (found["elsewhere"].status == "waiting") == account.startswith("pauses")


def test_a_message_that_is_delivered_again_is_a_duplicate_with_the_id_of_the_first(tmp_path):
    with open_app(tmp_path, overrides=QUICK, environ={}) as app:
        (first,) = asyncio.run(app.accept([event(app, "hello")]))
        (again,) = asyncio.run(app.accept([event(app, "hello")]))

    assert (first.duplicate, again.duplicate, again.id) == (False, True, first.id)
