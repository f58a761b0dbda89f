"""Agents let go of what they hold for a conversation that has ended: beside everything else, and not for ever.

Each closing has a thread of its own, so that one that hangs holds up neither a loop, nor the command that ended the
conversation, nor another closing. One that takes too long is left behind, and
ends with the process at the latest.
"""

from __future__ import annotations

from logging import getLogger
from threading import Lock, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.hooks import Hooks
    from hermes_hookspecs.ids import LineageId

__all__ = ["AgentClosings"]

_log = getLogger(__name__)

_GRACE_S = 1.0
"""For whoever watches a closing, to say that it took too long."""
_MOST = 32
"""Closings that may hang at a time; behind them conversations end without one, and that is logged."""


class AgentClosings:
    """Tells the agents of one process that a conversation has ended. Thread-safe; nothing but :meth:`wait` blocks.

    :param limit_s: seconds that an agent has.
    """

    def __init__(self, hooks: Hooks, limit_s: float) -> None:
        self._hooks = hooks
        self._limit_s = limit_s
        self._lock = Lock()
        self._known: dict[int, object] = {}
        self._running: set[Thread] = set()

    def know(self, agent: object) -> None:
        """Remember an agent that no plugin brings, so that it is told, too."""
        if hasattr(agent, "close_lineage"):
            with self._lock:
                self._known[id(agent)] = agent

    def close(self, lineage_id: LineageId) -> None:
        """Have each agent that can (``close_lineage``) let go of a conversation; return at once."""
        with self._lock:
            agents = dict(self._known)
        agents |= {id(agent): agent for agent in self._hooks.agents().values()}
        for agent in agents.values():
            work: object = getattr(agent, "close_lineage", None)
            if callable(work):
                self._start(str(getattr(agent, "name", type(agent).__name__)), work, lineage_id)

    def _start(self, name: str, work: Callable[[LineageId], object], lineage_id: LineageId) -> None:
        with self._lock:
            self._running = {one for one in self._running if one.is_alive()}
            if len(self._running) >= _MOST:
                _log.warning("%s was not told that %s has ended: too many agents close already", name, lineage_id)
                return
            watching = Thread(target=self._watch, args=(name, work, lineage_id), name="hermes-closing", daemon=True)
            self._running.add(watching)
        watching.start()

    def _watch(self, name: str, work: Callable[[LineageId], object], lineage_id: LineageId) -> None:
        closing = Thread(target=_closed, args=(name, work, lineage_id), name=f"hermes-closing-{name}", daemon=True)
        closing.start()
        closing.join(self._limit_s)
        if closing.is_alive():
            _log.warning("%s did not let go of %s within %g s and is left behind", name, lineage_id, self._limit_s)

    def wait(self) -> None:
        """Wait for closings that run, each for its own time at most: for the end of a process."""
        with self._lock:
            running = tuple(self._running)
        for one in running:
            one.join(self._limit_s + _GRACE_S)


def _closed(name: str, work: Callable[[LineageId], object], lineage_id: LineageId) -> None:
    """Run one closing to its end, on an event loop where it needs one; its fault is logged."""
    from inspect import iscoroutine

    try:
        came = work(lineage_id)
        if iscoroutine(came):
            from asyncio import run

            run(came)
    except Exception:  # noqa: BLE001 - an agent is a plugin's code, and the conversation has ended already
        _log.warning("%s failed when it let go of %s", name, lineage_id, exc_info=True)
