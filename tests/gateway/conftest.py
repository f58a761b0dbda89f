"""A hall: an open profile whose chats are served by the real worker and deliverer, and a platform that records."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import attrs
import pytest

from hermes_core.leases import holder_here
from hermes_hookspecs.ids import new_turn_id
from hermes_hookspecs.inbox import InboxDraft, MessageEvent
from hermes_hookspecs.messages import ASSISTANT, TOOL, USER, MessageDraft, ToolCall
from hermes_hookspecs.operations import Accept, Append, Begin, Begun, BindRoute
from hermes_hookspecs.ports.platform import PlatformAbilities, ServedEntrance
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import Entrance, KeyPolicy, SessionSource
from hermes_hookspecs.testing.platform import RecordingSender
from hermes_hookspecs.turns import Fence, LeaseStamp

TOY_PLATFORM = str(Path(__file__).resolve().parent.parent / "toy_platform")
if TOY_PLATFORM not in sys.path:
    sys.path.insert(0, TOY_PLATFORM)

PATIENCE_S = 30
FEISHU = Entrance("feishu")
ALL = operator()


class Hall:
    """One profile; everything a test says to it is short."""

    def __init__(self, app, ear):
        self.app, self.ear, self.clock = app, ear, app.clock
        self.sender = RecordingSender()
        self.abilities = PlatformAbilities()
        self._number = 0

    # --- what comes in

    def source(self, chat="oc_1", **fields):
        return SessionSource(**({"platform": "feishu", "chat_id": chat, "user_id": "ou_1"} | fields))

    def event(self, text, chat="oc_1", *, identities=None, source=None, **fields):
        self._number += 1
        return MessageEvent(
            source=source or self.source(chat),
            text=text,
            identities=(f"om_{self._number}",) if identities is None else identities,
            received_at=self.clock.now(),
            **fields,
        )

    async def accept(self, *said, **options):
        """Accept texts and events in one batch; return the results."""
        events = [one if isinstance(one, MessageEvent) else self.event(one) for one in said]
        return await self.app.accept(events, **options)

    def say(self, *said, **options):
        return asyncio.run(within(self.accept(*said, **options)))

    def link(self, source, lineage_id):
        """Let the key of a source lead to a lineage, whoever its owner is."""
        bind = BindRoute(
            key=self.app.session_key(source),
            key_version=1,
            source=source,
            policy=KeyPolicy(),
            lineage_id=lineage_id,
            now=self.clock.now(),
        )
        return self.app.store.apply(bind)

    # --- work

    def served(self, *entrances):
        return [
            ServedEntrance(entrance=one, sender=self.sender, abilities=self.abilities) for one in entrances or (FEISHU,)
        ]

    def work(self, agent=None, *entrances):
        """Serve until nothing is left to do; return the texts that the platform has received by then."""
        asyncio.run(within(self.app.work(self.served(*entrances), agent=agent, until_idle=True)))
        return self.sender.texts()

    @asynccontextmanager
    async def serving(self, agent=None, *entrances):
        """Serve while the block runs; then leave as a process does that is asked to."""
        task = asyncio.create_task(self.app.work(self.served(*entrances), agent=agent))
        try:
            yield task
        finally:
            await leave(task)

    # --- what a process that died left behind

    def die(self, *said, calls=(), results=(), attempts=1, holder=None):
        """Leave a turn about these messages as a process does that is killed in it; return its lineage."""
        results_of_acceptance = self.say(*said) if said else ()
        lineage_id = self.app.get_or_create_session(self.source()).lineage_id
        for _ in range(attempts):
            self._die_once(lineage_id, [one.id for one in results_of_acceptance], calls, results, holder)
        return lineage_id

    def _die_once(self, lineage_id, ids, calls, results, holder):
        store, now = self.app.store, self.clock.now()
        items = [store.inbox_item(one) for one in ids]
        lease = store.lease(lineage_id)
        dead = attrs.evolve(holder_here(FEISHU, items[0].session_key), **(holder or gone()))
        begun = store.apply(
            Begin(
                lineage_id=lineage_id,
                turn_id=new_turn_id(now),
                holder=dead,
                now=now,
                ttl_ms=30_000,
                drafts=tuple(
                    MessageDraft(role=USER, content=item.text, timestamp=now, inbox_id=item.id) for item in items
                ),
                presumed_dead=None if lease.holder is None else LeaseStamp(lease.token, lease.renewals),
                again=frozenset(ids) if lease.holder is not None else frozenset(),
            )
        )
        assert isinstance(begun, Begun), begun
        fence = Fence(lineage_id, begun.turn.id, begun.lease.token)
        if calls:
            asked = tuple(ToolCall(id=call_id, name=name, effect=effect) for call_id, name, effect in calls)
            rows = [MessageDraft(role=ASSISTANT, content="", timestamp=now, tool_calls=asked)]
            rows += [
                MessageDraft(
                    role=TOOL,
                    content=text,
                    timestamp=now,
                    tool_call_id=call_id,
                    tool_name="tool",
                    attachments=tuple(files),
                )
                for call_id, text, *files in results
            ]
            store.apply(Append(fence=fence, drafts=tuple(rows), now=now))

    # --- what there is

    def item(self, number):
        return self.app.store.inbox_item(number)

    def lineage(self, chat="oc_1", **fields):
        return self.app.store.route(self.app.session_key(self.source(chat, **fields))).lineage_id

    def turns(self, lineage_id=None):
        return [(turn.outcome, turn.attempt) for turn in self.app.store.turns(lineage_id or self.lineage(), ALL)]

    def rows(self, lineage_id=None):
        return [(row.role, row.content) for row in self.app.store.messages(lineage_id or self.lineage(), ALL)]

    def said(self, lineage_id=None):
        """Return what people said in a lineage, in order of its rows, without notes of the product."""
        rows = self.app.store.messages(lineage_id or self.lineage(), ALL)
        return [row.content for row in rows if row.role == USER and not row.kind]

    def pairs(self):
        """Return ids of the turns that began, and outcomes by id of those that ended: each told once or it shows."""
        self.app.hooks.flush()
        began = [values["turn"].id for values in self.ear.told("after_turn_start")]
        ended = [(values["turn"].id, values["turn"].outcome) for values in self.ear.told("after_turn_finish")]
        return began, ended


def gone():
    """Return the identity of a process that has ended: fields of a holder."""
    process = subprocess.Popen([sys.executable, "-S", "-c", ""], env=os.environ)
    process.wait(PATIENCE_S)
    return {"pid": process.pid, "started": "1"}


async def within(work):
    async with asyncio.timeout(PATIENCE_S):
        return await work


async def until(condition):
    """Give way to the others until ``condition()`` holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.002)


