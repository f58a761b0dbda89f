"""Who holds a lease, whether that process lives, and when a waiter may believe that it does not."""

from __future__ import annotations

import subprocess
import sys

import attrs
import pytest

from hermes_core.leases import LeaseWatch, dead_stamp, holder_here, holder_lives
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.testing.clock import FakeClock
from hermes_hookspecs.turns import Lease, LeaseStamp

ME = holder_here(Entrance("cli", terminal="pts-1"), "agent:main:cli:dm:chat=pts-1")
ELSEWHERE = attrs.evolve(ME, host="elsewhere", boot_id="another boot", pid=1)


@pytest.fixture(scope="module")
def dead():
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(20)
    return attrs.evolve(ME, pid=process.pid, started="1")


def lease(holder, token=7, renewals=0):
    return Lease(lineage_id="L1", token=token, renewals=renewals, holder=holder, acquired_at=None, expires_at=None)


def test_this_process_lives_a_reaped_one_does_not_and_of_others_nobody_here_can_know(dead):
    assert holder_lives(ME) is True
    assert holder_lives(dead) is False
    assert holder_lives(attrs.evolve(ME, started="12345")) is False
    assert holder_lives(ELSEWHERE) is None


def test_only_a_known_death_gives_a_stamp_at_once(dead):
    assert dead_stamp(lease(dead)) == LeaseStamp(7, 0)
    assert dead_stamp(lease(ME)) is None
    assert dead_stamp(lease(ELSEWHERE)) is None
    assert dead_stamp(lease(None)) is None
    assert LeaseWatch(FakeClock(), 30).presumed_dead(lease(dead)) == LeaseStamp(7, 0)


@pytest.mark.parametrize("holder", [ME, ELSEWHERE], ids=["here", "elsewhere"])
def test_the_same_stamp_for_one_ttl_of_watching_is_what_makes_a_holder_dead(holder):
    clock = FakeClock()
    watch = LeaseWatch(clock, 30)

    assert watch.presumed_dead(lease(holder)) is None
    clock.advance(29.9)
    assert watch.presumed_dead(lease(holder)) is None
    clock.advance(0.1)
    assert watch.presumed_dead(lease(holder)) == LeaseStamp(7, 0)


@pytest.mark.parametrize("sign", [lease(ELSEWHERE, renewals=1), lease(ELSEWHERE, token=8), lease(None)])
def test_any_sign_of_life_begins_the_watch_anew(sign):
    clock = FakeClock()
    watch = LeaseWatch(clock, 30)
    watch.presumed_dead(lease(ELSEWHERE))
    clock.advance(29)

    assert watch.presumed_dead(sign) is None
    clock.advance(29)
    assert watch.presumed_dead(sign) is None
    assert watch.presumed_dead(lease(ELSEWHERE)) is None
