"""Gateways that are killed under load: ``python -m toy_faults [--kills N] [--seed N] [--keep]``.

Two gateways of one profile stand in line for the account, and one of the two is killed again and again, mostly the one
that serves. The platform says messages twice, loses acknowledgements, loses the answers to sends, and hangs up. In the
end every message has one answer in its own chat, in order; a further one says that it may be a repeat.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import shutil
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
    """``pause_s``: between two kills, at least and at most."""

    folder: str
    kills: int
    seed: int
    idempotent: bool = False
    pause_s: tuple = (0.3, 1.2)


@attrs.frozen(kw_only=True)
class Outcome:
    """What was said (chat and text, in order), and what people saw (chat and text, in order)."""

    said: list
    seen: list
    acked: dict
    killed: int
    waiting: int


async def play(plan, tell=print):
    """Run a plan and return what came of it."""
    dice, server = Random(plan.seed), await ToyServer(idempotent=plan.idempotent).start()
    toy = f"edits = true\nmax_length = 4000\nidempotent_send = {json.dumps(plan.idempotent)}"
    home = ToyHome(plan.folder, server.port, settings=SETTINGS, toy=toy)
    # Where a key is taken once, no draft is left behind: there answers are shown as they are written.
    agent = ("--agent", "stutter") if plan.idempotent else ()
    said = []
    talking = asyncio.create_task(_talk(server, dice, said))
    try:
        processes = [home.run(*agent), home.run(*agent)]
        for number in range(plan.kills):
            await asyncio.sleep(dice.uniform(*plan.pause_s))
            at = number % 2
            processes[at].kill()
            await asyncio.to_thread(processes[at].wait)
            processes[at] = home.run(*agent)
            if number % 20 == 19:
                tell(f"{number + 1} kills, {len(said)} messages, {len(server.shown)} answers")
        talking.cancel()
        await asyncio.gather(talking, return_exceptions=True)
        server.answers.clear()
        server.lose_acks = 0
        await _until_quiet(server, home, said)
        waiting = (await asyncio.to_thread(home.json, "sessions", "stats"))["waiting"]
    finally:
        talking.cancel()
        home.close()
        await server.stop()
    seen = [(one.chat, one.text) for one in server.shown]
    return Outcome(said=said, seen=seen, acked=dict(server.acked), killed=plan.kills, waiting=waiting)


async def _talk(server, dice, said):
    """Say something in some chat again and again, and let things go wrong on the way."""
    while True:
        await asyncio.sleep(dice.uniform(0.005, 0.06))
        await server.until(lambda: len(said) - len(server.shown) < MOST_OPEN, END_S)
        chat, text = f"c{dice.randrange(CHATS)}", f"message-{len(said) + 1}."
        said.append((chat, text))
        await server.say(text, chat=chat, user=chat, times=dice.choice((1, 1, 2)))
        chance = dice.random()
        if chance < 0.1:
            server.lose_acks += 1
        elif chance < 0.2:
            server.answers.append(dice.choice(("error", "lost")))
        elif chance < 0.22:
            await server.drop()


async def _until_quiet(server, home, said):
    """Return once every message has an answer and nothing is to be sent any more."""
    # What is missing by then is told by the verdict.
    with suppress(TimeoutError):
        await server.until(lambda: _answered(server) >= {text for _, text in said}, END_S)
    async with asyncio.timeout(END_S):
        while await asyncio.to_thread(_is_busy, home):
            continue


def _is_busy(home):
    return any(one["status"] in ("waiting", "sending") for one in home.json("outbox", "list"))


def _answered(server):
    return {one.text.rpartition(" ")[2] for one in server.shown}


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
    return wrong


def main(arguments=None):
    """Run what the arguments say and return the exit status."""
    parser = argparse.ArgumentParser(prog="toy_faults", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=60, help="gateways to kill (60)")
    parser.add_argument("--seed", type=int, help="of messages and kills; the moments still differ from run to run")
    parser.add_argument("--idempotent", action="store_true", help="the platform takes a key once")
    parser.add_argument("--folder", help="where the home is made (the system's temporary folder)")
    parser.add_argument("--keep", action="store_true", help="keep the home")
    asked = parser.parse_args(arguments)
    seed = asked.seed if asked.seed is not None else time.time_ns() % 1_000_000
    folder = tempfile.mkdtemp(prefix="hermes-gateway-faults-", dir=asked.folder)
    print(f"seed {seed}, {asked.kills} kills, {folder}", flush=True)
    plan = Plan(folder=folder, kills=asked.kills, seed=seed, idempotent=asked.idempotent)
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
