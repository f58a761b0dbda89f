"""The port of a storage backend.

Writes are values (:mod:`hermes_hookspecs.operations`), each one transaction. Reads take the principal on whose behalf
they happen; what the principal may not see is not there. All methods are thread-safe and block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

import attrs

from hermes_hookspecs.ports.records import RecordReader

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from hermes_hookspecs.ids import DeliveryId, InboxId, LineageId, MessageId, SessionId, SessionKey, TurnId
    from hermes_hookspecs.inbox import EntranceServer, InboxItem
    from hermes_hookspecs.messages import Message, ToolCall
    from hermes_hookspecs.operations import Operation
    from hermes_hookspecs.outbox import Delivery
    from hermes_hookspecs.ports.care import Janitor, StoreCare
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import Lineage, Route, Session, SessionFilter, SessionSummary, StoreStats
    from hermes_hookspecs.source import Entrance
    from hermes_hookspecs.state import Change, StateEntry
    from hermes_hookspecs.turns import Lease, RecordedUsage, Turn

__all__ = ["Store", "StoreBackend", "StoreOptions", "StoreReader"]

T = TypeVar("T")


class StoreReader(RecordReader, Protocol):
    """Reads. Collections are tuples; their order is stated; a limit is applied after access and filters."""

    # routes
    def route(self, key: SessionKey) -> Route | None:
        """Return the route of exactly this key."""
        ...

    def routes(self, *, lineage_id: LineageId | None = None, limit: int | None = None) -> Sequence[Route]:
        """Return routes, last used first, of one lineage or of all."""
        ...

    # lineages and sessions
    def lineage(self, lineage_id: LineageId, principal: Principal) -> Lineage | None:
        """Return a lineage."""
        ...

    def session(self, session_id: SessionId, principal: Principal) -> Session | None:
        """Return a session by its exact id."""
        ...

    def segments(self, lineage_id: LineageId, principal: Principal) -> Sequence[Session]:
        """Return the sessions of a lineage, oldest first."""
        ...

    def lineages_by_title(self, title: str, principal: Principal) -> Sequence[Lineage]:
        """Return the lineages with exactly this title, last active first."""
        ...

    def sessions_by_prefix(self, prefix: str, principal: Principal, *, limit: int = 20) -> Sequence[Session]:
        """Return sessions whose id begins with ``prefix`` (plain text, not a pattern), newest id first."""
        ...

    def summaries(
        self, principal: Principal, *, where: SessionFilter | None = None, limit: int | None = 20
    ) -> Sequence[SessionSummary]:
        """Return lineages shown as their tips, last active first, ties by lineage id descending."""
        ...

    def summary(self, lineage_id: LineageId, principal: Principal) -> SessionSummary | None:
        """Return one lineage shown as its tip."""
        ...

    def stats(self) -> StoreStats:
        """Return counts over the whole store."""
        ...

    # transcripts
    def messages(
        self,
        lineage_id: LineageId,
        principal: Principal,
        *,
        session_id: SessionId | None = None,
        after: MessageId | None = None,
        limit: int | None = None,
        hidden: bool = False,
    ) -> Sequence[Message]:
        """Return rows of a lineage (or of one segment) in order of storing, behind ``after``.

        A row whose bytes are damaged is returned with replacement characters.
        """
        ...

    def last_messages(
        self, lineage_id: LineageId, principal: Principal, *, count: int, session_id: SessionId | None = None
    ) -> Sequence[Message]:
        """Return the last ``count`` rows that are not hidden, in order of storing."""
        ...

    def scan(
        self,
        needles: Sequence[str],
        principal: Principal,
        *,
        exclude: LineageId | None = None,
        limit: int = 20,
    ) -> Sequence[Message]:
        """Return user and assistant rows that hold every needle, newest first, without an index.

        Compared without regard to case of ASCII letters; rows that are hidden or of ``exclude`` are left out.
        """
        ...

    # turns and leases
    def turn(self, turn_id: TurnId) -> Turn | None:
        """Return a turn."""
        ...

    def turns(self, lineage_id: LineageId, principal: Principal) -> Sequence[Turn]:
        """Return the turns of a lineage, oldest first."""
        ...

    def active_turn(self, lineage_id: LineageId) -> Turn | None:
        """Return the turn that runs in a lineage, or that nobody has ended yet."""
        ...

    def open_calls(self, lineage_id: LineageId) -> Sequence[ToolCall]:
        """Return the calls of the active turn that have no result yet, in order; empty where no turn is active."""
        ...

    def usage(self, turn_id: TurnId) -> Sequence[RecordedUsage]:
        """Return what was recorded of a turn, in order."""
        ...

    def lease(self, lineage_id: LineageId) -> Lease | None:
        """Return the lease of a lineage (its holder may be ``None``); ``None`` for no such lineage."""
        ...

    def leases(self) -> Sequence[Lease]:
        """Return the leases that are held, longest held first."""
        ...

    # inbox
    def inbox_item(self, inbox_id: InboxId) -> InboxItem | None:
        """Return one row."""
        ...

    def waiting(self, lineage_id: LineageId, *, limit: int = 50) -> Sequence[InboxItem]:
        """Return the pending messages of a lineage, oldest first."""
        ...

    def waiting_of_key(self, key: SessionKey, *, limit: int = 50) -> Sequence[InboxItem]:
        """Return the pending messages of a key, oldest first, also those that have no lineage yet."""
        ...

    def work(self, entrances: Sequence[Entrance], *, limit: int = 100) -> Sequence[LineageId]:
        """Return lineages with pending messages of these entrances that nobody waits for, longest waiting first."""
        ...

    def unrouted(self, entrances: Sequence[Entrance], *, limit: int = 100) -> Sequence[InboxItem]:
        """Return pending messages of these entrances without a lineage, oldest first: they have to be routed."""
        ...

    def controls(self, entrances: Sequence[Entrance], *, limit: int = 100) -> Sequence[InboxItem]:
        """Return control rows of these entrances that nobody waits for and that are not done, oldest first.

        Of each key at each account the oldest: one key's commands hide no other's.
        """
        ...

    def controls_of_key(self, key: SessionKey, *, limit: int = 50) -> Sequence[InboxItem]:
        """Return the control rows of a key that nobody waits for and that are not done, oldest first."""
        ...

    def attended(self, *, limit: int = 1000) -> Sequence[InboxItem]:
        """Return pending rows whose sender waits in the same call, by key (bytes), those of one key oldest first."""
        ...

    def quarantined(self, *, limit: int = 100) -> Sequence[InboxItem]:
        """Return the rows that could not be read, newest first."""
        ...

    def servers(self) -> Sequence[EntranceServer]:
        """Return who serves which entrance, as they said themselves, in order of entrance and beginning."""
        ...

    # outbox
    def delivery(self, delivery_id: DeliveryId) -> Delivery | None:
        """Return one delivery."""
        ...

    def delivery_by_key(self, key: str) -> Delivery | None:
        """Return the delivery with an idempotency key."""
        ...

    def deliveries(self, *, statuses: Sequence[str] = (), limit: int = 100) -> Sequence[Delivery]:
        """Return deliveries with one of these statuses (all when empty), newest first."""
        ...

    def next_deliveries(self, entrances: Sequence[Entrance], *, limit: int = 100) -> Sequence[Delivery]:
        """Return the oldest open delivery of each address of these entrances, longest waiting first.

        Also those that are not due, wait for an inbound message, or are being sent: a caller sees what is in the way.
        """
        ...

    # state and feed
    def state(self, namespace: str, key: str, *, now: int) -> StateEntry | None:
        """Return one entry that has not expired."""
        ...

    def states(self, namespace: str, *, now: int, prefix: str = "") -> Sequence[StateEntry]:
        """Return the entries of a namespace whose key begins with ``prefix``, in order of their keys."""
        ...

    def changes(self, after: str | None, *, limit: int = 1000) -> tuple[Sequence[Change], str]:
        """Return changes behind an opaque cursor, oldest first, and the cursor behind them.

        Old changes are not kept for ever: data is first made from the rows, then kept up from a cursor taken before.
        ``None`` begins at the oldest that is kept. ``ValueError`` is raised for a cursor of another store, for one that
        cannot be read, and for one behind which changes are gone: then the rows have to be read anew.
        """
        ...


class Store(StoreReader, Protocol):
    """A storage backend that is open."""

    name: str
    """Name of the backend: ``sqlite``, ``memory``, ..."""
    location: str
    """Where the data is, for people."""
    durable: bool
    """Whether what was acknowledged is there after the process died."""

    def apply(self, operation: Operation[T]) -> T:
        """Run one operation and return its result once it is durable, or seen by all where it need not be kept.

        :raises HermesError: of the operation; then nothing of it was written, except after
            :class:`~hermes_hookspecs.errors.StoreOutcomeUnknown`.
        """
        ...

    def submit(self, operation: Operation[T]) -> Future[T]:
        """Queue one operation; the future ends as :meth:`apply` would. Never blocks on the disk."""
        ...

    def perform(self, operation: Operation[T]) -> Awaitable[T]:
        """Queue one operation from the running event loop, to be awaited there; ends as :meth:`apply` would.

        A backend that has no better way wraps :meth:`submit`.
        """
        ...

    def submit_read(self, read: Callable[[StoreReader], T]) -> Future[T]:
        """Run ``read`` on a thread of the backend, on one consistent view of the store."""
        ...

    def change_mark(self) -> int:
        """Return a number that differs from the last one when anybody has committed since; costs microseconds."""
        ...

    def care(self) -> StoreCare | None:
        """Return what examines, repairs and copies this store; ``None`` where there is nothing to take care of."""
        ...

    def janitor(self, chores: Sequence[Callable[[float], int]]) -> Janitor | None:
        """Return who does chores for this store, in one process of all that have it open, not started yet.

        For programs that stay. ``None`` where the store makes do without.

        :param chores: each works for about so many seconds and returns how much is left; an error lets it rest.
        """
        ...

    def close(self) -> None:
        """Finish what is queued and let go of everything; a second call does nothing."""
        ...


@attrs.frozen(kw_only=True)
class StoreOptions:
    """What a backend gets when it opens.

    Attributes:
        path: database file of the profile; a backend may use another place beside it.
        durability: ``full`` or ``normal``. busy_timeout_s: patience with other processes, seconds.
        settings: table ``[plugins.<backend>]``, by the name of the backend.
    """

    path: Path
    durability: str = "full"
    busy_timeout_s: float = 20.0
    settings: Mapping[str, object] = attrs.field(factory=dict)


class StoreBackend(Protocol):
    """A kind of store, by name: the value of ``[storage] backend``."""

    name: str

    def open(self, options: StoreOptions) -> Store:
        """Open or create the store.

        :raises StoreRefused: it is not ours, newer, or stands where it cannot work; nothing was touched.
        """
        ...
