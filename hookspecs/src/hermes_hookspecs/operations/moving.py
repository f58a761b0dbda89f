"""Writes that give routes other keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.operations.operation import Operation
from hermes_hookspecs.sessions.moves import MOVED

if TYPE_CHECKING:
    from hermes_hookspecs.ids import LineageId, SessionKey
    from hermes_hookspecs.principal import Owner
    from hermes_hookspecs.sessions import RouteMove
    from hermes_hookspecs.source import KeyPolicy

__all__ = ["MoveRoutes", "Moved", "Rekey"]


@attrs.frozen(kw_only=True)
class Rekey:
    """One route that is to have another key: data, compared and set by the store.

    Attributes:
        expected: the lineage that ``key`` must lead to now.
        key_version, policy: what makes the new key.
        owner, shared: of the lineage from then on; ``None`` leaves them.
        reason: in words, for the journal.
    """

    key: SessionKey
    new_key: SessionKey
    expected: LineageId
    key_version: int
    policy: KeyPolicy
    owner: Owner | None = None
    shared: bool | None = None
    reason: str = ""


@attrs.frozen(kw_only=True)
class Moved:
    """What became of routes.

    Attributes:
        moves: lines of the journal, in the order asked for.
        left: keys whose route no longer was as expected, or whose new key leads somewhere; nothing of them changed.
    """

    moves: tuple[RouteMove, ...]
    left: tuple[SessionKey, ...] = ()


@attrs.frozen(kw_only=True)
class MoveRoutes(Operation[Moved]):
    """Give routes other keys, with what waits and runs under them, and write each down in the journal.

    A route moves when its key leads to what is expected and its new key leads nowhere; else it is left. What waits
    (messages and commands), the turn that the key began, open requests for approval and running jobs name the new key
    afterwards; what has ended keeps the old one. A title that its new owner has already gets a number.

    Repetition: a move that the journal has under the same batch, kind and key is not made again; its line is returned.
    A line that was swept is not known any more, and a batch is undone as far as the journal has it.

    Attributes:
        batch: names what is applied, and undone, together. kind: ``moved``, or ``returned`` for what is undone.
    """

    moves: tuple[Rekey, ...]
    batch: str
    now: int
    kind: str = MOVED
