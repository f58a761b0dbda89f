"""The run: processes are started, killed and started again, until enough have died; then all is given time to end."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections import Counter
from functools import partial
from importlib import import_module
from pkgutil import walk_packages
from random import Random

import attrs

import hermes_core
import hermes_hookspecs
from fault_harness.ledgers import Ledgers
from fault_harness.mutants import FOCUS
from fault_harness.script import SHARED_CHATS, SLOTS, source_of, terminal
from fault_harness.worker import LEASE_TTL_S, Orders, live, opened
from hermes_core.faultpoints import POINTS, VARIABLE
from hermes_hookspecs.operations import BindRoute

__all__ = ["Plan", "Run", "Tally"]

STOPPABLE = ("begin.stored", "step.before", "step.stored", "result.stored", "finish.before")
"""Points outside any transaction where a process may stand still and go on later as if nothing had happened."""
FROZEN_S = LEASE_TTL_S + 1.5
"""How long: others need a moment to see that the lease shows no sign of life."""
POLICIES = (("queue", "queue"), ("queue", "steer"), ("merge", "steer"), ("interrupt", "steer"))
"""What becomes of messages that come while a turn runs, at each entrance."""
TICK_S = 0.003
PREPARED_S = 0.15
"""What it takes to make the store on a machine that does nothing else."""
RANDOM = 0.35
"""Share of the processes that die at no particular point."""


@attrs.frozen(kw_only=True)
class Plan:
    """What is to be done to whom.

    Attributes:
        kills: processes to kill. freezes: seconds between two processes that are stopped for longer than a lease
            lives, 0 for never. points: where to kill, ``name`` or ``name:action``; empty for everywhere.
        quiet_s: how long the last processes may take to do what is left. busy: policy of each entrance, ``None``: one
            of :data:`POLICIES`, by the seed.
    """

    folder: str
    kills: int
    seed: int
    mutant: str = ""
    durability: str = "full"
    freezes: float = 10.0
    points: tuple[str, ...] = ()
    quiet_s: float = 60.0
    busy: tuple[str, str] | None = None


@attrs.define
class Tally:
    """What was done: kills by point (``random`` for those in between), processes frozen, processes that failed."""

    kills: Counter = attrs.field(factory=Counter)
    frozen: int = 0
    failures: list[str] = attrs.field(factory=list)

    @property
    def killed(self):
        """Return the number of kills."""
        return self.kills.total()


@attrs.define
class _Life:
    """One process: what it is armed with, when it is killed if it has not died by then."""

    pid: int
    slot: int
    armed: str
    until: float
    frozen_until: float = 0.0


class Run:
    """One run in one folder. The process that holds it opens no store itself: it forks those that do.

    :param say: takes a line about the progress now and then.
    """

    def __init__(self, plan, say=lambda line: None):
        self._plan = plan
        self._say = say
        self._dice = Random(plan.seed)
        self._lives = {}
        self._slowness = 1.0
        self._next_freeze = time.monotonic() + plan.freezes
        self.ledgers = Ledgers(plan.folder)
        self.tally = Tally()
        self.home = os.path.join(plan.folder, "home")
        self.busy = plan.busy or POLICIES[plan.seed % len(POLICIES)]

    @property
    def database(self):
        """Return the path of the store."""
        return os.path.join(self.home, "state.db")

    def go(self):
        """Do all of it; return what was done."""
        _import_all()
        gc.collect()
        gc.freeze()  # the children share these pages as long as nobody touches them
        began = time.monotonic()
        self._child(lambda: _prepare(self._orders(0)))
        if self._plan.mutant:
            # On a machine that is busy otherwise a process needs longer to come to the place where it errs.
            self._slowness = min(6.0, max(1.0, (time.monotonic() - began) / PREPARED_S))
        told = time.monotonic()
        while self.tally.killed < self._plan.kills and not self.tally.failures:
            for slot in range(SLOTS):
                if not any(life.slot == slot for life in self._lives.values()):
                    self._start(slot)
            time.sleep(TICK_S)
            self._kill_those_whose_time_is_up()
            self._reap()
            if time.monotonic() - told > 10:
                told = time.monotonic()
                self._say(f"{self.tally.killed} of {self._plan.kills} killed, {self.tally.frozen} frozen")
        self._end_all()
        self._finish()
        return self.tally

    def _orders(self, slot, last_batches=None):
        plan = self._plan
        return Orders(
            home=self.home,
            folder=plan.folder,
            seed=plan.seed,
            slot=slot,
            durability=plan.durability,
            busy=self.busy,
            mutant=plan.mutant,
            last_batches=last_batches,
        )

    # --- beginnings

    def _start(self, slot):
        armed = self._arm()
        pid = _fork(lambda: live(self._orders(slot)), armed, self._log_of(slot))
        # Who does not come to its point in time is killed wherever it is.
        shortest_s, longest_s = (2.0, 3.0) if ":stop:" in armed else (1.5, 3.0) if armed else (0.1, 0.9)
        until = time.monotonic() + self._slowness * self._dice.uniform(shortest_s, longest_s)
        self._lives[pid] = _Life(pid=pid, slot=slot, armed=armed, until=until)

    def _arm(self):
        """Return where the next process is to die, ``""`` for some time or other."""
        plan = self._plan
        now = time.monotonic()
        if plan.freezes and now >= self._next_freeze:
            self._next_freeze = now + max(plan.freezes, FROZEN_S)
            return f"{self._dice.choice(STOPPABLE)}:stop:{self._dice.randrange(1, 4)}"
        if self._dice.random() < RANDOM:
            return ""
        places = plan.points or FOCUS.get(plan.mutant) or POINTS
        name, _, action = self._dice.choice(places).partition(":")
        if action == "stop" and any(":stop:" in life.armed for life in self._lives.values()):
            return ""  # somebody has to be there who takes over
        count = self._dice.randrange(1, 12) if name.startswith("group.") else self._dice.choice((1, 1, 2, 3))
        return f"{name}:{action or 'kill'}:{count}"

    def _log_of(self, slot):
        return os.path.join(self._plan.folder, f"worker-{slot}.log")

    # --- ends

    def _kill_those_whose_time_is_up(self):
        now = time.monotonic()
        for life in self._lives.values():
            if life.frozen_until and now >= life.frozen_until:
                os.kill(life.pid, signal.SIGCONT)
                life.frozen_until = 0.0
                life.until = now + self._dice.uniform(0.3, 1.5)
            elif not life.frozen_until and now >= life.until:
                os.kill(life.pid, signal.SIGKILL)
                life.armed = ""
                life.until = now + 60

    def _reap(self):
        while self._lives:
            pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
            if not pid:
                return
            life = self._lives.get(pid)
            if life is None:
                continue
            if os.WIFSTOPPED(status):
                # Whoever stands still for longer than a lease lives is dead to the others.
                self.ledgers.deaths.write(pid=pid, how="frozen")
                life.frozen_until = time.monotonic() + FROZEN_S
                self.tally.frozen += 1
                continue
            del self._lives[pid]
            if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
                self.ledgers.deaths.write(pid=pid, how=life.armed or "random")
                self.tally.kills[life.armed.partition(":")[0] or "random"] += 1
            else:
                self.tally.failures.append(self._obituary(pid, life.slot, status))

    def _obituary(self, pid, slot, status):
        try:
            with open(self._log_of(slot), encoding="utf-8", errors="replace") as file:
                tail = "".join(file.readlines()[-60:])
        except FileNotFoundError:
            tail = ""
        return f"process {pid} of slot {slot} ended by itself ({os.waitstatus_to_exitcode(status)}):\n{tail}"

    def _end_all(self):
        """Kill everybody; those who stand still, too."""
        for life in self._lives.values():
            os.kill(life.pid, signal.SIGKILL)
            life.armed = ""
        deadline = time.monotonic() + 10
        while self._lives and time.monotonic() < deadline:
            self._reap()
            time.sleep(TICK_S)

    def _finish(self):
        """Let one process of each slot do what is left; none of them is killed."""
        deadline = time.monotonic() + self._plan.quiet_s
        self._let_end(2, deadline)
        self._let_end(0, deadline)  # what was left to one that had left already

    def _let_end(self, batches, deadline):
        orders = {slot: self._orders(slot, batches) for slot in range(SLOTS)}
        running = {_fork(partial(live, orders[slot]), "", self._log_of(slot)): slot for slot in orders}
        while running and time.monotonic() < deadline:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid in running:
                slot = running.pop(pid)
                if status:
                    self.tally.failures.append(self._obituary(pid, slot, status))
            time.sleep(TICK_S)
        for pid, slot in running.items():
            self.tally.failures.append(f"slot {slot} did not come to rest within {self._plan.quiet_s:g} s")
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            self.ledgers.deaths.write(pid=pid, how="restless")

    def _child(self, work):
        """Do something in a process of its own and wait for it."""
        pid = _fork(work, "", self._log_of("first"))
        _, status = os.waitpid(pid, 0)
        if status:
            raise RuntimeError(self._obituary(pid, "first", status))


def _import_all():
    """Import what the processes will need, and open nothing: each of them is then ready in a moment."""
    for package in (hermes_core, hermes_hookspecs):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            if ".testing" not in module.name and not module.name.endswith("__main__"):
                import_module(module.name)


def _prepare(orders):
    """Make the store, and let chats of both entrances and every terminal lead to one lineage."""
    with opened(orders) as app:
        entry = app.get_or_create_session(source_of(SHARED_CHATS[0]))
        for source in (*map(source_of, SHARED_CHATS[1:]), *map(terminal, range(SLOTS))):
            home = app.desk.at_home(source)
            app.store.apply(
                BindRoute(
                    key=app.desk.key(home),
                    key_version=app.desk.keys.version,
                    source=home,
                    policy=app.desk.policy(home),
                    lineage_id=entry.lineage_id,
                    now=app.clock.now(),
                )
            )


def _fork(work, armed, log):
    """Return the id of a child that does ``work`` and ends; its standard output and error go to a file."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    status = 70
    try:
        _die_with(parent)
        os.environ[VARIABLE] = armed
        descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.dup2(descriptor, 1)
        os.dup2(descriptor, 2)
        work()
        status = 0
    except BaseException:  # noqa: BLE001 - the child must not come back into the parent's code
        import traceback

        traceback.print_exc()
    finally:
        os._exit(status)


def _die_with(parent):
    """End with the parent, however it ends; a process that is stopped, too."""
    import ctypes

    death_signal = 1
    try:
        ctypes.CDLL(None).prctl(death_signal, signal.SIGKILL)
    except (OSError, AttributeError):
        return
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)
