"""Wall time of whole programs: the script beside this interpreter, in a home with a thousand sessions.

The environment of the children is clean of what would make them other than a person's: compiled modules may be written
(and are, before the first round), and neither ``PYTHONPATH`` nor a setting of ours reaches them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measuring import OURS, PEER, RAW, Bounds, Timing, alternate, row, timing
from benchmarks.stage import NOW, begin_turn, finish, open_store, wanted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.measuring import Row, Size
    from benchmarks.peer import Peer

__all__ = ["run"]

_SESSIONS = 1000
_RUNS = 3
_FAMILIES = ("PYTHON", "HERMES_")


def run(size: Size, peer: Peer | None) -> Iterator[Row]:
    """Yield the list, which has bounds, and the version for comparison."""
    script = Path(sys.executable).with_name("hermes")
    if not script.exists():
        sys.stderr.write(f"start-up is left out: {script} is not there\n")
        return
    with tempfile.TemporaryDirectory() as home:
        _fill(home)
        bare = [sys.executable, "-c", "pass"]
        listing = [str(script), "--home", home, "sessions", "list"]
        contestants = {OURS: _program(listing), RAW: _program(bare)}
        bounds = Bounds()
        if peer is not None:
            peer.ask("fill", name="home", sessions={f"s{number}": 2 for number in range(_SESSIONS)})
            contestants[PEER] = _program(peer.listing(), HERMES_HOME=str(peer.home))
            bounds = Bounds(4, 10)
        _wait_for_the_cache(listing, home)
        seen = alternate(size.rounds, contestants)
        yield row("hermes sessions list against python -c pass", seen, "p50", Bounds(8, 6), bounds, unit="ms")
        seen = alternate(size.rounds, {OURS: _program([str(script), "--home", home, "--version"]), RAW: _program(bare)})
        yield row("hermes --version against python -c pass", seen, "p50", unit="ms")


def _fill(home: str) -> None:
    """A thousand sessions of one short turn each, the later ones active later."""
    Path(home).chmod(0o700)
    store = open_store(home, "normal")
    for number in range(_SESSIONS):
        store.apply(wanted(f"s{number}", now=NOW + number * 2000))
        finish(store, begin_turn(store, f"s{number}"))
    store.close()


def _wait_for_the_cache(listing: Sequence[str], home: str) -> None:
    """Run until the cache of plugins is there: folders that were changed a moment ago are not trusted yet."""
    deadline = time.monotonic() + 5
    while True:
        _program(listing)()
        if any((Path(home) / "cache").glob("*.bin")) or time.monotonic() > deadline:
            return
        time.sleep(0.2)


def _program(command: Sequence[str], **more: str) -> Callable[[], Timing]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_FAMILIES)} | more

    def once() -> Timing:
        clock = time.perf_counter_ns
        taken = []
        for _ in range(_RUNS):
            before = clock()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
            taken.append(clock() - before)
        return timing(taken, sum(taken))

    return once
