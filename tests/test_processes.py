from __future__ import annotations

import os
import subprocess
import sys

import attrs
import pytest

from hermes_core.processes import ProcessIdentity, current_process, is_alive

SLEEPER = "import sys; sys.stdin.read()"
TELL = "from hermes_core.processes import current_process as c; import attrs; print(attrs.asdict(c()), flush=True); "

if not sys.platform.startswith("linux"):
    pytest.skip("the process table is read on Linux only", allow_module_level=True)


def identity_of(pid: int) -> ProcessIdentity:
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        started = int(file.read().rpartition(")")[2].split()[19])
    return attrs.evolve(current_process(), pid=pid, started=started)


def sleeper(*prefix: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    return subprocess.Popen(
        [*prefix, sys.executable, "-c", TELL + SLEEPER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )


def test_the_own_process_lives_and_has_every_part():
    own = current_process()

    assert own.pid == os.getpid()
    assert own.boot_id
    assert own.pid_namespace.startswith("pid:[")
    assert own.started > 0
    assert is_alive(own) is True


def test_another_process_lives_until_it_is_collected_and_is_dead_as_a_zombie():
    with sleeper() as child:
        told = eval(child.stdout.readline())
        identity = ProcessIdentity(**told)
        assert identity == identity_of(child.pid)
        alive = is_alive(identity)
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        zombie = is_alive(identity)
    gone = is_alive(identity)

    assert (alive, zombie, gone) == (True, False, False)


def test_a_stopped_process_is_alive():
    with sleeper() as child:
        child.stdout.readline()
        os.kill(child.pid, 19)
        os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)

        assert is_alive(identity_of(child.pid)) is True
        child.kill()


def test_the_same_number_with_another_start_time_is_another_process():
    with sleeper() as child:
        child.stdout.readline()
        identity = identity_of(child.pid)

        assert is_alive(attrs.evolve(identity, started=identity.started - 1)) is False
        child.kill()


def test_another_boot_and_another_namespace_cannot_be_known():
    own = current_process()

    assert is_alive(attrs.evolve(own, boot_id="another", pid=own.pid + 1)) is None
    assert is_alive(attrs.evolve(own, pid_namespace="pid:[1]", pid=own.pid + 1)) is None
    assert is_alive(attrs.evolve(own, boot_id="", pid_namespace="")) is None


def test_a_process_in_a_real_other_namespace_is_not_taken_for_dead():
    probe = subprocess.run(["unshare", "--pid", "--fork", "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("making a pid namespace needs root")
    with sleeper("unshare", "--pid", "--fork", "--mount-proc") as outer:
        inner = ProcessIdentity(**eval(outer.stdout.readline()))
        alive = is_alive(inner)
        outer.stdin.close()
        outer.wait(10)

    assert inner.pid == 1
    assert inner.boot_id == current_process().boot_id
    assert inner.pid_namespace != current_process().pid_namespace
    assert alive is None


def test_a_forked_child_has_its_own_identity():
    reading, writing = os.pipe()
    own = current_process()
    child = os.fork()
    if child == 0:
        os.write(writing, str(current_process().pid).encode())
        os._exit(0)
    os.waitpid(child, 0)

    assert int(os.read(reading, 100)) == child != own.pid
    os.close(reading)
    os.close(writing)
