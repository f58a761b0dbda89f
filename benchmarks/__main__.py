"""Measure and report: ``python -m benchmarks [--peer] [--quick] [--only NAME]``.

Stdout is the table. A full run (neither ``--quick`` nor ``--only``) also writes ``results.json``. A row that misses its
floor says so and changes nothing about the exit status: other programs on the machine are no fault of ours.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import (
    agents,
    appends,
    contention,
    contexts,
    disk,
    gateway,
    processes,
    reads,
    routing,
    search,
    searchquality,
    startup,
    turns,
)
from benchmarks.measuring import Size
from benchmarks.peer import PeerMissing, hire
from benchmarks.report import as_json, table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.measuring import Row
    from benchmarks.peer import Peer

_PARTS: dict[str, Callable[[Size, Peer | None], Iterator[Row]]] = {
    "appends": appends.run,
    "processes": processes.run,
    "reads": reads.run,
    "routing": routing.run,
    "turns": turns.run,
    "contention": contention.run,
    "search": search.run,
    "searchquality": searchquality.run,
    "contexts": contexts.run,
    "agents": agents.run,
    "disk": disk.run,
    "gateway": gateway.run,
    "startup": startup.run,
}
_FULL = Size(rounds=7, slow_rounds=5, messages_on_disk=100_000, seconds=1.5, is_quick=False)
_QUICK = Size(rounds=5, slow_rounds=5, messages_on_disk=20_000, seconds=0.5, is_quick=True)
_RESULTS = Path(__file__).with_name("results.json")
_SWITCH_INTERVAL_S = 0.0005
"""What the script ``hermes`` sets; the library leaves it to the program."""


def main() -> int:
    """Run the parts that are wanted and print their rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Speed as ratios measured in one run.")
    parser.add_argument("--peer", action="store_true", help="compare with hermes-agent too (installs it beside us)")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds; writes no results")
    parser.add_argument("--only", metavar="NAME", choices=_PARTS, help=f"one part: {', '.join(_PARTS)}")
    options = parser.parse_args()
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    size = _QUICK if options.quick else _FULL
    peer = _peer() if options.peer else None
    rows: list[Row] = []
    try:
        for name, part in _PARTS.items():
            if options.only in (None, name):
                began = time.monotonic()
                rows += part(size, peer)
                sys.stderr.write(f"{name}: {time.monotonic() - began:.0f} s\n")
    finally:
        if peer is not None:
            peer.leave()
    print("\n".join(table(rows)))
    missed = [row.name for row in rows if "MISSED" in (row.verdict, row.peer_verdict)]
    if missed:
        print(f"\nmissed their floor: {'; '.join(missed)}")
    if options.only is None and not options.quick:
        _RESULTS.write_text(as_json(rows), encoding="utf-8")
    return 0


def _peer() -> Peer | None:
    try:
        return hire()
    except PeerMissing as missing:
        sys.stderr.write(f"without the original: {missing}\n")
        return None


if __name__ == "__main__":
    sys.exit(main())
