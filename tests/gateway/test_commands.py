"""Slash commands as rows: the effect once, the reply once, whenever a process dies between the two."""

from __future__ import annotations

import asyncio

import pytest

from hermes_core.commands.controls import ControlRunner
from hermes_hookspecs.commands import Command, CommandReply
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.testing.agents import Gate, ScriptedAgent, echo, pause


def half_done(hall, number):
    """Run a row's command as a process does that is killed before its reply is stored."""
    runner = ControlRunner(hall.app, hall.app.command_book, hall.app.desk.entry_behind, hall.app.say)
    return asyncio.run(runner.run(hall.item(number)))


def replies(hall, agent="echo"):
    """Work and return what was sent that no agent said."""
    return [text for text in hall.work(agent) if not text.startswith("echo ")]


# --- /new


def test_new_lets_go_of_the_session_and_settles_what_waited_before_it_and_nothing_behind(hall):
    hall.say("first")
    hall.work("echo")
    left = hall.lineage()
    hall.say("waits 1", "waits 2", "/new", "in the new session")
    half_done(hall, 4)

    texts = hall.work("echo")

    assert texts[0] == "echo 1: first"
    assert "2 waiting messages will not be answered" in texts[1]
    assert texts[2:] == ["echo 1: in the new session"]
    assert hall.lineage() != left
    assert [hall.item(number).status for number in (2, 3, 4, 5)] == ["superseded", "superseded", "done", "done"]


def test_new_counts_what_waited_for_a_key_that_had_no_session_yet(hall):
    hall.say("one", "two", "/new")

    (reply,) = hall.work("echo")

    assert reply == "2 waiting messages will not be answered. Your next message begins a new session."


def test_new_with_nothing_to_leave_says_nothing_of_waiting_messages(hall):
    hall.say("/new")

    assert hall.work("echo") == ["Your next message begins a new session."]


def test_new_stops_the_turn_that_runs_and_its_late_answer_goes_nowhere(hall, wait_for, wait_until):
    gate = Gate()
    agent = ScriptedAgent(pause(gate), echo()).then(echo())

    async def scene():
        async with hall.serving(agent):
            await hall.accept("slow")
            await wait_for(gate.reached)
            await hall.accept("/new")
            await wait_until(hall.sender.texts)
            gate.open()
            await hall.accept("after", "and after")
            await wait_until(lambda: len(hall.sender.texts()) == 3)

    asyncio.run(scene())

    assert "The turn that was running is stopped." in hall.sender.texts()[0]
    assert hall.sender.texts()[1:] == ["after", "and after"]


@pytest.mark.parametrize("times", [1, 2])
def test_new_that_died_before_its_reply_replies_what_the_first_try_did(hall, times):
    hall.say("first")
    hall.work("echo")
    hall.say("waits", "/new plan")
    for _ in range(times):
        half_done(hall, 3)
    hall.say("younger")

    first, reply, younger = hall.work("echo")

    assert "1 waiting message will not be answered" in reply
    assert "called 'plan'" in reply
    assert (first, younger) == ("echo 1: first", "echo 1: younger")
    assert len(hall.ear.told("after_session_end")) == 1
    assert hall.work("echo") == [first, reply, younger]


def test_new_that_died_before_its_reply_does_not_let_go_of_the_session_that_came_after(hall):
    hall.say("first")
    hall.work("echo")
    hall.say("/new")
    half_done(hall, 2)
    young = hall.app.get_or_create_session(hall.source())

    hall.work("echo")

    assert hall.lineage() == young.lineage_id


# --- /resume


def resumable(hall):
    """Leave a titled session behind and begin another one (six rows); return both lineages."""
    hall.say("old talk")
    hall.work("echo")
    old = hall.lineage()
    hall.say("/title plan", "/new", "new talk", "/status")
    hall.work("echo")
    assert hall.app.store.lineages_by_title("plan", hall.app.principal(hall.source()))[0].id == old
    return old, hall.lineage()


def test_resume_goes_back_once_and_settles_what_waited(hall):
    old, _ = resumable(hall)
    hall.say("waits", "/resume plan", "in the old session")
    half_done(hall, 7)

    texts = hall.work("echo")

    assert hall.lineage() == old
    assert "1 waiting will not be answered" in texts[-2]
    assert texts[-1] == "echo 2: in the old session"


def test_resume_that_died_before_its_reply_tells_where_it_has_gone(hall):
    old, new = resumable(hall)
    hall.say("/resume plan")
    number = 6
    half_done(hall, number)
    hall.app.rename_session(old, "another name")
    hall.app.rename_session(new, "plan")

    *_, reply = hall.work("echo")

    assert hall.lineage() == old
    assert reply.startswith("Back in 'another name'")


def test_resume_of_the_session_one_is_in_settles_nothing(hall):
    hall.say("first", "/title plan")
    hall.work("echo")
    hall.say("/title plan")
    hall.work("echo")
    hall.say("waits", "/resume plan")

    texts = hall.work("echo")

    assert "You are in that session already." in texts
    assert texts.count("echo 2: waits") == 1


