"""What is told when something of a session ends, once, by whoever ended it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.hooks import Hooks
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.inbox import ControlOutcome
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.turns import Lease

__all__ = ["Endings"]


class Endings:
    """Tells listeners of ends that nobody else tells. Thread-safe; blocks for a read.

    :param store: returns the open store.
    """

    def __init__(self, store: Callable[[], Store], hooks: Hooks) -> None:
        self._store = store
        self._hooks = hooks

    def left_by_the_dead(self, lineage_id: LineageId | None) -> Lease | None:
        """Return the lease of a lineage where its holder is gone by now, ``None`` where it lives or there is none.

        Asked before a turn is ended: a holder that lives then tells the end itself, even if it dies behind that.
        """
        from hermes_core.leases import dead_stamp

        lease = None if lineage_id is None else self._store().lease(lineage_id)
        return None if lease is None or dead_stamp(lease) is None else lease

    def tell_dead(self, outcome: ControlOutcome, held: Lease | None) -> None:
        """Tell the end of a turn whose own process is not there to do so.

        :param held: what :meth:`left_by_the_dead` said before.
        """
        if outcome.repeated or outcome.stopped is None or held is None:
            return
        turn = self._store().turn(outcome.stopped)
        if turn is not None and turn.token == held.token:  # another one may have begun meanwhile
            self._hooks.turn_ended(turn)

    def tell_left(self, lineage_id: LineageId | None) -> None:
        """Tell that a session ended, when the route that left was the last one to it."""
        from hermes_hookspecs.principal import operator

        if lineage_id is None:
            return
        store, everybody = self._store(), operator()
        lineage = store.lineage(lineage_id, everybody)
        tip = None if lineage is None else store.session(lineage.tip, everybody)
        if tip is not None and tip.end_reason is not None:
            self._hooks.fire(
                "hermes_after_session_end", lineage_id=lineage_id, session_id=tip.id, reason=tip.end_reason
            )
