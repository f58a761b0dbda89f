"""One process of a run: it serves one entrance of the store, feeds its chats, and asks at its own terminal."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import attrs

from fault_harness.agent import ScriptedAgent
from fault_harness.feeding import Asker, Feeder
from fault_harness.ledgers import Ledgers
from fault_harness.mutants import EARLY_ACK, mutate
from fault_harness.script import ENTRANCES, entrance_of_slot
from fault_harness.sending import PlatformSender
from hermes_core.app import HermesApp
from hermes_core.config import load_settings
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.ports.platform import PlatformAbilities, ServedEntrance
from hermes_hookspecs.source import Entrance

__all__ = ["SETTINGS", "Orders", "live", "opened", "work_to_the_end"]

SETTINGS = {
    "plugins.only": (),
    "routing.group_sessions_per_user": False,
    "turns.drain_s": 5,
    "compression.hygiene_hard_message_limit": 30,
    "inbox.batch_window_s": 0.01,
    "inbox.max_waiting": 1000,
    "outbox.retry_first_s": 0.02,
    "outbox.retry_most_s": 0.2,
    "outbox.attempts": 1000,
}
LEASE_TTL_S = 2.0
"""Shorter than the settings allow, so that many processes can stand still for longer than that."""
MAINTENANCE_S = 0.3
ABILITIES = PlatformAbilities(max_length=60)
"""Short, so that many answers have several parts."""


@attrs.frozen(kw_only=True)
class Orders:
    """What a process is started for.

    Attributes:
        home: folder of the profile. folder: where the ledgers lie. ttl_s: life of a lease.
        busy: what becomes of messages that come while a turn runs, at each entrance.
        mutant: the rule that it does not keep, ``""`` for none.
        last_batches: ``None`` works until it is killed; a number feeds so many batches, works until nothing is left to
            do, and ends.
    """

    home: str
    folder: str
    seed: int
    slot: int
    durability: str = "full"
    ttl_s: float = LEASE_TTL_S
    busy: tuple[str, str] = ("queue", "queue")
    mutant: str = ""
    last_batches: int | None = None


def opened(orders):
    """Return the open profile of a run."""
    wanted = SETTINGS | {"storage.durability": orders.durability}
    wanted |= {f"platforms.{name}.busy": policy for name, policy in zip(ENTRANCES, orders.busy, strict=True)}
    settings = load_settings(Path(orders.home), None, wanted, {})
    turns = attrs.evolve(settings.turns, lease_ttl_s=orders.ttl_s, lease_renew_s=orders.ttl_s / 5)
    return HermesApp(attrs.evolve(settings, turns=turns))


def live(orders):
    """Be a process of the run; returns only when the orders say so."""
    mutate(orders.mutant)
    with opened(orders) as app:
        ledgers = Ledgers(orders.folder)
        app.hooks.host.register("harness.listener", _Listener(ledgers))
        asyncio.run(_work(app, ledgers, orders))


async def _work(app, ledgers, orders):
    agent = ScriptedAgent(ledgers)
    platform = entrance_of_slot(orders.slot)
    served = [
        ServedEntrance(entrance=Entrance(platform), sender=PlatformSender(ledgers.sends.path), abilities=ABILITIES)
    ]
    feeder = Feeder(app, ledgers, seed=orders.seed, slot=orders.slot, acknowledges_first=orders.mutant == EARLY_ACK)
    if orders.last_batches is not None:
        await feeder.run(orders.last_batches)
        await work_to_the_end(app, served, agent)
        return
    async with asyncio.TaskGroup() as group:
        group.create_task(app.work(served, agent=agent))
        group.create_task(feeder.run())
        group.create_task(Asker(app, ledgers, agent, slot=orders.slot).run())
        group.create_task(_maintain(app))


async def work_to_the_end(app, served, agent):
    """Work until nothing is to be sent any more, not even a little later."""
    entrances = [one.entrance for one in served]
    while True:
        await app.work(served, agent=agent, until_idle=True)
        read = app.store.submit_read(lambda reader: reader.next_deliveries(entrances, limit=1))
        if not await asyncio.wrap_future(read):
            return
        await asyncio.sleep(0.02)


async def _maintain(app):
    """Do what a gateway does beside its work, again and again."""
    while True:
        await asyncio.sleep(MAINTENANCE_S)
        await asyncio.to_thread(app.maintain)


class _Listener:
    """A plugin that writes down what it is told of turns."""

    def __init__(self, ledgers):
        self._events = ledgers.events

    @hookimpl
    def hermes_after_turn_start(self, turn):
        self._events.write(pid=os.getpid(), name="start", turn=turn.id, outcome=turn.outcome)

    @hookimpl
    def hermes_after_turn_finish(self, turn):
        self._events.write(pid=os.getpid(), name="finish", turn=turn.id, outcome=turn.outcome)
