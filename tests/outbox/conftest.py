"""A work bench for the outbox: the real deliverer over a real store, a platform that records, a clock to move."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from hashlib import sha256

import attrs
import pytest

from hermes_core.config.sections import OutboxSettings
from hermes_core.leases import holder_here
from hermes_core.outbox.deliverer import Deliverer
from hermes_core.turns.waker import LocalWaker
from hermes_hookspecs.files import OutgoingFile
from hermes_hookspecs.ids import SessionKey
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.messages import Attachment
from hermes_hookspecs.operations import ClaimDelivery, Deliver, SplitDelivery
from hermes_hookspecs.outbox import DeliveryDraft, PartDraft, delivery_key
from hermes_hookspecs.ports.platform import PlatformAbilities, ServedEntrance
from hermes_hookspecs.source import Entrance, SessionSource
from hermes_hookspecs.testing.platform import RecordingSender

PATIENCE_S = 20
FEISHU = Entrance("feishu")


class Ear:
    """A plugin that writes down what it is told of deliveries."""

    def __init__(self):
        self.told = []

    @hookimpl
    def hermes_after_delivery(self, lineage_id, entrance, status, attempts):
        self.told.append((lineage_id, str(entrance), status, attempts))


class OutboxBench:
    """One profile with its outbox; everything a test says to it is short."""

    def __init__(self, app, ear):
        self.app, self.ear, self.clock, self.store = app, ear, app.clock, app.store
        self.waker = LocalWaker(app.store.change_mark)
        self.sender = RecordingSender()
        self._keys = 0

    def target(self, chat="oc_1", **fields):
        known = {"platform": "feishu", "chat_id": chat, "user_id": "ou_1", "message_id": "om_1"}
        return SessionSource(**(known | fields))

    def put(self, text="hello", chat="oc_1", *, lineage_id=None, key=None, files=(), **fields):
        """Store a delivery; return its row's id."""
        self._keys += 1
        draft = DeliveryDraft(
            key=key or delivery_key("test", self._keys),
            target=self.target(chat, **fields),
            text=text,
            session_key=SessionKey(f"agent:main:feishu:dm:{chat}"),
            lineage_id=lineage_id,
            files=tuple(files),
        )
        (delivery_id,) = self.store.apply(Deliver(drafts=(draft,), now=self.clock.now()))
        return delivery_id

    def file(self, name="report.pdf", data=b"%PDF", *, kept=True):
        """Return a file of an answer, as an agent hands it over; its bytes are there where it is kept."""
        named = OutgoingFile(name=name, data=data)
        number = self.app.attachments.put(data) if kept else sha256(data).hexdigest()
        return Attachment(kind=named.kind, name=named.name, media_type=named.media_type, size=named.size, sha256=number)

    def row(self, delivery_id):
        return self.store.delivery(delivery_id)

    def status(self, *ids):
        return [self.row(each).status for each in ids]

    def deliverer(self, sender=None, *, store=None, settings=None, route=lambda source: None, ttl_s=30.0, **abilities):
        served = ServedEntrance(entrance=FEISHU, sender=sender or self.sender, abilities=PlatformAbilities(**abilities))
        return Deliverer(
            store=store or self.store,
            clock=self.clock,
            hooks=self.app.hooks,
            waker=self.waker,
            served=(served,),
            settings=OutboxSettings(**(settings or {})),
            ttl_s=ttl_s,
            thread_route=route,
            files=lambda: self.app.attachments,
        )

    def drain(self, *arguments, **options):
        """Send what is due with a deliverer of its own."""
        deliverer = self.deliverer(*arguments, **options)
        asyncio.run(within(deliverer.until_idle()))
        return deliverer

    def claimed_by(self, delivery_id, parts=("hello",), **holder):
        """Leave a delivery claimed and split, by this process or by the one that ``holder`` describes."""
        row = self.row(delivery_id)
        claim = ClaimDelivery(
            delivery_id=delivery_id,
            owner=attrs.evolve(holder_here(FEISHU, None), **holder),
            expected_attempt=row.attempt,
            now=self.clock.now(),
        )
        attempt = self.store.apply(claim).attempt
        drafts = tuple(PartDraft(text=part) for part in parts)
        if drafts:
            split = SplitDelivery(delivery_id=delivery_id, attempt=attempt, parts=drafts, now=self.clock.now())
            self.store.apply(split)
        return attempt

    def told(self):
        self.app.hooks.flush()
        return [(status, attempts) for _, _, status, attempts in self.ear.told]


class Untimely:
    """A store whose writes of one kind fail, a number of times each."""

    def __init__(self, store, **failing):
        self._store = store
        self.failing = failing

    def __getattr__(self, name):
        return getattr(self._store, name)

    def perform(self, operation):
        errors = self.failing.get(type(operation).__name__)
        if not errors:
            return self._store.perform(operation)
        failed = asyncio.get_running_loop().create_future()
        failed.set_exception(errors.pop(0))
        return failed


async def within(work):
    async with asyncio.timeout(PATIENCE_S):
        return await work


async def until(condition):
    """Give way to the others until ``condition()`` holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event
            await asyncio.sleep(0.001)


@pytest.fixture
def ear():
    return Ear()


@pytest.fixture
def bench(profile, ear, clock):
    return OutboxBench(profile(clock=clock), ear)


@pytest.fixture
def untimely():
    return Untimely


@pytest.fixture
def wait_until():
    return until


@pytest.fixture
def wait_within():
    return within


@pytest.fixture
def dead_process():
    """Identity of a process that has ended: fields of a holder."""
    process = subprocess.Popen([sys.executable, "-c", ""], env=os.environ)
    process.wait(PATIENCE_S)
    return {"pid": process.pid, "started": "1"}


@pytest.fixture
def elsewhere():
    """Identity of a process on another machine: nobody here can know whether it lives."""
    return {"host": "elsewhere", "boot_id": "another boot", "pid": 1, "started": "1"}
