"""Questions that several rules ask of the same facts."""

from __future__ import annotations

from collections import defaultdict

__all__ = ["View", "by_lineage"]


class View:
    """Which turns had a message, which of them decided about it, and what its sender was told."""

    def __init__(self, facts):
        self._last = {}
        self.turn_of = {}
        for turn in facts.turns:
            self.turn_of[turn.number] = turn
            for one in turn.inbox_ids:
                self._last[one] = turn
        self._deliveries = defaultdict(list)
        for row in facts.deliveries:
            self._deliveries[row.inbox_id].append(row)

    def last_turn(self, inbox_id):
        """Return the last turn that had a message, ``None`` where there was none."""
        return self._last.get(inbox_id)

    def deciding_turn(self, inbox_id):
        """Return the turn that decided about a message: one put into the turn of an older one shares its fate."""
        turn = self._last.get(inbox_id)
        while turn is not None and turn.inbox_ids and self._last[turn.inbox_ids[0]] is not turn:
            turn = self._last[turn.inbox_ids[0]]
        return turn

    def outcomes(self, row):
        """Return what answers a message: the deliveries for the oldest message of its last turn, and its own."""
        turn = self._last.get(row.id)
        named = {row.id} if turn is None or not turn.inbox_ids else {row.id, turn.inbox_ids[0]}
        found = {one.id: one for name in named for one in self._deliveries[name]}
        return list(found.values())


def by_lineage(rows):
    """Return rows by their lineage, in the order in which they came."""
    found = defaultdict(list)
    for row in rows:
        found[row.lineage].append(row)
    return found
