"""Gateways that are killed under load: ``python -m toy_faults [--platform weixin] [--kills N] [--seed N] [--keep]``.

Two gateways of one profile stand in line for the account, and one of the two is killed again and again, mostly the one
that serves. The platform says messages twice, loses acknowledgements, loses the answers to sends, and hangs up. In the
end every message has one answer in its own chat, in order; a further one says that it may be a repeat. What the
platform is and does is a *stage*: the toy's stands below, WeChat's in ``weixin_faults``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import shutil
import signal
import sys
import tempfile
import time
from contextlib import suppress
from random import Random

import attrs
from toy_chat import ToyServer
from toy_process import ToyHome

__all__ = ["Outcome", "Plan", "play", "verdict"]

CHATS = 6
MOST_OPEN = 240
"""Messages without an answer at which people wait: a slow machine makes a run slow, and not its queues overflow."""
END_S = 90
SETTINGS = """
[gateway]
recovery_attempts = 10
retry_first_s = 0.02
retry_most_s = 0.2
stream_interval_s = 0.02
[outbox]
retry_first_s = 0.02
retry_most_s = 0.2
attempts = 1000
send_timeout_s = 0.5
"""
_REPEAT = "(may be a repeat) "


@attrs.frozen(kw_only=True)
class Plan:
    """``pause_s``: between two kills, at least and at most. gentle: gateways are asked to leave. mutant: of a stage."""

    folder: str
    kills: int
    seed: int
    platform: str = "toy"
    idempotent: bool = False
    gentle: bool = False
    mutant: str = ""
    pause_s: tuple = (0.3, 1.2)


@attrs.frozen(kw_only=True)
class Outcome:
    """What was said (chat and text, in order), and what people saw (chat and text, in order); ``other``: what the
    stage itself found wrong."""

    said: list
    seen: list
    acked: dict
    killed: int
    waiting: int
    other: list = attrs.field(factory=list)


async def play(plan, tell=print):
    """Run a plan and return what came of it."""
    dice, stage, said = Random(plan.seed), await STAGES[plan.platform](plan).start(), []
    talking = asyncio.create_task(_talk(stage, dice, said))
    try:
        processes = [stage.run(), stage.run()]
        for number in range(plan.kills):
            await asyncio.sleep(dice.uniform(*plan.pause_s))
            at = number % 2
            processes[at].send_signal(stage.signal(dice))
            await asyncio.to_thread(processes[at].wait)
            processes[at] = stage.run()
            if number % 20 == 19:
                tell(f"{number + 1} kills, {len(said)} messages, {len(stage.seen())} answers")
        if not plan.kills:
            await asyncio.sleep(sum(plan.pause_s))
        talking.cancel()
        await asyncio.gather(talking, return_exceptions=True)
        await stage.calm(said)
        left = await _until_quiet(stage.home)
        waiting = (await asyncio.to_thread(stage.home.json, "sessions", "stats"))["waiting"]
        other = left + await asyncio.to_thread(stage.found, said)
    finally:
        talking.cancel()
        stage.home.close()
        await stage.stop()
    return Outcome(said=said, seen=stage.seen(), acked=stage.acked(), killed=plan.kills, waiting=waiting, other=other)


async def _talk(stage, dice, said):
    """Say something in some chat again and again, and let things go wrong on the way."""
    while True:
        await asyncio.sleep(dice.uniform(*stage.between_s))
        await stage.room(said)
        await stage.say(dice, said)
        await stage.mischief(dice)


async def _until_quiet(home):
    """Return once nothing is to be sent any more; what is left when patience ends, in words."""
    with suppress(TimeoutError):
        async with asyncio.timeout(END_S):
            while await asyncio.to_thread(_open_rows, home):
                continue
    return [f"lost: delivery {one['id']} still waits: {one['error']}" for one in _open_rows(home)]


def _open_rows(home):
    return [one for one in home.json("outbox", "list") if one["status"] in ("waiting", "sending")]


def answered(seen):
    """Return the texts that have an answer."""
    return {text.rpartition(" ")[2] for _, text in seen}


class ToyStage:
    """The toy: what is said twice, acknowledgements and answers that get lost, connections that are cut."""

    between_s = (0.005, 0.06)

    def __init__(self, plan):
        self._plan = plan
        self.server = ToyServer(idempotent=plan.idempotent)
        self.home = None

    async def start(self):
        await self.server.start()
        toy = f"edits = true\nmax_length = 4000\nidempotent_send = {json.dumps(self._plan.idempotent)}"
        self.home = ToyHome(self._plan.folder, self.server.port, settings=SETTINGS, toy=toy)
        return self

    def run(self):
        # Where a key is taken once, no draft is left behind: there answers are shown as they are written.
        return self.home.run(*(("--agent", "stutter") if self._plan.idempotent else ()))

    def signal(self, _dice):
        return signal.SIGTERM if self._plan.gentle else signal.SIGKILL

    async def room(self, said):
        """Return once not too much is open."""
        await self.server.until(lambda: len(said) - len(self.server.shown) < MOST_OPEN, END_S)

    async def say(self, dice, said):
        chat, text = f"c{dice.randrange(CHATS)}", f"message-{len(said) + 1}."
        said.append((chat, text))
        await self.server.say(text, chat=chat, user=chat, times=dice.choice((1, 1, 2)))

    async def mischief(self, dice):
        chance = dice.random()
        if chance < 0.1:
            self.server.lose_acks += 1
        elif chance < 0.2:
            self.server.answers.append(dice.choice(("error", "lost")))
        elif chance < 0.22:
            await self.server.drop()

    async def calm(self, said):
        """Let nothing go wrong any more, and return once every message has an answer."""
        self.server.answers.clear()
        self.server.lose_acks = 0
        # What is missing by then is told by the verdict.
        with suppress(TimeoutError):
            await self.server.until(lambda: answered(self.seen()) >= {text for _, text in said}, END_S)

    def seen(self):
        return [(one.chat, one.text) for one in self.server.shown]

    def acked(self):
        return dict(self.server.acked)

    def found(self, _said):
        return []

    async def stop(self):
        await self.server.stop()


def _weixin(plan):
    from weixin_faults import WeixinStage

    return WeixinStage(plan)


STAGES = {"toy": ToyStage, "weixin": _weixin}


def verdict(outcome):
    """Return what must not be, in words; empty when every promise was kept."""
    wrong = []
    chats = {text: chat for chat, text in outcome.said}
    plain = {text: 0 for _, text in outcome.said}
    marked = dict(plain)
    order, answers = {}, {}
    for chat, text in outcome.seen:
        found = re.fullmatch(r"(\(may be a repeat\) )?echo (\d+): (message-\d+\.)", text)
        if found is None or found[3] not in chats:
            wrong.append(f"not an answer to anything: {text!r}")
            continue
        if chats[found[3]] != chat:
            wrong.append(f"crossed: {text!r} was said in {chats[found[3]]}, and answered in {chat}")
        (marked if found[1] else plain)[found[3]] += 1
        if found[3] not in answers.setdefault(chat, []):
            answers[chat].append(found[3])
            order.setdefault(chat, []).append(int(found[2]))
    wrong += [f"doubled: {text} has {count} answers that do not say so" for text, count in plain.items() if count > 1]
    wrong += [f"lost: {text} has no answer" for text in plain if not plain[text] + marked[text]]
    for chat, numbers in order.items():
        said = [text for place, text in outcome.said if place == chat]
        if answers[chat] != [text for text in said if text in answers[chat]]:
            wrong.append(f"interleaved: {chat} was not answered in the order in which it was written")
        if numbers != sorted(numbers):
            wrong.append(f"interleaved: the session of {chat} was answered as {numbers}")
    if outcome.waiting:
        wrong.append(f"lost: {outcome.waiting} messages still wait")
    return wrong + outcome.other


def main(arguments=None):
    """Run what the arguments say and return the exit status."""
    parser = argparse.ArgumentParser(prog="toy_faults", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=60, help="gateways to kill (60)")
    parser.add_argument("--seed", type=int, help="of messages and kills; the moments still differ from run to run")
    parser.add_argument("--idempotent", action="store_true", help="the platform takes a key once")
    parser.add_argument("--platform", choices=sorted(STAGES), default="toy", help="what the gateways serve (toy)")
    parser.add_argument("--gentle", action="store_true", help="SIGTERM alone; nothing that gets lost comes again")
    parser.add_argument("--mutant", default="", help="a rule that the platform's plugin forgets (weixin_hurry.MUTANTS)")
    parser.add_argument("--folder", help="where the home is made (the system's temporary folder)")
    parser.add_argument("--keep", action="store_true", help="keep the home")
    asked = parser.parse_args(arguments)
    seed = asked.seed if asked.seed is not None else time.time_ns() % 1_000_000
    folder = tempfile.mkdtemp(prefix="hermes-gateway-faults-", dir=asked.folder)
    print(f"seed {seed}, {asked.kills} kills, {folder}", flush=True)
    plan = Plan(
        folder=folder,
        kills=asked.kills,
        seed=seed,
        platform=asked.platform,
        idempotent=asked.idempotent,
        gentle=asked.gentle,
        mutant=asked.mutant,
    )
    outcome = asyncio.run(play(plan, lambda line: print(line, flush=True)))
    wrong = verdict(outcome)
    for one in wrong[:20]:
        print(one)
    if asked.keep or wrong:
        print(f"everything is kept in {folder}")
    else:
        shutil.rmtree(folder)
    repeats = sum(text.startswith(_REPEAT) for _, text in outcome.seen)
    print(f"{outcome.killed} kills, {len(outcome.said)} messages: {len(wrong)} wrong, {repeats} said to be repeats")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
