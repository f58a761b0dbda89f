"""What a changed key policy means for the routes that are there: shown, done, undone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.ids import SessionKey
    from hermes_hookspecs.sessions import Route, RouteMove

__all__ = ["MOVES", "REFUSED", "UNTOUCHED", "PlannedMove", "RekeyReport", "Rekeying"]

MOVES = "moves"
"""The route gets another key, and nobody hears what was not said to them."""
REFUSED = "refused"
"""It would get another key, but whose session it is then cannot be told; it stays where it is."""
UNTOUCHED = "untouched"
"""Its key is the same, or it leads nowhere."""


@attrs.frozen(kw_only=True)
class PlannedMove:
    """What the settings in force mean for one route.

    Attributes:
        verdict: :data:`MOVES`, :data:`REFUSED` or :data:`UNTOUCHED`.
        new_key: what a message from there gets today; ``None`` where it would be refused.
        reason: in words.
    """

    route: Route
    verdict: str
    new_key: SessionKey | None
    reason: str


@attrs.frozen(kw_only=True)
class RekeyReport:
    """What was done.

    Attributes:
        batch: its name, ``""`` where nothing was to be done. moves: lines of the journal.
        left: keys whose route changed meanwhile; they stay as they are.
    """

    batch: str
    moves: tuple[RouteMove, ...] = ()
    left: tuple[SessionKey, ...] = ()


class Rekeying(Protocol):
    """Routes under a changed key policy, for people. Every method blocks."""

    def plan(self) -> Sequence[PlannedMove]:
        """Return what the settings in force mean for every route, last used first; changes nothing."""
        ...

    def apply(self) -> RekeyReport:
        """Move what can be moved, a bounded number of routes in one transaction."""
        ...

    def undo(self, batch: str | None = None) -> RekeyReport:
        """Move back what was applied last, or under that name, where the new keys still lead to it.

        The settings are not changed: under the new ones the routes are out of reach again.

        :raises HermesError: there is no such batch, or nothing of it is left to be undone.
        """
        ...

    def history(self, *, limit: int | None = 100) -> Sequence[RouteMove]:
        """Return what was claimed, refused, moved and moved back, newest first."""
        ...
