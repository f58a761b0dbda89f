"""Two processes that serve one entrance come to the same command's row: it has its effect once, and one true reply."""

from __future__ import annotations

import asyncio

import pytest

from hermes_core.commands.controls import ControlRunner
from hermes_core.commands.lone_turn import change_under_lease
from hermes_core.leases import holder_here
from hermes_hookspecs.commands import Command, CommandReply
from hermes_hookspecs.errors import LeaseBusy
from hermes_hookspecs.ids import new_turn_id
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.operations import Begin, Finish, Hide
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.turns import DONE, Fence

ALL = operator()
COMMANDS = ("/undo", "/redo", "/retry", "/branch", "/compress", "/uncompress")


def run_row(hall, number):
    runner = ControlRunner(hall.app, hall.app.command_book, hall.app.desk.entry_behind, hall.app.say)
    return asyncio.run(runner.run(hall.item(number)))


def begin_elsewhere(hall):
    """Take the lease as another process does that runs the same row; return its fence."""
    now = hall.clock.now()
    begin = Begin(
        lineage_id=hall.lineage(),
        turn_id=new_turn_id(now),
        holder=holder_here(Entrance("feishu"), None),
        now=now,
        ttl_ms=30_000,
        maintenance=True,
        touch=False,
    )
    begun = hall.app.store.apply(begin)
    return Fence(begun.turn.lineage_id, begun.turn.id, begun.lease.token)


@pytest.mark.parametrize("text", COMMANDS)
def test_a_command_that_finds_its_session_busy_leaves_its_row_as_it_was(hall, text):
    hall.say("one")
    hall.work("echo")
    hall.say(text)
    fence = begin_elsewhere(hall)

    with pytest.raises(LeaseBusy):
        run_row(hall, 2)

    assert (hall.item(2).status, hall.item(2).outcome) == ("pending", None)
    hall.app.store.apply(Finish(fence=fence, outcome=DONE, now=hall.clock.now(), touch=False))
    hall.work("echo")
    assert hall.item(2).status == "done"


def test_a_change_that_another_process_has_made_meanwhile_lets_go_of_the_lease(hall):
    hall.say("one", "two")
    hall.work("echo")
    hall.say("/undo")
    run_row(hall, 3)
    first = hall.app.store.messages(hall.lineage(), ALL)[0].id
    around = hall.app._turns.engine.around
    holder = holder_here(Entrance("feishu"), None)

    def change(fence):
        return Hide(fence=fence, first=first, now=hall.clock.now(), finish=True)

    assert change_under_lease(around, hall.lineage(), holder, 3, change) is False
    assert hall.app.store.lease(hall.lineage()).holder is None
    assert hall.said() == ["one"]


class Refused:
    """Brings a command that finds its session busy ``times`` times; ``clock`` goes on by 10 minutes each time."""

    def __init__(self, times, *, bypass=False, clock=None):
        self.times, self.runs, self.bypass, self.clock = times, 0, bypass, clock

    @hookimpl
    def hermes_commands(self):
        async def run(call):
            self.runs += 1
            if self.clock is not None:
                self.clock.advance(600)
            if self.runs <= self.times:
                raise LeaseBusy("this session is busy; try again in a moment")
            return CommandReply(text="it was my turn")

        return [Command(name="mine", summary="waits", run=run, bypass=self.bypass)]


def test_a_busy_session_without_a_holder_is_tried_again_until_it_is_free(open_hall):
    plugin = Refused(3)
    hall = open_hall(plugins=[plugin])
    hall.say("one", "/mine", "two")

    texts = hall.work("echo")

    assert texts == ["echo 1: one", "it was my turn", "echo 2: two"]
    assert plugin.runs == 4


def test_a_session_that_stays_busy_is_told_after_as_long_as_a_turn_waits(open_hall, clock):
    plugin = Refused(1_000_000, clock=clock)
    hall = open_hall({"turns.lease_wait_s": 1200.0}, plugins=[plugin], clock=clock)
    hall.say("/mine", "two")

    texts = hall.work("echo")

    assert texts == ["this session is busy; try again in a moment", "echo 1: two"]
    assert plugin.runs == 3


def test_a_command_that_does_not_wait_for_its_place_is_answered_at_once(open_hall):
    plugin = Refused(1_000_000, bypass=True)
    hall = open_hall(plugins=[plugin])
    hall.say("/mine")

    assert hall.work("echo") == ["this session is busy; try again in a moment"]
    assert plugin.runs == 1


@pytest.mark.parametrize("backend", ["sqlite"])
def test_two_that_serve_one_entrance_run_each_command_once(profile, open_hall):
    hall = open_hall()
    other = profile({"inbox.batch_window_s": 0.0})
    for number in range(4):
        hall.say(f"word {number}")
    hall.work("echo")
    hall.say("/undo", "/undo", "/redo", "/retry", "/branch away", "/undo")

    async def both():
        async with asyncio.timeout(60):
            await asyncio.gather(
                hall.app.work(hall.served(), agent="echo", until_idle=True),
                other.work(hall.served(), agent="echo", until_idle=True),
            )

    asyncio.run(both())

    *commands, answer = [text.split(":")[0].split(" in ")[0] for text in hall.sender.texts()[4:]]
    assert commands == ["Taken back", "Taken back", "Brought back", "Trying again", "You go on", "Taken back"]
    assert answer.startswith("echo")
    assert hall.said() == ["word 0", "word 2"]
    assert [lease for lease in hall.app.store.leases() if lease.holder is not None] == []
    kinds = {row.kind for row in hall.app.store.messages(hall.lineage(), ALL, hidden=True)}
    assert kinds <= {""}


@pytest.mark.parametrize("backend", ["sqlite"])
def test_the_slower_of_two_does_not_take_back_what_a_retry_said(profile, open_hall, monkeypatch):
    """It finds the key led elsewhere: by the command behind, which the other process has run already."""
    hall = open_hall()
    other = profile({"inbox.batch_window_s": 0.0})
    hall.say("one", "two")
    hall.work("echo")
    hall.say("/retry", "/branch away")
    written, apply = [], hall.app.store.apply

    def noted(operation):
        written.append(type(operation).__name__)
        return apply(operation)

    async def say(draft):
        said = await hall.app.say(draft)
        async with asyncio.timeout(60):
            await other.work(hall.served(), agent="echo", until_idle=True)
        monkeypatch.setattr(hall.app.store, "apply", noted)
        return said

    runner = ControlRunner(hall.app, hall.app.command_book, hall.app.desk.entry_behind, say)
    told = asyncio.run(runner.run(hall.item(3)))

    assert told.startswith("Trying again: “two”.")
    assert "Withdraw" not in written
    assert hall.said() == ["one", "two"]