async def arrives(event):
    """Wait for a threading event off the loop."""
    assert await asyncio.to_thread(event.wait, PATIENCE_S)


async def leave(task):
    """Ask a serving task to leave, and wait until it has."""
    task.cancel()
    await asyncio.wait({task}, timeout=PATIENCE_S)
    assert task.cancelled(), task


@pytest.fixture
def open_hall(profile, ear):
    """Return a function that opens a hall on a fresh profile."""

    def make(settings=None, **options):
        chosen = {"inbox.batch_window_s": 0.0} | (settings or {})
        return Hall(profile(chosen, **options), ear)

    return make


@pytest.fixture
def hall(open_hall):
    return open_hall()


@pytest.fixture
def wait_until():
    return until


@pytest.fixture
def wait_for():
    return arrives


@pytest.fixture
def leaves():
    return leave


@pytest.fixture
def elsewhere():
    """Identity of a process on another machine: nobody here can know whether it lives."""
    return {"host": "elsewhere", "boot_id": "another boot", "pid": 1, "started": "1"}


@pytest.fixture
def dead_process():
    """Identity of a process that has ended: fields of a holder."""
    return gone()


@pytest.fixture
def dead_waiter():
    """Return a function that leaves a message whose sender waited in a process that ended; it returns the row."""

    def make(hall):
        source = hall.source()
        waiter = attrs.evolve(holder_here(FEISHU, hall.app.session_key(source)), **gone())
        draft = InboxDraft(
            session_key=hall.app.session_key(source),
            source=source,
            entrance=FEISHU,
            text="forsaken",
            accepted_at=hall.clock.now(),
            waiter=waiter,
        )
        (taken,) = hall.app.store.apply(Accept(drafts=(draft,), now=hall.clock.now()))
        return taken.id

    return make
