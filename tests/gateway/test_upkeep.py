"""What a process that serves does beside: maintenance and indexing."""

from __future__ import annotations

import asyncio

from hermes_core.gateway import upkeep
from hermes_hookspecs.source import Entrance


class Index:
    """An index that counts how often it is to catch up."""

    name = "counting"

    def __init__(self, index):
        self._index, self.budgets = index, []

    def __getattr__(self, name):
        return getattr(self._index, name)

    def catch_up(self, *, budget_s):
        self.budgets.append(budget_s)
        return 0


def test_who_serves_closes_dead_turns_of_entrances_that_nobody_serves(hall, wait_until, monkeypatch):
    monkeypatch.setattr(upkeep, "ROUND_S", 0.01)
    lineage_id = hall.die("slow")

    async def scene():
        async with hall.serving("echo", Entrance("slack")):
            await wait_until(lambda: hall.app.store.lease(lineage_id).holder is None)

    asyncio.run(scene())

    assert hall.app.store.active_turn(lineage_id) is None


def test_what_is_stored_while_a_process_serves_is_indexed(hall, wait_until):
    index = hall.app._search._index = Index(hall.app.search_index)

    async def scene():
        async with hall.serving("echo"):
            await hall.accept("find me")
            await wait_until(lambda: index.budgets)

    asyncio.run(scene())

    assert index.budgets
