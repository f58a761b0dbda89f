"""Parts of the facade that few programs need: the outbox and the care of the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from hermes_hookspecs.ids import DeliveryId
    from hermes_hookspecs.outbox import Delivery
    from hermes_hookspecs.ports.care import Finding, StoreHealth
    from hermes_hookspecs.ports.rekeying import Rekeying
    from hermes_hookspecs.sessions import Lineage
    from hermes_hookspecs.turns import Lease, Turn

__all__ = ["Care", "Examination", "HasDesks", "LeaseRow", "Maintained", "Outbox"]


class Outbox(Protocol):
    """Answers on their way, for people. Every method blocks."""

    def list(self, *, statuses: Sequence[str] = (), limit: int = 100) -> Sequence[Delivery]:
        """Return deliveries with one of these statuses (all when empty), newest first."""
        ...

    def retry(self, delivery_id: DeliveryId) -> Delivery:
        """Let a delivery be sent as soon as its turn comes and its account may send; one whose sender died, too.

        :raises Conflict: it is sent, or being sent. :raises DeliveryNotFound: no such row.
        """
        ...

    def drop(self, delivery_id: DeliveryId) -> Delivery:
        """Never send a delivery. Errors as :meth:`retry`; one whose sender died may be dropped."""
        ...

    def has_dead_sender(self, delivery: Delivery) -> bool:
        """Return whether a delivery is being sent by a process that is known to be gone."""
        ...


@attrs.frozen(kw_only=True)
class LeaseRow:
    """A lease that is held.

    Attributes:
        turn: what runs under it. lives: whether the holder's process lives, ``None`` where that cannot be known here.
        waiting: messages that wait behind it.
    """

    lease: Lease
    lineage: Lineage | None
    turn: Turn | None
    lives: bool | None
    waiting: int


@attrs.frozen(kw_only=True)
class Examination:
    """What a look at the store and its surroundings found.

    Attributes:
        damage: structural faults of the file, ``()`` when it is sound. checked: names of what was looked at, in order.
        repaired: what a repair put right. backup: the copy that was made before it.
    """

    location: str
    health: StoreHealth | None
    damage: tuple[str, ...]
    findings: tuple[Finding, ...]
    checked: tuple[str, ...]
    repaired: tuple[Finding, ...] = ()
    backup: str | None = None


@attrs.frozen(kw_only=True)
class Maintained:
    """What one round of maintenance did.

    Attributes:
        recovered: interrupted turns that it closed; their messages wait again, or their senders are told.
        swept: old rows that went. unindexed: changes that the search index has still to take in.
        more: the round ended before everything was done; call again. reset: conversations that their policy ended.
    """

    recovered: int
    swept: int
    unindexed: int = 0
    more: bool = False
    reset: int = 0


class Care(Protocol):
    """Leases, examination, repair and copies of the store, for people. Every method blocks."""

    def leases(self) -> Sequence[LeaseRow]:
        """Return the leases that are held, longest held first."""
        ...

    def examine(self, *, progress: Callable[[str], None] | None = None) -> Examination:
        """Look for damage, dangling references, stuck turns, dead leases, orphans; change nothing.

        :param progress: told the name of each check before it begins.
        """
        ...

    def repair(self, *, progress: Callable[[str], None] | None = None) -> Examination:
        """Copy the store, then put right what can be put right; a second call finds nothing to do.

        :raises StoreDamaged: the file itself is damaged; nothing was changed, the way out is in the message.
        """
        ...

    def backup(self, target: Path | None = None, *, progress: Callable[[int, int], None] | None = None) -> Path:
        """Copy the store while it is in use, and the attachments beside it; return where the copy is.

        :param target: file to make; ``None`` names one in the profile's folder ``backups``. Attachments are in the
            folder ``<file>.d``, where a program finds them that opens the copy by its path.
        :raises StorageError: the target exists, or the copy failed; nothing half done is left.
        """
        ...


class HasDesks(Protocol):
    """The part of the facade that people look after things with."""

    @property
    def outbox(self) -> Outbox:
        """Return the outbox, for people."""
        ...

    @property
    def care(self) -> Care:
        """Return the care of the store."""
        ...

    @property
    def rekeying(self) -> Rekeying:
        """Return what looks after routes when the key policy changes."""
        ...

    def maintain(self) -> Maintained:
        """Recover, sweep, index: what a gateway does beside its work. Idempotent; blocks for a bounded time."""
        ...
