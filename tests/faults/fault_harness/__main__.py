"""Kill and check: ``python -m fault_harness [--kills N] [--mutant NAME] [--points A,B] [--seed N] [--keep]``.

The last line says what was seen; the exit status is 0 only when nothing was lost, doubled or interleaved.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections import Counter

from fault_harness.facts import gather
from fault_harness.killing import Plan, Run
from fault_harness.mutants import MUTANTS
from fault_harness.rules import DOUBLED, INTERLEAVED, LOST, check

_SHOWN = 12


def main(arguments=None):
    """Run what the arguments say and return the exit status."""
    asked = _parser().parse_args(arguments)
    seed = asked.seed if asked.seed is not None else time.time_ns() % 1_000_000
    folder = tempfile.mkdtemp(prefix="hermes-faults-", dir=asked.folder)
    plan = Plan(
        folder=folder,
        kills=asked.kills,
        seed=seed,
        mutant=asked.mutant,
        durability=asked.durability,
        freezes=asked.freezes,
        quiet_s=asked.quiet,
        busy=None if asked.busy is None else tuple(asked.busy.split(",")),
        points=tuple(filter(None, asked.points.split(","))),
    )
    rule = f" without a rule ({asked.mutant})" if asked.mutant else ""
    began = time.monotonic()
    run = Run(plan, lambda line: print(f"{time.monotonic() - began:5.0f} s  {line}", flush=True))
    print(f"seed {seed}, {asked.kills} kills{rule}, busy {' and '.join(run.busy)}, {folder}", flush=True)
    tally = run.go()
    facts = gather(run.database, run.ledgers)
    breaches = check(facts)
    _report(tally, facts, breaches, time.monotonic() - began)
    failed = bool(breaches or tally.failures)
    if asked.keep or (failed and not asked.mutant):
        print(f"everything is kept in {folder}")
    else:
        shutil.rmtree(folder)
    count = Counter(breach.promise for breach in breaches)
    lost = count[LOST] + len(tally.failures)
    print(f"{tally.killed} kills: {lost} lost, {count[DOUBLED]} doubled, {count[INTERLEAVED]} interleaved")
    return 1 if failed else 0


def _parser():
    parser = argparse.ArgumentParser(prog="fault_harness", description="Kill processes and prove that nothing is lost.")
    parser.add_argument("--kills", type=int, default=1000, help="processes to kill (1000)")
    parser.add_argument("--seed", type=int, help="of messages and kills; the moments still differ from run to run")
    parser.add_argument("--mutant", default="", choices=["", *MUTANTS], help="a rule that the processes forget")
    parser.add_argument("--points", default="", help="kill only at these points, NAME or NAME:ACTION, with commas")
    parser.add_argument("--freezes", type=float, default=10.0, help="seconds between two frozen processes, 0 for none")
    parser.add_argument("--busy", help="busy policy of each entrance, as queue,steer (by the seed)")
    parser.add_argument("--quiet", type=float, default=60.0, help="seconds that the last processes may take (60)")
    parser.add_argument("--durability", default="full", choices=["full", "normal"])
    parser.add_argument("--folder", help="where the store of the run is made (the system's temporary folder)")
    parser.add_argument("--keep", action="store_true", help="keep the store and the ledgers")
    return parser


def _report(tally, facts, breaches, seconds):
    outcomes = Counter(turn.outcome for turn in facts.turns)
    kinds = Counter(row.kind for row in facts.deliveries)
    states = Counter(row.status for row in facts.inbox)
    keys = Counter(sending.key for sending in facts.sendings)
    parents = {one.parent for one in facts.sessions}
    print(f"{seconds:.0f} s, {tally.frozen} processes frozen and woken again")
    print(f"inbox: {_counts(states)}; acknowledged: {len(facts.acks)}")
    print(f"turns: {_counts(outcomes)}; tool effects: {len(facts.effects)}")
    print(f"compressions: {_counts(Counter(one.end_reason for one in facts.sessions if one.id in parents))}")
    print(
        f"deliveries: {_counts(kinds)}; parts received: {len(keys)}, more than once: {sum(keys.values()) - len(keys)}"
    )
    print(f"marked as possible repeats: {sum(sending.is_marked for sending in facts.sendings)}")
    print(f"killed at: {_counts(tally.kills)}")
    for failure in tally.failures:
        print(failure)
    for name, some in _by_rule(breaches).items():
        print(f"BROKEN {name} ({len(some)} times)")
        for breach in some[:_SHOWN]:
            print(f"    {breach.promise}: {breach.seen}")


def _by_rule(breaches):
    found = {}
    for breach in breaches:
        found.setdefault(breach.rule, []).append(breach)
    return found


def _counts(counter):
    return ", ".join(f"{count} {name}" for name, count in sorted(counter.items(), key=lambda pair: -pair[1])) or "none"


if __name__ == "__main__":
    sys.exit(main())
