"""Commands that stand in each other's way, do not end, or are many."""

from __future__ import annotations

import asyncio

import attrs
import pytest

from hermes_core.leases import holder_here
from hermes_hookspecs.commands import Command, CommandReply
from hermes_hookspecs.inbox import InboxDraft
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.operations import Accept
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.testing.agents import Gate, ScriptedAgent, echo, pause

FEISHU = Entrance("feishu")


class Slow:
    """A plugin with a command that ends when it is told to, and one that waits for its turn."""

    def __init__(self, *, stubborn=False):
        self.begun = 0
        self.bought = 0
        self.go_on = asyncio.Event()
        self._stubborn = stubborn

    @hookimpl
    def hermes_commands(self):
        async def slow(call):
            self.begun += 1
            while True:
                try:
                    await self.go_on.wait()
                except asyncio.CancelledError:
                    if not self._stubborn:
                        raise
                    continue
                self.bought += 1
                return CommandReply(text="slow is done")

        async def after(call):
            return CommandReply(text="after")

        return (
            Command(name="slow", summary="ends when it is told to", run=slow),
            Command(name="after", summary="waits", run=after, bypass=False),
        )


@pytest.mark.parametrize("stubborn", [False, True], ids=["cancelled", "swallows-cancellation"])
def test_a_command_that_does_not_end_is_given_up_and_what_stands_behind_it_goes_on(open_hall, stubborn):
    plugin = Slow(stubborn=stubborn)
    settings = {"gateway.command_timeout_s": 0.1, "session_reset.cleanup_timeout_s": 0.1}
    hall = open_hall(settings, plugins=[plugin])

    async def scene():
        await hall.accept("/slow", "behind it")
        async with asyncio.timeout(30):
            await hall.app.work(hall.served(), agent="echo", until_idle=True)
        plugin.go_on.set()

    asyncio.run(scene())

    reply, answer = hall.sender.texts()
    assert "did not end within 0.1 s" in reply
    assert answer == "echo 1: behind it"
    assert [hall.item(number).status for number in (1, 2)] == ["done", "done"]


def test_stop_and_new_do_not_wait_for_a_command_that_runs_for_long(open_hall, clock, wait_for, wait_until):
    plugin, gate = Slow(), Gate()
    hall = open_hall(plugins=[plugin], clock=clock)

    async def scene():
        async with hall.serving(ScriptedAgent(pause(gate), echo())):
            await hall.accept("work")
            await wait_for(gate.reached)
            await hall.accept("/slow")
            await wait_until(lambda: plugin.begun)
            await hall.accept("/title x", "/stop")
            clock.advance(5_000)
            await wait_until(hall.sender.texts)
            assert hall.sender.texts() == ["Stopped."]
            plugin.go_on.set()
            await wait_until(lambda: len(hall.sender.texts()) == 3)

    asyncio.run(scene())

    assert hall.sender.texts()[1:] == ["slow is done", "Title: x"]
    assert hall.turns() == [("stopped", 1)]


def test_stop_does_not_wait_behind_a_command_that_waits_for_the_turn(open_hall, wait_for, wait_until):
    gate = Gate()
    hall = open_hall(plugins=[Slow()])

    async def scene():
        async with hall.serving(ScriptedAgent(pause(gate), echo())):
            await hall.accept("work")
            await wait_for(gate.reached)
            await hall.accept("/after", "/stop")
            await wait_until(lambda: len(hall.sender.texts()) == 2)

    asyncio.run(scene())

    # The turn ends by the stop alone, and the command behind it runs then; its reply may be written before the other.
    assert sorted(hall.sender.texts()) == ["Stopped.", "after"]


def test_a_process_that_leaves_lets_its_command_end(open_hall, wait_until):
    plugin = Slow()
    hall = open_hall(plugins=[plugin])

    async def scene():
        async with hall.serving("echo") as task:
            await hall.accept("/slow", "/slow")
            await wait_until(lambda: plugin.begun)
            task.cancel()
            await asyncio.sleep(0)
            asyncio.get_running_loop().call_later(0.05, plugin.go_on.set)
            await asyncio.wait({task}, timeout=30)

    asyncio.run(scene())

    assert (plugin.begun, plugin.bought) == (1, 1)
    assert [hall.item(number).status for number in (1, 2)] == ["done", "pending"]


def test_many_commands_of_one_chat_hide_no_other_chats(open_hall, wait_until):
    hall = open_hall({"inbox.max_waiting": 100}, plugins=[Slow()])
    source = hall.source()
    first = InboxDraft(
        session_key=hall.app.session_key(source),
        source=source,
        entrance=FEISHU,
        text="/after",
        accepted_at=hall.clock.now(),
        kind="control",
    )
    hall.app.store.apply(Accept(drafts=(first,) * 1001, now=hall.clock.now(), max_waiting=2000))
    blocker = attrs.evolve(first, kind="message", text="x", waiter=holder_here(FEISHU, None))
    hall.app.store.apply(Accept(drafts=(blocker,), now=hall.clock.now()))

    async def scene():
        async with hall.serving("echo"):
            await hall.accept(hall.event("/help", "oc_other"))
            await wait_until(lambda: any("/help" in text for text in hall.sender.texts()))

    asyncio.run(scene())


def test_more_commands_of_a_chat_than_may_wait_are_refused_visibly(open_hall):
    hall = open_hall({"inbox.max_waiting": 2})

    *taken, refused = hall.say("/help", "/status", "/stop")

    assert [one.refused for one in taken] == ["", ""]
    assert refused.refused == "2 commands wait already"
    assert any("2 commands wait here already" in text for text in hall.work())


def test_a_sender_who_waited_in_a_process_that_died_holds_no_command_up(open_hall, dead_waiter):
    hall = open_hall(plugins=[Slow()])
    hall.say("first")
    hall.work("echo")
    number = dead_waiter(hall)

    hall.say("/after", "next")

    assert hall.work("echo")[1:] == ["after", "echo 2: next"]
    assert hall.item(number).status == "withdrawn"


def test_maintenance_takes_back_what_dead_processes_waited_for(hall, dead_waiter):
    hall.say("first")
    hall.work("echo")
    number = dead_waiter(hall)

    hall.app.maintain()

    assert hall.item(number).status == "withdrawn"


def test_the_policy_reject_takes_what_only_the_dead_are_in_the_way_of(open_hall, dead_waiter):
    hall = open_hall({"inbox.busy": "reject"})
    hall.say("first")
    hall.work("echo")
    dead_waiter(hall)

    (taken,) = hall.say("second")

    assert taken.refused == ""
    assert hall.work("echo")[-1] == "echo 2: second"


def test_the_policy_reject_takes_what_comes_after_a_turn_that_died(open_hall):
    hall = open_hall({"inbox.busy": "reject", "gateway.recovery_attempts": 0})
    hall.die("first")

    (taken,) = hall.say("second")

    assert taken.refused == ""


def test_a_command_is_about_the_session_of_its_own_key(open_hall, wait_for, wait_until):
    hall = open_hall()
    group = hall.source(chat_type="group")
    hall.say(hall.event("hello", source=group))
    hall.work("echo")
    (route,) = hall.app.store.routes()
    hall.say(hall.event("/new", source=group))
    hall.app.desk._settings = attrs.evolve(
        hall.app.settings, routing=attrs.evolve(hall.app.settings.routing, group_sessions_per_user=False)
    )

    assert "it is kept" in hall.work("echo")[-1]
    assert hall.app.store.route(route.key).lineage_id is None
    assert len(hall.app.store.routes()) == 1
