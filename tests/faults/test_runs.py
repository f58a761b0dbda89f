"""Short runs of the harness: the product keeps its promises, and a product without one of its rules is found out."""

from __future__ import annotations

import re
import sys

import pytest
from fault_harness.mutants import MUTANTS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not sys.platform.startswith("linux"), reason="the harness forks and asks for its parent's death"
    ),
]

LAST = re.compile(r"(\d+) kills: (\d+) lost, (\d+) doubled, (\d+) interleaved")
FOUND_BY = {
    "no-dedupe": ("BROKEN a message is stored once", 8, 0),
    "no-release": ("BROKEN nothing is held for ever", 6, 8),
    "early-ack": ("BROKEN what was acknowledged is stored", 10, 0),
    "no-owner": ("BROKEN a part is sent once", 12, 10),
    "blind-retry": ("BROKEN what may have happened is not repeated", 40, 0),
    "no-recovery": ("and nobody was told", 12, 0),
    "half-compression": ("BROKEN a lineage goes on in one session", 12, 0),
}
"""By which words a mutant is found out, how many kills that takes, and how many seconds the last processes get."""
PROMISES = ("lost", "doubled", "interleaved")


def _verdict(done):
    """Return the kills and the three counts of the last line."""
    match = LAST.fullmatch(done.stdout.splitlines()[-1])
    assert match, done.stdout + done.stderr
    kills, *counts = map(int, match.groups())
    return kills, dict(zip(PROMISES, counts, strict=True))


def test_sixty_kills_lose_double_and_interleave_nothing(harness):
    done = harness("--kills", 60, "--freezes", 5)

    kills, counts = _verdict(done)
    assert counts == dict.fromkeys(PROMISES, 0), done.stdout
    assert kills >= 60
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("mutant", FOUND_BY)
def test_a_rule_that_is_left_out_is_found_out(harness, mutant):
    words, kills, quiet_s = FOUND_BY[mutant]

    limits = ("--kills", kills, "--freezes", 0, "--quiet", quiet_s)
    done = harness("--mutant", mutant, "--seed", 1, "--busy", "queue,queue", *limits)

    assert words in done.stdout, done.stdout + done.stderr
    assert sum(_verdict(done)[1].values()) > 0
    assert done.returncode == 1


def test_every_mutant_is_expected_to_be_found_out():
    elsewhere = {"no-fence"}  # test_standing_still.py, where it is no matter of chance

    assert set(FOUND_BY) == set(MUTANTS) - elsewhere