# --- /stop and /title


def test_stop_ends_the_turn_and_it_never_runs_again(hall, wait_for, wait_until):
    gate = Gate()
    agent = ScriptedAgent(pause(gate), echo()).then(echo())

    async def scene():
        async with hall.serving(agent):
            await hall.accept("slow")
            await wait_for(gate.reached)
            await hall.accept("/stop", "next")
            await wait_until(lambda: len(hall.sender.texts()) == 2)

    asyncio.run(scene())

    assert sorted(hall.sender.texts()) == ["Stopped.", "next"]
    assert hall.turns() == [("stopped", 1), ("done", 1)]
    began, ended = hall.pairs()
    assert [outcome for _, outcome in ended] == ["stopped", "done"]
    assert began == [turn for turn, _ in ended]


def test_stop_that_died_before_its_reply_does_not_stop_the_next_turn(hall, wait_for):
    hall.die("slow")
    hall.say("/stop")
    half_done(hall, 2)
    gate = Gate()

    async def scene():
        await hall.accept("next")
        working = asyncio.create_task(
            hall.app.work(hall.served(), agent=ScriptedAgent(pause(gate), echo()), until_idle=True)
        )
        await wait_for(gate.reached)
        gate.open()
        await working

    asyncio.run(scene())

    assert sorted(hall.sender.texts()) == ["Stopped.", "next"]


def test_title_that_died_before_its_reply_does_not_undo_a_younger_title(hall):
    hall.say("hello")
    hall.work("echo")
    hall.say("/title one")
    half_done(hall, 2)
    hall.app.rename_session(hall.lineage(), "two")

    assert replies(hall) == ["Title: one"]
    assert hall.app.store.lineages_by_title("two", hall.app.principal(hall.source()))
    hall.app.hooks.flush()
    assert [told["title"] for told in hall.ear.told("after_title_change")] == ["one", "two"]


# --- the order of commands and messages


class Slow:
    """A plugin with a command that waits for its turn, and one that fails."""

    def __init__(self):
        self.seen = []

    @hookimpl
    def hermes_commands(self):
        async def after(call):
            self.seen.append(call.arguments)
            return CommandReply(text=f"after {call.arguments}")

        async def broken(call):
            raise RuntimeError("secret detail")

        return [
            Command(name="after", summary="waits", run=after, bypass=False),
            Command(name="broken", summary="fails", run=broken),
        ]


def test_a_command_that_waits_for_its_turn_runs_behind_older_messages(open_hall):
    hall = open_hall(plugins=[Slow()])
    hall.say("one", "/after all", "two")

    texts = hall.work("echo")

    assert texts.index("echo 1: one") < texts.index("after all")
    assert set(texts) == {"echo 1: one", "after all", "echo 2: two"}


def test_a_command_that_waits_for_its_turn_runs_behind_the_turn_that_runs(open_hall, wait_for, wait_until):
    slow, gate = Slow(), Gate()
    hall = open_hall(plugins=[slow])

    async def scene():
        async with hall.serving(ScriptedAgent(pause(gate), echo())):
            await hall.accept("slow")
            await wait_for(gate.reached)
            await hall.accept("/after", "/help")
            await wait_until(lambda: hall.item(2))
            assert slow.seen == []
            gate.open()
            await wait_until(lambda: len(hall.sender.texts()) == 3)

    asyncio.run(scene())

    assert slow.seen == [""]


def test_a_failing_command_is_answered_without_its_reasons_and_holds_nobody_up(open_hall):
    hall = open_hall(plugins=[Slow()])
    hall.say("/broken", "hello")

    texts = hall.work("echo")

    assert sorted(texts) == ["That command failed; what went wrong is in the log.", "echo 1: hello"]
    assert hall.item(1).status == "done"


def test_an_unknown_command_is_answered(hall):
    hall.say("/stpo")

    (reply,) = hall.work("echo")

    assert "Did you mean /stop?" in reply


def test_a_command_that_is_delivered_again_runs_once(hall):
    hall.say(hall.event("/new", identities=("m1",)), hall.event("/new", identities=("m1",)))

    assert len(hall.work("echo")) == 1


def test_whose_message_is_stopped_from_elsewhere_is_told_so(hall, wait_for, wait_until):
    gate = Gate()

    async def scene():
        async with hall.serving(ScriptedAgent(pause(gate))):
            await hall.accept("slow")
            await wait_for(gate.reached)
            assert await asyncio.to_thread(hall.app.stop_turn, hall.lineage(), reason="from the terminal")
            await wait_until(hall.sender.texts)

    asyncio.run(scene())

    assert hall.sender.texts() == ["The work on your message was stopped. Send a message to go on."]
    assert hall.work("echo") == hall.sender.texts()
