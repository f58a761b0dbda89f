"""Group J, at the turn: events mean what they say, pair on every way out, and hold nobody up."""

from __future__ import annotations

import asyncio
from threading import Event, Lock

import attrs
import pytest

import hermes_core.turns.worker as worker_module
from hermes_hookspecs.errors import StoreFull
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.operations import Finish, Revoke
from hermes_hookspecs.testing.agents import Gate, ScriptedAgent, echo, fail, pause

PATIENCE_S = 60


class Listener:
    """A plugin that writes down sessions and turns."""

    def __init__(self):
        self.heard = []
        self._lock = Lock()

    def _hear(self, *what):
        with self._lock:
            self.heard.append(what)

    @hookimpl
    def hermes_after_session_start(self, entry):
        self._hear("session start", entry.lineage_id)

    @hookimpl
    def hermes_after_session_end(self, lineage_id, session_id, reason):
        self._hear("session end", lineage_id)

    @hookimpl
    def hermes_after_turn_start(self, turn):
        self._hear("turn start", turn.id)

    @hookimpl
    def hermes_after_turn_finish(self, turn):
        self._hear("turn finish", turn.id, turn.outcome)

    def told(self, name):
        return [what[1:] for what in self.heard if what[0] == name]


def listened(app):
    listener = Listener()
    app.hooks.host.register("test.listener", listener)
    return listener


# ------------------------------------------------------------------ J04


def test_j04_a_session_starts_once_and_ends_once_whatever_turns_restarts_and_resumes_it_has(open_quick, chats, alice):
    app = open_quick()
    first = listened(app)
    chats.accept(app, "one", "two")
    chats.work(app)
    app.hooks.flush()
    app.close()
    again = open_quick()
    second = listened(again)
    chats.accept(again, "three")
    chats.work(again)
    lineage_id = again.get_or_create_session(alice).lineage_id
    again.resume_session(alice, lineage_id)
    chats.accept(again, "/new")
    chats.work(again)
    again.hooks.flush()

    assert first.told("session start") == [(lineage_id,)]
    assert (first.told("session end"), second.told("session start")) == ([], [])
    assert second.told("session end") == [(lineage_id,)]
    assert [len(one.told("turn finish")) for one in (first, second)] == [2, 1]


# ------------------------------------------------------------------ J05


def test_j05_a_hook_that_never_returns_does_not_delay_the_answer(open_quick, chats):
    app = open_quick()
    may_end = Event()

    class Stuck:
        @hookimpl
        def hermes_after_turn_start(self, turn):
            may_end.wait(PATIENCE_S)

        @hookimpl
        def hermes_after_turn_finish(self, turn):
            raise RuntimeError("broken, too")

    app.hooks.host.register("test.stuck", Stuck())
    chats.accept(app, "hello")
    try:
        assert chats.work(app) == ["echo 1: hello"]
        assert not may_end.is_set()
    finally:
        may_end.set()


# ------------------------------------------------------------------ J06


class Full:
    """A store whose disk is full when a turn is to be finished, a number of times."""

    def __init__(self, store, times):
        self._store, self.times = store, times

    def __getattr__(self, name):
        return getattr(self._store, name)

    def perform(self, operation):
        if isinstance(operation, Finish) and self.times:
            self.times -= 1
            failed = asyncio.get_running_loop().create_future()
            failed.set_exception(StoreFull("no space left"))
            return failed
        return self._store.perform(operation)


@pytest.mark.parametrize(
    ("way_out", "outcome"),
    [
        ("end", "done"),
        ("raise", "failed"),
        ("inactivity", "failed"),
        ("full disk", "done"),
        ("/stop", "stopped"),
        ("/new", "stopped"),
        ("takeover", "stopped"),
        ("leave", "interrupted"),
    ],
)
def test_j06_each_start_of_a_turn_has_one_end_with_its_outcome(open_quick, chats, alice, monkeypatch, way_out, outcome):
    monkeypatch.setattr(worker_module, "_AFTER_FAULT_S", 0.0)
    app = open_quick({"turns.drain_s": 0})
    agent_settings = attrs.evolve(app.settings.agent, inactivity_timeout_s=0.05 if way_out == "inactivity" else 60)
    app.settings = attrs.evolve(app.settings, agent=agent_settings)
    listener = listened(app)
    if way_out == "full disk":
        app._store = Full(app.store, 3)
    gate = Gate()
    script = {"end": [echo()], "raise": [fail(RuntimeError("broken"))], "full disk": [echo()]}
    agent = ScriptedAgent(*script.get(way_out, [pause(gate), echo()]))

    async def scene():
        async with asyncio.timeout(PATIENCE_S):
            work = asyncio.create_task(app.work(chats.served(), agent=agent))
            await app.accept([chats.event(app, "hello", "1")])
            if way_out not in script:
                await asyncio.to_thread(gate.reached.wait, PATIENCE_S)
            if way_out.startswith("/"):
                await app.accept([chats.event(app, way_out, "2")])
            elif way_out == "takeover":
                lineage_id = app.get_or_create_session(alice).lineage_id
                app.store.apply(Revoke(lineage_id=lineage_id, now=app.clock.now(), reason="taken over"))
                app.wake_topic(lineage_id)
            if way_out != "leave":
                while not listener.told("turn finish"):  # noqa: ASYNC110 - what is waited for has no event
                    await asyncio.sleep(0.002)
            work.cancel()
            await asyncio.wait({work})

    asyncio.run(scene())
    app.hooks.flush()

    ((began,),) = listener.told("turn start")
    assert listener.told("turn finish") == [(began, outcome)]


@pytest.mark.parametrize("way_out", ["cancel", "raise"])
def test_j06_a_turn_whose_sender_waits_pairs_as_well(open_quick, alice, way_out):
    app = open_quick()
    listener = listened(app)
    gate = Gate()
    agent = ScriptedAgent(pause(gate)) if way_out == "cancel" else ScriptedAgent(fail(RuntimeError("broken")))

    async def scene():
        asked = asyncio.create_task(app.ask_async("hello", alice, agent=agent))
        if way_out == "cancel":
            await asyncio.to_thread(gate.reached.wait, PATIENCE_S)
            asked.cancel()
        await asyncio.wait({asked})
        return asked.cancelled() or asked.exception()

    assert asyncio.run(scene())
    app.hooks.flush()
    ((began,),) = listener.told("turn start")
    assert listener.told("turn finish") == [(began, "stopped" if way_out == "cancel" else "failed")]
