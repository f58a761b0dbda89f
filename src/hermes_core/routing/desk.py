"""Routes for people when the key policy changes: what is to be done, done, and taken back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.errors import HermesError
from hermes_hookspecs.ports.rekeying import RekeyReport
from hermes_hookspecs.sessions.moves import MOVED, RETURNED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_core.config.sections import Settings
    from hermes_core.routing.rekey import Plan
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.operations import Rekey
    from hermes_hookspecs.ports.policies import KeyBuilder
    from hermes_hookspecs.ports.rekeying import PlannedMove
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.sessions import RouteMove

__all__ = ["STEP", "RekeyDesk"]

STEP = 20
"""Most routes of one transaction: others must get their turn to write."""


class RekeyDesk:
    """Routes under a changed key policy (:class:`~hermes_hookspecs.ports.rekeying.Rekeying`). Every method blocks.

    :param store, keys: return the open store and the key builder in force.
    """

    def __init__(
        self, store: Callable[[], Store], keys: Callable[[], KeyBuilder], settings: Settings, clock: Clock
    ) -> None:
        self._store = store
        self._keys = keys
        self._settings = settings
        self._clock = clock

    def plan(self) -> Sequence[PlannedMove]:
        """Return what the settings in force mean for every route, last used first; changes nothing."""
        return self._plan().rows

    def _plan(self) -> Plan:
        from hermes_core.routing.rekey import plan

        return self._store().submit_read(lambda reader: plan(reader, self._settings, self._keys())).result()

    def apply(self) -> RekeyReport:
        """Move what can be moved, at most :data:`STEP` routes in one transaction."""
        from hermes_hookspecs.ids import new_batch_id

        moves = self._plan().moves
        return self._run(moves, new_batch_id(self._clock.now()), MOVED) if moves else RekeyReport(batch="")

    def undo(self, batch: str | None = None) -> RekeyReport:
        """Move back what was applied last, or under that name, where the new keys still lead to it.

        :raises HermesError: there is no such batch, or nothing of it is left to be undone.
        """
        from hermes_hookspecs.operations import Rekey

        store = self._store()
        if batch is None:
            batch = self._last()
        lines = store.route_moves(batch=batch, kinds=(MOVED,), limit=None)
        if not lines:
            raise HermesError(f"no routes were moved under the name {batch!r}; `hermes routes history` shows the names")
        done = {line.new_key for line in store.route_moves(batch=batch, kinds=(RETURNED,), limit=None)}
        back = tuple(
            Rekey(
                key=line.new_key,
                new_key=line.key,
                expected=line.lineage_id,
                key_version=line.key_version,
                policy=line.policy,
                owner=line.owner,
                shared=line.shared,
                reason="undone",
            )
            for line in reversed(lines)
            if line.key not in done
        )
        if not back:
            raise HermesError(f"everything that was moved under the name {batch!r} is back already")
        return self._run(back, batch, RETURNED)

    def _last(self) -> str:
        """Return the newest batch of which something is left to be undone."""
        store = self._store()
        back = {(line.batch, line.new_key) for line in store.route_moves(kinds=(RETURNED,), limit=None)}
        for line in store.route_moves(kinds=(MOVED,), limit=None):
            if line.batch is not None and (line.batch, line.key) not in back:
                return line.batch
        raise HermesError("no routes were moved that are not back already")

    def _run(self, moves: Sequence[Rekey], batch: str, kind: str) -> RekeyReport:
        from hermes_hookspecs.operations import MoveRoutes

        report = RekeyReport(batch=batch)
        for first in range(0, len(moves), STEP):
            some = tuple(moves[first : first + STEP])
            done = self._store().apply(MoveRoutes(moves=some, batch=batch, now=self._clock.now(), kind=kind))
            report = RekeyReport(batch=batch, moves=report.moves + done.moves, left=report.left + done.left)
        return report

    def history(self, *, limit: int | None = 100) -> Sequence[RouteMove]:
        """Return what was claimed, refused, moved and moved back, newest first."""
        return self._store().route_moves(limit=limit)
