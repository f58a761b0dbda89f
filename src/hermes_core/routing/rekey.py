"""What a changed key policy means for every route: ``hermes routes rekey``.

A route may move when nobody hears afterwards what was not said to them, and when nobody else has a claim to the key:

- the key that the settings make today is another one, and no live route stands there or wants it, too;
- what was one person's becomes a room's only where all of it was said in that room;
- what was a room's becomes one person's only where nobody else has spoken in it.

Everything else is refused, and stays where it is.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import attrs

from hermes_core.routing.policy import policy_of
from hermes_hookspecs.errors import KeyBuildError
from hermes_hookspecs.operations import Rekey
from hermes_hookspecs.ports.rekeying import MOVES, REFUSED, UNTOUCHED, PlannedMove
from hermes_hookspecs.principal import operator, owner_of, room_of

if TYPE_CHECKING:
    from hermes_core.config.sections import Settings
    from hermes_hookspecs.ids import LineageId, SessionKey
    from hermes_hookspecs.ports.policies import KeyBuilder
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.sessions import Route

__all__ = ["Plan", "plan"]


@attrs.frozen(kw_only=True)
class Plan:
    """What is to become of every route, last used first, and the moves that do it, in the same order."""

    rows: tuple[PlannedMove, ...]
    moves: tuple[Rekey, ...]


def plan(reader: StoreReader, settings: Settings, keys: KeyBuilder) -> Plan:
    """Return what the settings in force mean for every route; changes nothing.

    :param reader: one consistent view of the store.
    """
    planner = _Planner(reader, settings, keys)
    rows = tuple(planner.row(route) for route in planner.routes)
    moves = tuple(planner.move(row) for row in rows if row.verdict == MOVES)
    return Plan(rows=rows, moves=moves)


class _Planner:
    """Looks at one route after the other, knowing which keys are wanted and taken."""

    def __init__(self, reader: StoreReader, settings: Settings, keys: KeyBuilder) -> None:
        self._reader = reader
        self._settings = settings
        self._keys = keys
        self.routes = reader.routes()
        live = [route for route in self.routes if route.lineage_id is not None]
        self._taken = {route.key for route in live}
        self._wanted = Counter(key for route in live if (key := self._key_today(route)) is not None)

    def _key_today(self, route: Route) -> SessionKey | None:
        try:
            return self._keys.build(route.source, policy_of(self._settings, route.source.platform))
        except KeyBuildError:
            return None

    def row(self, route: Route) -> PlannedMove:
        """Return what is to become of a route."""
        new = self._key_today(route)
        verdict, reason = self._verdict(route, new)
        return PlannedMove(route=route, verdict=verdict, new_key=new, reason=reason)

    def _verdict(self, route: Route, new: SessionKey | None) -> tuple[str, str]:
        if new == route.key:
            return UNTOUCHED, "the same key"
        if route.lineage_id is None:
            return UNTOUCHED, "it leads nowhere"
        if new is None:
            return REFUSED, "a message from there would be refused: it says too little"
        refusal = self._refusal(route, route.lineage_id, new)
        return (REFUSED, refusal) if refusal else (MOVES, _why(self._was_shared(route), self._is_shared(route)))

    def _refusal(self, route: Route, lineage_id: LineageId, new: SessionKey) -> str:
        """Return why a route that would get the key ``new`` may not have it, ``""`` where it may."""
        if new in self._taken:
            return "another session is behind the new key already"
        if self._wanted[new] > 1:
            return f"{self._wanted[new]} sessions would become one"
        was, now = self._was_shared(route), self._is_shared(route)
        if now and not was and not self._was_said_in(route, lineage_id):
            return "the room would hear what was not said in it"
        if was and not now and self._speakers(lineage_id) != {route.source.participant}:
            return "several people spoke in it"
        return ""

    def _was_shared(self, route: Route) -> bool:
        return self._keys.parts(route.source, route.policy).shared

    def _is_shared(self, route: Route) -> bool:
        return self._keys.parts(route.source, policy_of(self._settings, route.source.platform)).shared

    def _was_said_in(self, route: Route, lineage_id: LineageId) -> bool:
        lineage = self._reader.lineage(lineage_id, operator())
        return lineage is not None and lineage.room is not None and lineage.room == room_of(route.source)

    def _speakers(self, lineage_id: LineageId) -> set[str | None]:
        """Return who has spoken in a lineage; ``None`` in it stands for somebody whom nobody named."""
        turns = self._reader.turns(lineage_id, operator())
        waiting = self._reader.waiting(lineage_id)
        return {turn.user_id for turn in turns if turn.inbox_ids} | {item.source.participant for item in waiting}

    def move(self, row: PlannedMove) -> Rekey:
        """Return the move of a row whose verdict is to move."""
        route = row.route
        if row.new_key is None or route.lineage_id is None:
            raise ValueError(f"{route.key} does not move")
        was, now = self._was_shared(route), self._is_shared(route)
        return Rekey(
            key=route.key,
            new_key=row.new_key,
            expected=route.lineage_id,
            key_version=self._keys.version,
            policy=policy_of(self._settings, route.source.platform),
            owner=None if was == now else owner_of(route.source, shared=now),
            shared=None if was == now else now,
            reason=row.reason,
        )


def _why(was_shared: bool, is_shared: bool) -> str:
    if was_shared == is_shared:
        return "the same people under another key"
    return "all of it was said in that room" if is_shared else "nobody else spoke in it"
