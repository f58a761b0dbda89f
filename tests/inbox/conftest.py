"""A profile's door, and what stands behind it."""

from __future__ import annotations

import asyncio

import pytest

from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.ports.platform import ServedEntrance
from hermes_hookspecs.source import Entrance, SessionSource
from hermes_hookspecs.testing.platform import RecordingSender

PATIENCE_S = 30
FEISHU = Entrance("feishu")


class Door:
    """A profile's door; everything a test says to it is short."""

    def __init__(self, app):
        self.app = app
        self.sender = RecordingSender()

    def source(self, chat="oc_1", **fields):
        return SessionSource(**({"platform": "feishu", "chat_id": chat, "user_id": "ou_1"} | fields))

    def event(self, text, *identities, chat="oc_1", source=None, **fields):
        return MessageEvent(
            source=source or self.source(chat),
            text=text,
            identities=identities,
            received_at=self.app.clock.now(),
            **fields,
        )

    def accept(self, *events, **options):
        return asyncio.run(self.app.accept(events, **options))

    def served(self, *entrances):
        return [ServedEntrance(entrance=one, sender=self.sender) for one in entrances or (FEISHU,)]

    def work(self, agent="echo", *entrances):
        async def scene():
            async with asyncio.timeout(PATIENCE_S):
                await self.app.work(self.served(*entrances), agent=agent, until_idle=True)

        asyncio.run(scene())
        return self.sender.texts()

    def item(self, number):
        return self.app.store.inbox_item(number)

    def cursor(self):
        entry = self.app.store.state("feishu", "cursor", now=self.app.clock.now())
        return None if entry is None else entry.value


@pytest.fixture
def open_door(profile):
    def make(settings=None, **options):
        return Door(profile({"inbox.batch_window_s": 0.0} | (settings or {}), **options))

    return make


@pytest.fixture
def door(open_door):
    return open_door()
