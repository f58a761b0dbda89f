"""The soak as a command: ``make soak-platforms``, or ``make soak-platforms ARGS="--seconds 60"`` for a short one."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from pathlib import Path

from soak_harness.play import Plan, play
from soak_harness.rules import marked, verdict

__all__ = ["main"]

MOST_SHOWN = 20


def main(arguments=None):
    """Run what the arguments say and return the exit status."""
    parser = argparse.ArgumentParser(prog="soak_harness", description="Three platforms at once, killed under load.")
    parser.add_argument("--seconds", type=float, default=600, help="how long people talk (600)")
    parser.add_argument("--people", type=int, default=50, help="how many (50)")
    parser.add_argument("--every", type=float, default=20, help="seconds between two kills of the gateway (20)")
    parser.add_argument("--pause", type=float, default=8, help="seconds between two messages of a person, about (8)")
    parser.add_argument("--lock", type=float, default=10, help="seconds that a stranger locks the database, once (10)")
    parser.add_argument("--seed", type=int, help="of messages and faults; the moments still differ from run to run")
    parser.add_argument("--folder", help="where the home is made (the system's temporary folder)")
    parser.add_argument("--keep", action="store_true", help="keep the home also when all went well")
    asked = parser.parse_args(arguments)
    seed = asked.seed if asked.seed is not None else time.time_ns() % 1_000_000
    folder = Path(tempfile.mkdtemp(prefix="hermes-soak-", dir=asked.folder))
    print(f"seed {seed}, {asked.seconds:g} s, {asked.people} people, {folder}", flush=True)
    plan = Plan(
        folder=folder, seed=seed, seconds=asked.seconds, people=asked.people, every_s=asked.every,
        pause_s=asked.pause, lock_s=asked.lock,
    )  # fmt: skip
    began = time.monotonic()
    outcome = asyncio.run(play(plan, lambda line: print(f"{time.monotonic() - began:6.0f} s  {line}", flush=True)))
    wrong = verdict(outcome)
    for line in wrong[:MOST_SHOWN]:
        print(line)
    print(_numbers(outcome))
    if asked.keep or wrong:
        print(f"kept: {folder}")
    else:
        shutil.rmtree(folder)
    kinds = {kind: sum(line.startswith(kind) for line in wrong) for kind in ("lost", "doubled", "crossed")}
    others = len(wrong) - sum(kinds.values())
    counts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    print(f"{len(outcome.said)} messages, {outcome.kills} kills: {counts}, {others} otherwise wrong")
    return 1 if wrong else 0


def _numbers(outcome):
    found = outcome.latencies
    middle, late = (found[int(len(found) * part)] for part in (0.5, 0.99)) if found else (0, 0)
    bad = ", ".join(f"{count} {what}" for what, count in sorted(outcome.bad.items()))
    repeats = f"{marked(outcome)} answers marked as a possible repeat"
    return f"{bad}; {repeats}; an answer is there after {middle:.1f} s (p50), {late:.1f} s (p99)"


if __name__ == "__main__":
    sys.exit(main())
