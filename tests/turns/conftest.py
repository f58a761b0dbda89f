"""A work bench for turns: the real engine over a real store, with times of the test's own, and a store to look into."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from concurrent.futures import Future
from threading import Event, Thread

import attrs
import pytest

from hermes_core.inbox.door import entrance_of, waiting_draft
from hermes_core.leases import holder_here
from hermes_core.turns.engine import TurnEngine, TurnRequest
from hermes_core.turns.functions import FunctionAgent
from hermes_core.turns.waiting import LeaseTimes
from hermes_core.turns.waker import LocalWaker
from hermes_hookspecs.operations import Accept
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import SessionSource

PATIENCE_S = 20


class WatchedStore:
    """The real store behind a window: writes are listed; each kind may be held up, fail, or be answered otherwise."""

    def __init__(self, store):
        self._store = store
        self.written = []
        self.held = {}
        self.failing = {}
        self.answering = {}

    def __getattr__(self, name):
        return getattr(self._store, name)

    def submit(self, operation):
        kind = type(operation).__name__
        self.written.append(kind)
        if self.failing.get(kind):
            failed = Future()
            failed.set_exception(self.failing[kind].pop())
            return failed
        if self.answering.get(kind):
            answered = Future()
            answered.set_result(self.answering[kind].pop())
            return answered
        gate = self.held.get(kind)
        return self._store.submit(operation) if gate is None else gate.through(self._store, operation)

    def perform(self, operation):
        watched = self.failing, self.answering, self.held
        if any(kinds.get(type(operation).__name__) for kinds in watched):
            return asyncio.wrap_future(self.submit(operation))
        self.written.append(type(operation).__name__)
        return self._store.perform(operation)


class Gate:
    """Holds operations until it is opened: they are queued like any other and cannot be called back."""

    def __init__(self):
        self.reached = Event()
        self.opened = Event()

    def through(self, store, operation):
        outcome = Future()
        outcome.set_running_or_notify_cancel()

        def run():
            self.reached.set()
            assert self.opened.wait(PATIENCE_S)
            try:
                outcome.set_result(store.apply(operation))
            except Exception as error:  # noqa: BLE001 - a future carries whatever was raised
                outcome.set_exception(error)

        Thread(target=run, daemon=True).start()
        return outcome


class Bench:
    """One profile with an engine of its own; everything a test says to it is short."""

    def __init__(self, app, ear, *, max_waiting=100, inactivity_s=PATIENCE_S, cleanup_s=PATIENCE_S, **times):
        self.app, self.ear, self.clock = app, ear, app.clock
        self.store = WatchedStore(app.store)
        self.waker = LocalWaker(app.store.change_mark)
        known = {"ttl_s": 30.0, "renew_s": 10.0, "notice_s": 30.0, "wait_s": 1800.0}
        self.engine = TurnEngine(
            store=self.store,
            clock=app.clock,
            hooks=app.hooks,
            waker=self.waker,
            times=LeaseTimes(**(known | times)),
            max_waiting=max_waiting,
            inactivity_s=inactivity_s,
            cleanup_s=cleanup_s,
        )

    def source(self, chat="oc_1", **fields):
        return SessionSource(**({"platform": "feishu", "chat_id": chat, "user_id": "ou_1"} | fields))

    def enter(self, source=None):
        return self.app.get_or_create_session(source or self.source())

    def request(self, text="hello", agent=None, *, source=None, entry=None, **fields):
        source = source or self.source()
        entry = entry or self.enter(source)
        draft = waiting_draft(
            self.app.hooks,
            text,
            source,
            session_key=self.app.session_key(source),
            lineage_id=entry.lineage_id,
            now=self.clock.now(),
        )
        runner = FunctionAgent(agent or (lambda turn: f"heard {turn.text}"))
        return TurnRequest(draft=draft, entry=entry, principal=self.app.principal(source), agent=runner, **fields)

    def ask(self, text="hello", agent=None, **fields):
        return self.engine.run(self.request(text, agent, **fields))

    def asking(self, text="hello", agent=None, **fields):
        """Return a task that asks."""
        return asyncio.create_task(self.ask(text, agent, **fields))

    def rows(self, entry):
        return [(row.role, row.content) for row in self.app.store.messages(entry.lineage_id, operator())]

    def turns(self, entry):
        return self.app.store.turns(entry.lineage_id, operator())

    def lease(self, entry):
        return self.app.store.lease(entry.lineage_id)

    def item(self, number):
        return self.app.store.inbox_item(number)

    def waiters(self, entry):
        """Return how many wait for their turn by now."""
        return len(self.waker._waiters.get(entry.lineage_id, ()))

    def told(self, name):
        self.app.hooks.flush()
        return [values["turn"] for values in self.ear.told(name)]

    def leave_a_row(self, entry, text="never answered", source=None, **waiter):
        """Store a message whose sender waited in another process; ``waiter`` says which."""
        source = source or self.source()
        draft = waiting_draft(
            self.app.hooks,
            text,
            source,
            session_key=self.app.session_key(source),
            lineage_id=entry.lineage_id,
            now=self.clock.now(),
        )
        draft = attrs.evolve(draft, waiter=attrs.evolve(draft.waiter, **waiter))
        (taken,) = self.app.store.apply(Accept(drafts=(draft,), now=self.clock.now(), max_waiting=10_000))
        return taken.id

    def holder(self, source=None, **fields):
        source = source or self.source()
        return attrs.evolve(holder_here(entrance_of(source), self.app.session_key(source)), **fields)


async def arrives(event):
    """Wait for a threading event off the loop."""
    assert await asyncio.to_thread(event.wait, PATIENCE_S)


async def until(condition):
    """Give way to the others until ``condition()`` holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0)


@pytest.fixture
def bench(profile, ear):
    """Return a function that makes a bench on a fresh profile."""

    def make(*, clock=None, plugins=(), **options):
        return Bench(profile(clock=clock, plugins=plugins), ear, **options)

    return make


@pytest.fixture
def gate():
    made = Gate()
    yield made
    made.opened.set()


@pytest.fixture
def dead_process():
    """Identity of a process that has ended: fields of a lease holder."""
    process = subprocess.Popen([sys.executable, "-c", ""], env=os.environ)
    process.wait(PATIENCE_S)
    return {"pid": process.pid, "started": "1"}


@pytest.fixture
def elsewhere():
    """Identity of a process on another machine: nobody here can know whether it lives."""
    return {"host": "elsewhere", "boot_id": "another boot", "pid": 1, "started": "1"}


@pytest.fixture
def wait_until():
    return until


@pytest.fixture
def wait_for():
    return arrives
