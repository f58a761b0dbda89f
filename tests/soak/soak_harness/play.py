"""The soak itself: processes, kills, a stranger with a lock, and what is left when all is quiet."""

from __future__ import annotations

import asyncio
import json
import os
import time
from pathlib import Path
from random import Random

import apsw
import attrs

from hermes_demo.house import House
from hermes_feishu.testing import FakeFeishu
from hermes_slack.testing import FakeSlack
from hermes_weixin.testing import FakeWeixin
from soak_harness.crowd import crowd
from soak_harness.weather import Weather

__all__ = ["Outcome", "Plan", "play"]

PLUGIN = str(Path(__file__).resolve().parent.parent / "soak_plugin")
QUIET_S, START_S = 120, 120
TOLD_S = 30


@attrs.frozen(kw_only=True)
class Plan:
    """``every_s``: between two kills. ``pause_s``: between two messages of a person, about. ``lock_s``: 0 for none."""

    folder: Path
    seed: int
    seconds: float = 600.0
    people: int = 50
    every_s: float = 20.0
    pause_s: float = 8.0
    lock_s: float = 10.0


@attrs.frozen(kw_only=True)
class Outcome:
    """What was said, what people saw (place and text, in order), what the store holds, and what was done to it.

    ``latencies``: seconds from each message to the sight of its answer, about. ``statuses``: exit status of the last
    gateway. ``unrest``: what is not at rest, by what it is.
    """

    said: list
    seen: list
    lineages: list
    unrest: dict
    bad: dict
    kills: int
    latencies: list
    faults: list


async def play(plan, tell=print):
    """Run a plan and return what came of it."""
    dice = Random(plan.seed)
    fakes = {"feishu": FakeFeishu(), "slack": FakeSlack(), "weixin": FakeWeixin()}
    fakes["weixin"].server.replays = True  # what a kill takes from a poll is repeated: so every message counts
    for fake in fakes.values():
        await fake.start()
    house = _house(plan.folder, fakes)
    weather = Weather(fakes, dice, plan.pause_s)
    watch = _Watch(fakes, weather)
    tasks = []
    try:
        for fake in fakes.values():
            for words in fake.logins():
                await house.run(*words)
        people = crowd(plan.people)
        tasks = [asyncio.create_task(weather.talk(person)) for person in people]
        tasks.append(asyncio.create_task(watch.look(tell)))
        kills, gateway = await _kill(plan, house, fakes, dice, tell)
        talking, looking = tasks[:-1], tasks[-1]
        for task in talking:
            task.cancel()
        await asyncio.gather(*talking, return_exceptions=True)
        await weather.clear()
        await watch.until_quiet(tell)
        await asyncio.sleep(3)  # for an answer too many
        looking.cancel()
        gateway.terminate()
        status = await gateway.wait()
        unrest = await _unrest(house) | {"gateways that left badly": int(status != 0)}
        exported = await house.run("sessions", "export", "-")
        seen = await watch.seen()
    finally:
        for task in tasks:
            task.cancel()
        house.kill()
        await house.close()
        for fake in fakes.values():
            await fake.stop()
    return Outcome(
        said=weather.said,
        seen=seen,
        lineages=[json.loads(row) for row in exported.out.splitlines()],
        unrest=unrest,
        bad=dict(weather.bad),
        kills=kills,
        latencies=sorted(watch.latencies.values()),
        faults=[*fakes["feishu"].world.faults, *fakes["slack"].server.faults, *fakes["weixin"].server.faults],
    )


def _house(folder, fakes):
    _as_if_installed(folder / "site")
    config = {
        "agent": {"runner": "soak"},
        "inbox": {"batch_window_s": 0},
        "turns": {"parallel": 32},
        "gateway": {"recovery_attempts": 10, "retry_first_s": 0.05, "retry_most_s": 1, "stream_interval_s": 0.3},
        "outbox": {"retry_first_s": 0.05, "retry_most_s": 1, "attempts": 1000},
        "platforms": {name: {"dm_policy": "open", "group_policy": "open"} for name in fakes},
        "plugins": {name: dict(fake.table()) for name, fake in fakes.items()},
    }
    environ = {name: value for fake in fakes.values() for name, value in fake.environ().items()}
    environ["PYTHONPATH"] = os.pathsep.join([str(folder / "site"), PLUGIN])
    return House(folder / "home", config=config, environ=environ, plugins=("cli", "soak", *fakes))


