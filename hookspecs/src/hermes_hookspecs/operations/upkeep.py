"""Writes that keep a store tidy: who serves which entrance, and what is old enough to go."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import attrs

from hermes_hookspecs.operations.operation import Operation

if TYPE_CHECKING:
    from hermes_hookspecs.source import Entrance
    from hermes_hookspecs.turns import LeaseHolder

__all__ = ["LeaveEntrances", "ServeEntrances", "Sweep", "Swept"]


@attrs.frozen(kw_only=True)
class ServeEntrances(Operation[None]):
    """Say that a process serves entrances, or still does: their messages have somebody who answers.

    Each call counts one beat of each entrance; entrances of the same process that are not named are left. No process
    outlives a power cut, so that this need not be kept.
    """

    is_kept: ClassVar[bool] = False

    entrances: tuple[Entrance, ...]
    holder: LeaseHolder
    now: int


@attrs.frozen(kw_only=True)
class LeaveEntrances(Operation[None]):
    """Say that processes serve nothing any more: the own one that ends, or others that are known to be dead."""

    holders: tuple[LeaseHolder, ...]
    now: int


@attrs.frozen(kw_only=True)
class Swept:
    """What one sweep removed, rows of each kind. ``more``: the limit was reached, there may be more."""

    inbox: int = 0
    outbox: int = 0
    state: int = 0
    records: int = 0
    changes: int = 0
    moves: int = 0
    more: bool = False


@attrs.frozen(kw_only=True)
class Sweep(Operation[Swept]):
    """Remove what has ended and is old; never anything that waits, is claimed, or is to be sent.

    Gone are inbox rows that were settled before ``inbox_before``, with the identities by which a redelivery is known;
    deliveries that were sent, failed or dropped before ``outbox_before``, with their parts; plugins' state that has
    expired; what tools did, requests for approval that nobody can answer any more and jobs that have ended, from before
    ``records_before``; changes of the feed from before ``changes_before``, oldest first, up to the first that something
    inside the store still waits for; lines of the journal of routes, oldest first, up to the first of ``moves_before``
    or later.

    Attributes:
        limit: most rows of each kind; a bounded step of a longer sweep.
    """

    now: int
    inbox_before: int
    outbox_before: int
    records_before: int = 0
    changes_before: int = 0
    moves_before: int = 0
    limit: int = 500
