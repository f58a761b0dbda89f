"""Waking across processes: datagrams, the death of a holder, and turns that are stopped from elsewhere."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading

import pytest

from hermes_core.leases import holder_here
from hermes_core.turns.signals import CAN_SIGNAL, Ear, open_process, signal_others
from hermes_core.turns.waker import LocalWaker
from hermes_hookspecs.errors import LeaseLost
from hermes_hookspecs.operations import Revoke
from hermes_hookspecs.ports.agent import Progress
from hermes_hookspecs.source import Entrance

pytestmark = pytest.mark.skipif(not CAN_SIGNAL, reason="this system has no sockets in the file system")

PATIENCE_S = 20
OTHER = """
import sys
from hermes_core.turns.signals import signal_others
print(signal_others(sys.argv[1], sys.argv[2]))
"""


def from_another_process(folder, topic):
    done = subprocess.run(
        [sys.executable, "-c", OTHER, folder, topic], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    )
    return int(done.stdout)


def never_looks():
    return 0


@pytest.mark.parametrize("depth", [1, 20])
def test_a_waiter_is_woken_by_another_process_however_deep_the_folder_is(tmp_path, depth):
    folder = str(tmp_path.joinpath(*["deep"] * depth, "wake"))
    waker = LocalWaker(never_looks, folder)

    async def main():
        waiter = waker.enter("a")
        assert await waiter.wait(PATIENCE_S, look=False)  # the first one says: I listen from here on, look
        try:
            reached = await asyncio.to_thread(from_another_process, folder, "a")
            return reached, await waiter.wait(PATIENCE_S, look=False)
        finally:
            waker.leave(waiter)

    assert asyncio.run(main()) == (1, True)
    assert os.listdir(folder) == []


def test_another_topic_wakes_nobody(tmp_path):
    ear = Ear(str(tmp_path / "wake"), "a")

    assert from_another_process(str(tmp_path / "wake"), "b") == 0
    ear.close()


def test_the_socket_of_a_dead_process_is_removed(tmp_path):
    folder = str(tmp_path / "wake")
    program = "import os, sys; from hermes_core.turns.signals import Ear; Ear(sys.argv[1], 'a'); os._exit(9)"
    subprocess.run([sys.executable, "-c", program, folder], check=False, timeout=PATIENCE_S)
    assert len(os.listdir(folder)) == 1

    assert signal_others(folder, "a") == 0

    assert os.listdir(folder) == []


def test_a_folder_that_nobody_made_is_no_fault(tmp_path):
    assert signal_others(str(tmp_path / "nowhere"), "a") == 0


def test_a_folder_that_cannot_be_made_leaves_looking(tmp_path):
    (tmp_path / "file").write_text("")
    marks = iter(range(100))
    waker = LocalWaker(lambda: next(marks), str(tmp_path / "file" / "wake"))

    assert asyncio.run(waker.wait("a", PATIENCE_S))


def test_the_sockets_folder_is_private(tmp_path):
    ear = Ear(str(tmp_path / "wake"), "a")

    assert (tmp_path / "wake").stat().st_mode & 0o777 == 0o700
    ear.close()


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="this system cannot watch a process")
def test_a_waiter_is_woken_by_the_death_of_the_process_it_watches():
    child = subprocess.Popen([sys.executable, "-c", "print(flush=True); input()"], stdin=-1, stdout=-1, text=True)
    child.stdout.readline()
    holder = holder_of(child.pid)
    waker = LocalWaker(never_looks)

    async def main():
        waiter = waker.enter("a")
        waiter.watch(holder)
        asyncio.get_running_loop().call_soon(os.kill, child.pid, signal.SIGKILL)
        try:
            return await waiter.wait(PATIENCE_S, look=False)
        finally:
            waker.leave(waiter)

    assert asyncio.run(main())
    child.communicate()
    with pytest.raises(ProcessLookupError):
        open_process(holder)


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="this system cannot watch a process")
def test_a_dead_process_that_is_still_watched_does_not_keep_the_loop_busy():
    child = subprocess.Popen([sys.executable, "-c", "print(flush=True); input()"], stdin=-1, stdout=-1, text=True)
    child.stdout.readline()
    holder = holder_of(child.pid)
    waker = LocalWaker(never_looks)
    told = []

    async def main():
        loop = asyncio.get_running_loop()
        add_reader = loop.add_reader
        loop.add_reader = lambda descriptor, callback: add_reader(descriptor, lambda: (told.append(1), callback()))
        waiter = waker.enter("a")
        waiter.watch(holder)
        os.kill(child.pid, signal.SIGKILL)
        assert await waiter.wait(PATIENCE_S, look=False)
        for _ in range(20):  # rounds of the loop, in which the waiter reads the store and begins its turn
            await asyncio.sleep(0)
        waker.leave(waiter)

    asyncio.run(main())
    child.communicate()
    assert told == [1]


def holder_of(pid):
    import attrs

    me = holder_here(Entrance("cli"), None)
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        started = stat.read().rpartition(")")[2].split()[19]
    return attrs.evolve(me, pid=pid, started=started)


def test_the_own_process_is_not_watched():
    assert open_process(holder_here(Entrance("cli"), None)) is None


def test_a_turn_that_is_revoked_ends_at_once(bench):
    work = bench(renew_s=PATIENCE_S * 10)
    entry = work.enter()
    running = threading.Event()
    never = asyncio.Event

    async def agent(turn):
        yield Progress(label="at it")
        running.set()
        await never().wait()

    async def main():
        task = work.asking("go", agent)
        assert await asyncio.to_thread(running.wait, PATIENCE_S)
        await asyncio.to_thread(
            work.store.apply, Revoke(lineage_id=entry.lineage_id, now=work.clock.now(), reason="stop")
        )
        work.waker.wake(entry.lineage_id)
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(LeaseLost):
                await task

    asyncio.run(main())


def test_a_signal_that_means_nothing_does_not_stop_a_turn(bench):
    work = bench()
    entry = work.enter()
    running, go_on = threading.Event(), threading.Event()

    async def agent(turn):
        yield Progress(label="at it")
        running.set()
        await asyncio.to_thread(go_on.wait, PATIENCE_S)

    async def main():
        task = work.asking("go", agent)
        assert await asyncio.to_thread(running.wait, PATIENCE_S)
        work.waker.wake(entry.lineage_id)
        go_on.set()
        return await task

    assert asyncio.run(main()).turn.outcome == "done"
