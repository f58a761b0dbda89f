"""What a command says in the name of whoever typed it: a message, in its conversation, whatever it looks like."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.ports.agent import AssistantStep
from hermes_hookspecs.ports.platform import ServedEntrance
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import Entrance, SessionSource
from hermes_hookspecs.testing.platform import RecordingSender

ALL = operator()
CHAT = SessionSource(platform="feishu", chat_id="oc_1", user_id="ou_1", chat_type="dm")
FEISHU = Entrance("feishu")
NUMBERS = count(1)


async def accept(app, *texts, source=CHAT):
    events = [
        MessageEvent(source=source, text=text, received_at=app.clock.now(), identities=(f"om_{next(NUMBERS)}",))
        for text in texts
    ]
    await app.accept(events)


def work(app, *texts, agent=None):
    """Accept messages and serve until nothing is left; return what was sent."""
    sender = RecordingSender()

    async def run():
        await accept(app, *texts)
        served = [ServedEntrance(entrance=FEISHU, sender=sender)]
        await asyncio.wait_for(app.work(served, agent=agent, until_idle=True), 30)

    asyncio.run(run())
    return sender.texts()


def said(app, text):
    """Return in how many rows of all conversations a person's text stands."""
    found = app.store.summaries(ALL)
    rows = [row for one in found for row in app.store.messages(one.lineage_id, ALL)]
    return sum(row.role == "user" and row.content == text for row in rows)


@pytest.mark.parametrize("text", ["/new", "/stop", "/nothing-like-that", "start over"])
def test_what_looks_like_a_command_is_said_and_not_run(profile, text):
    app = profile({"inbox.batch_window_s": 0, "session_reset.reset_triggers": ["/new", "start over"]})
    work(app, "hello")

    answers = work(app, f"/steer {text}")

    assert answers[1:] == [f"echo 2: {text}"]
    assert said(app, text) == 1


@pytest.mark.parametrize("earlier", ["/steer go on", "/retry"])
@pytest.mark.parametrize("later", ["/new", "/reset plan", "/resume other"])
def test_what_was_said_before_a_reset_does_not_begin_the_next_conversation(profile, earlier, later):
    """Its row is younger than that of the reset, which waited already when the earlier command ran."""
    app = profile({"inbox.batch_window_s": 0})
    for text in ("the other", "/title other", "/new", "hello"):
        work(app, text)
    old = app.store.route(app.session_key(CHAT)).lineage_id

    answers = work(app, earlier, later)

    assert len(answers) == 2
    assert any("nobody will answer it" in answer or "no session yet" in answer for answer in answers)
    assert app.store.route(app.session_key(CHAT)).lineage_id != old
    assert (said(app, "go on"), said(app, "hello")) == (0, 0 if earlier == "/retry" else 1)
    assert app.store.waiting_of_key(app.session_key(CHAT)) == ()


@pytest.mark.parametrize("busy", ["queue", "merge", "interrupt", "steer", "reject"])
def test_to_steer_ends_no_turn_and_is_not_refused_whatever_others_do(profile, busy):
    app = profile({"inbox.batch_window_s": 0, "inbox.busy": busy})

    async def slow(turn):
        if turn.text == "work":
            await accept(app, "/steer mind the gap")
            for _ in range(400):
                if app.store.waiting_of_key(app.session_key(CHAT)):
                    break
                await asyncio.sleep(0.01)
        yield AssistantStep(content=f"did {turn.text}")

    answers = work(app, "work", agent=slow)

    assert sorted(answers) == [
        "It goes into the turn that runs, where the agent takes it; else it is answered next.",
        "did mind the gap",
        "did work",
    ]
