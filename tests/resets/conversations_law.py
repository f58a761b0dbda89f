"""The law of conversations that end: a machine that plays with a profile, beside a model of three numbers a chat.

Messages with and without somebody who waits, sweeps, restarts, ``/new``, ``/resume``, ``/branch``, ``/undo``,
``/redo``, processes that die in mid-turn and clocks that jump, in any order.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import attrs
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from resets_scene import CHAT, accept, begin_and_die, dead_pid, serve

from hermes_core import open_app
from hermes_hookspecs.principal import operator
from hermes_hookspecs.testing.clock import FakeClock

IDLE_MS = 90 * 60_000
DAY_MS = 86_400_000
FOUR_IN_SHANGHAI_MS = 20 * 3_600_000  # of a day in UTC; this zone has one offset
chats = st.sampled_from(range(2))
TALLY = {}
"""What was played, over all runs of this process."""


def note(what):
    TALLY[what] = TALLY.get(what, 0) + 1


class Chat:
    """What the model knows of one chat: where it leads, when it was used, and whether work waits in it."""

    def __init__(self, number):
        self.source = attrs.evolve(CHAT, chat_id=f"oc_{number}")
        self.lineage = None
        self.used = 0
        self.waits = False
        self.ended = []

    def is_due(self, now):
        if self.lineage is None or self.waits:
            return False
        days = (self.used - FOUR_IN_SHANGHAI_MS) // DAY_MS + 1
        return now >= min(self.used + IDLE_MS, days * DAY_MS + FOUR_IN_SHANGHAI_MS)

    def end(self):
        note("ended")
        self.ended.append(self.lineage)
        self.lineage = None


class Conversations(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = FakeClock(1_772_416_800_000)
        self.chats = [Chat(number) for number in range(2)]
        self.count = 0
        self.app = self._open()
        note("runs")

    def _open(self):
        chosen = {"storage.durability": "normal", "agent.runner": "echo", "inbox.batch_window_s": 0}
        chosen |= {"session_reset.mode": "both", "session_reset.idle_minutes": 90}
        chosen |= {"session_reset.timezone": "Asia/Shanghai", "session_reset.carry_over": "always"}
        return open_app(Path(self.folder.name), overrides=chosen, plugins=False, environ={}, clock=self.clock)

    def teardown(self):
        self.app.close()
        self.folder.cleanup()

    def _text(self):
        self.count += 1
        return f"message {self.count}"

    def _arrive(self, chat):
        """What a message does to a chat when it comes in."""
        if chat.is_due(self.clock.now()):
            chat.end()

    def _leads_to(self, chat):
        route = self.app.store.route(self.app.session_key(chat.source))
        return None if route is None else route.lineage_id

    @initialize()
    def greet(self):
        for number in range(2):
            self.ask(number)

    @rule(number=chats)
    def ask(self, number):
        note("ask")
        chat = self.chats[number]
        if chat.waits:
            return  # it would wait for its turn
        self._arrive(chat)
        entry = self.app.ask(self._text(), chat.source).entry
        if chat.lineage is None:
            assert entry.lineage_id not in chat.ended
            chat.lineage, chat.used = entry.lineage_id, self.clock.now()
        assert entry.lineage_id == chat.lineage
        chat.used = max(chat.used, self.clock.now())

    @rule(number=chats)
    def message(self, number):
        note("message")
        chat = self.chats[number]
        self._arrive(chat)
        accept(self.app, self._text(), chat.source)
        chat.waits = True

    @rule()
    def work(self):
        note("work")
        serve(self.app)
        for chat in self.chats:
            if not chat.waits:
                continue
            now = self.clock.now()
            leads_to = self._leads_to(chat)
            if chat.lineage is None:
                assert leads_to not in chat.ended
                chat.lineage, chat.used = leads_to, now
            chat.used, chat.waits = max(chat.used, now), False

    @rule(number=chats)
    def die_in_mid_turn(self, number):
        note("die_in_mid_turn")
        chat = self.chats[number]
        if chat.waits or chat.lineage is None:
            return
        self._arrive(chat)
        item = begin_and_die(self.app, self._text(), DEAD, chat.source)
        if chat.lineage is None:
            assert item.lineage_id not in chat.ended
            chat.lineage = item.lineage_id
        assert item.lineage_id == chat.lineage
        chat.used, chat.waits = max(chat.used, self.clock.now()), True

    @rule()
    def sweep(self):
        note("sweep")
        due = [chat for chat in self.chats if chat.is_due(self.clock.now())]
        assert self.app.maintain().reset == len(due)
        for chat in due:
            chat.end()

    @rule()
    def restart(self):
        note("restart")
        self.app.close()
        self.app = self._open()

    @rule(number=chats)
    def new(self, number):
        note("new")
        chat = self.chats[number]
        self.app.leave_session(chat.source, None)
        if chat.lineage is not None:
            chat.end()
        chat.waits = False

    @precondition(lambda self: any(chat.ended and not chat.waits for chat in self.chats))
    @rule(data=st.data())
    def resume(self, data):
        note("resume")
        chat = data.draw(st.sampled_from([chat for chat in self.chats if chat.ended and not chat.waits]))
        lineage = data.draw(st.sampled_from(chat.ended))
        self.app.resume_session(chat.source, lineage)
        chat.ended.remove(lineage)
        if chat.lineage is not None:
            chat.end()
        chat.lineage = lineage
        summary = self.app.store.lineage(lineage, operator())
        chat.used = max(summary.last_activity, self.clock.now())

    @rule(number=chats)
    def branch(self, number):
        note("branch")
        chat = self.chats[number]
        if chat.waits or chat.lineage is None:
            return
        entry = self.app.conversations.branch(chat.source, chat.lineage)
        assert entry.lineage_id not in (chat.lineage, *chat.ended)
        chat.end()
        chat.lineage, chat.used = entry.lineage_id, self.clock.now()

    @rule(number=chats, back=st.booleans(), turns=st.integers(1, 3))
    def take_back(self, number, back, turns):
        """What is taken back, or brought back, ends nothing and moves no clock."""
        note("take_back")
        chat = self.chats[number]
        if chat.waits or chat.lineage is None:
            return
        if back:
            self.app.conversations.redo(chat.lineage, chat.source)
        else:
            self.app.conversations.undo(chat.lineage, chat.source, turns=turns)

    @rule(minutes=st.sampled_from([1, 30, 89, 90, 91, 24 * 60, 60 * 24 * 30]))
    def time_passes(self, minutes):
        note("time_passes")
        self.clock.advance(minutes * 60)

    @rule()
    def time_passes_until_just_before_an_end(self):
        used = max(chat.used for chat in self.chats)
        self.clock.set_now(max(self.clock.now(), used + IDLE_MS - 1))

    @rule(hours=st.sampled_from([-30, -1, 1, 400]))
    def the_clock_is_set(self, hours):
        note("the_clock_is_set")
        self.clock.set_now(self.clock.now() + hours * 3_600_000)

    @rule(number=chats)
    def look(self, number):
        note("look")
        chat = self.chats[number]
        key = self.app.session_key(chat.source)
        self.app.store.summaries(operator())
        verdict = self.app.explain_reset(key).verdict
        if chat.lineage is not None:
            assert (verdict == "reset") is chat.is_due(self.clock.now())

    @invariant()
    def every_chat_leads_where_it_should(self):
        for chat in self.chats:
            if chat.lineage is not None or not chat.waits:
                assert self._leads_to(chat) == chat.lineage
            assert self._leads_to(chat) not in chat.ended

    @invariant()
    def what_ended_says_so(self):
        for chat in self.chats:
            for lineage_id in chat.ended:
                lineage = self.app.store.lineage(lineage_id, operator())
                assert self.app.store.session(lineage.tip, operator()).end_reason is not None


DEAD = dead_pid()