def _as_if_installed(site):
    info = site / "soak_agent-1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: soak-agent\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[hermes.plugins.v1]\nsoak = soak_agent:SoakPlugin\n", encoding="utf-8")


async def _kill(plan, house, fakes, dice, tell):
    """Kill the gateway again and again, let a stranger lock the database once, and return kills and the last one."""
    kills, gateway = 0, await _started(house, fakes)
    ends, locks_at = time.monotonic() + plan.seconds, time.monotonic() + plan.seconds / 2
    locking = None
    while time.monotonic() + plan.every_s < ends:
        await asyncio.sleep(plan.every_s * dice.uniform(0.8, 1.2))
        gateway.kill()
        await gateway.wait()
        kills += 1
        if plan.lock_s and locking is None and time.monotonic() >= locks_at:
            tell(f"a stranger locks the database for {plan.lock_s:g} s")
            locking = asyncio.create_task(asyncio.to_thread(_lock, house.folder / "state.db", plan.lock_s))
        await asyncio.sleep(dice.uniform(0, 1))
        gateway = await _started(house, fakes)
    await asyncio.sleep(max(0.0, ends - time.monotonic()))
    if locking is not None:
        await locking
    return kills, gateway


async def _started(house, fakes):
    """Start a gateway and return it once it is connected: on a machine that is busy, a start can take very long."""
    before = fakes["feishu"].world.connections_made
    gateway = await house.start()
    await fakes["feishu"].connected(before + 1, START_S)
    return gateway


def _lock(path, seconds):
    stranger = apsw.Connection(str(path))
    stranger.set_busy_timeout(10_000)
    stranger.execute("BEGIN IMMEDIATE")
    time.sleep(seconds)
    stranger.execute("ROLLBACK")
    stranger.close()


async def _unrest(house):
    stats = await house.asked("sessions", "stats")
    unsent, leases = await house.asked("outbox", "list"), await house.asked("leases")
    return {"waiting": stats["waiting"], "unsent": len(unsent), "leases held": len(leases)}


class _Watch:
    """Looks at what people see, twice a second."""

    def __init__(self, fakes, weather):
        self.latencies = {}
        self._fakes, self._weather = fakes, weather
        self._open = {}
        self._taken = 0

    async def seen(self):
        """Return place and text of every message of a bot, by platform and in its order."""
        return [((name, one.chat_id), one.text) for name, fake in self._fakes.items() for one in await fake.sent(0)]

    async def look(self, tell):
        """Note when answers are whole, until cancelled; tell how it goes."""
        told = time.monotonic()
        while True:
            await asyncio.sleep(0.5)
            await self._note()
            if time.monotonic() - told > TOLD_S:
                told = time.monotonic()
                tell(f"{self._taken} messages, {len(self.latencies)} answered, {dict(self._weather.bad)}")

    async def until_quiet(self, tell):
        """Return once every message has its answer, or none came for long; the verdict tells what is missing."""
        answered, since = 0, time.monotonic()
        while len(self.latencies) < len(self._weather.said) and time.monotonic() - since < QUIET_S:
            if len(self.latencies) > answered:
                answered, since = len(self.latencies), time.monotonic()
            await asyncio.sleep(0.5)
        tell(f"quiet: {len(self._weather.said)} messages, {len(self.latencies)} answered")

    async def _note(self):
        for one in self._weather.said[self._taken :]:
            self._open[one.text] = one
        self._taken = len(self._weather.said)
        now = time.monotonic()
        for _, text in await self.seen():
            before, after, tail = text.partition(" after ")
            asked = before.rpartition(" ")[2]
            if after and tail.count("-") == 1 and tail[-1:].isdigit() and asked in self._open:
                self.latencies[asked] = now - self._open.pop(asked).at_s
