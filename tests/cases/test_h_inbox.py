"""Group H, at the inbox: cursors, redeliveries, and several bots in one chat. Group E: a reset is final."""

from __future__ import annotations

import asyncio

import attrs
import pytest

from hermes_hookspecs.errors import Conflict
from hermes_hookspecs.ports.platform import ServedEntrance
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.state import StateUpdate
from hermes_hookspecs.testing.agents import ScriptedAgent, echo

ACCEPT_AND_DIE = """
import asyncio, os, signal
from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.state import StateUpdate


async def poll(app):
    events = [
        MessageEvent(source=ALICE, text=f"m{n}", identities=(f"m{n}",), received_at=app.clock.now()) for n in (1, 2, 3)
    ]
    await app.accept(events, state=(StateUpdate(namespace="feishu", key="cursor", value="3", expected_version=0),))
    os.kill(os.getpid(), signal.SIGKILL)


asyncio.run(poll(open_app(HOME, plugins=False)))
"""


def cursor(value, version):
    return StateUpdate(namespace="feishu", key="cursor", value=value, expected_version=version)


def stored_cursor(app):
    entry = app.store.state("feishu", "cursor", now=app.clock.now())
    return None if entry is None else (entry.value, entry.version)


# ------------------------------------------------------------------ H04, H05


def test_h04_two_pollers_with_one_cursor_accept_each_message_once(open_quick, chats):
    old, new = open_quick(), open_quick()
    chats.accept(old, "m1", "m2", state=(cursor("2", 0),))

    with pytest.raises(Conflict):
        chats.accept(new, "m1", "m2", "m3", state=(cursor("3", 0),))
    assert new.store.inbox_item(3) is None
    again = chats.accept(new, "m1", "m2", "m3", state=(cursor("3", 1),))

    assert [one.duplicate for one in again] == [True, True, False]
    assert chats.work(new, ScriptedAgent(echo())) == ["m1", "m2", "m3"]
    assert chats.work(old, ScriptedAgent(echo())) == ["m1", "m2", "m3"]


def test_h05_a_batch_and_its_cursor_survive_together_and_are_answered_by_the_next_process(open_quick, chats, start):
    start(ACCEPT_AND_DIE).process.wait(60)
    app = open_quick()

    assert stored_cursor(app) == ("3", 1)
    assert all(one.duplicate for one in chats.accept(app, "m1", "m2", "m3"))
    assert chats.work(app, ScriptedAgent(echo())) == ["m1", "m2", "m3"]


# ------------------------------------------------------------------ H14


def test_h14_two_bots_in_one_group_both_take_the_message_that_names_both(open_quick, chats, alice):
    app = open_quick()
    group = attrs.evolve(alice, chat_type="group")
    second = attrs.evolve(group, account_id="second")

    async def deliver(source):
        (result,) = await app.accept([chats.event(app, "both of you", "om_1", source)])
        return result.duplicate

    assert [asyncio.run(deliver(one)) for one in (group, second, group, second)] == [False, False, True, True]
    served = [ServedEntrance(entrance=Entrance("feishu", name), sender=chats.sender) for name in ("default", "second")]
    asyncio.run(app.work(served, agent=ScriptedAgent(echo()), until_idle=True))
    assert chats.sender.texts() == ["both of you"] * 2


def test_h14_a_run_that_raises_leaves_nothing_to_be_delivered_again_and_tells_its_sender(open_quick, chats):
    app = open_quick()

    def broken(turn):
        raise RuntimeError("broken")

    chats.accept(app, "hello")
    (notice,) = chats.work(app, broken)

    assert "could not be answered" in notice
    assert chats.accept(app, "hello")[0].duplicate
    assert chats.work(app) == [notice]


# ------------------------------------------------------------------ E06


def test_e06_a_reset_is_final_across_a_restart(open_quick, chats, alice):
    app = open_quick()
    chats.accept(app, "before")
    chats.work(app)
    left = app.get_or_create_session(alice)
    chats.accept(app, "/new")
    chats.work(app)
    app.close()
    again = open_quick()

    chats.accept(again, "after")
    chats.work(again)

    entry = again.get_or_create_session(alice)
    assert entry.lineage_id != left.lineage_id
    assert chats.sender.texts()[-1] == "echo 1: after"


def test_e06_a_message_whose_session_was_deleted_elsewhere_begins_another_one(open_quick, chats, alice):
    app, elsewhere = open_quick(), open_quick()
    chats.accept(app, "before")
    chats.work(app)
    left = app.get_or_create_session(alice)
    elsewhere.delete_session(left.lineage_id)

    chats.accept(app, "after")

    assert chats.work(app)[-1] == "echo 1: after"
