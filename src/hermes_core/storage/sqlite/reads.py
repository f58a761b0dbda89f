"""The reads of the port: each on one consistent view of its own, or all on one that is given.

The modules that read are imported when the first read of their kind comes, so that a list loads what a list needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.storage.sqlite.cleaning import clean
from hermes_core.storage.sqlite.record_reads import SqliteRecordReads

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from hermes_core.storage.sqlite.transaction import Reader
    from hermes_hookspecs.ids import DeliveryId, InboxId, LineageId, MessageId, SessionId, SessionKey, TurnId
    from hermes_hookspecs.inbox import EntranceServer, InboxItem
    from hermes_hookspecs.messages import Message, ToolCall
    from hermes_hookspecs.outbox import Delivery
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import Lineage, Route, Session, SessionFilter, SessionSummary, StoreStats
    from hermes_hookspecs.source import Entrance
    from hermes_hookspecs.state import Change, StateEntry
    from hermes_hookspecs.turns import Lease, RecordedUsage, Turn

__all__ = ["PinnedReads", "SqliteReads"]


class SqliteReads(SqliteRecordReads):
    """Reads of a database file; where each gets its view from is the subclass's business. Thread-safe, blocking."""

    path: str

    def _view(self) -> AbstractContextManager[Reader]:
        raise NotImplementedError

    # routes
    def route(self, key: SessionKey) -> Route | None:
        """The route of exactly this key."""
        from hermes_core.storage.sqlite.queries import routes

        with self._view() as reader:
            return routes.route(reader, clean(key))

    def routes(self, *, lineage_id: LineageId | None = None, limit: int | None = None) -> Sequence[Route]:
        """Routes, last used first, of one lineage or of all."""
        from hermes_core.storage.sqlite.queries import routes

        with self._view() as reader:
            return routes.routes(reader, clean(lineage_id), limit)

    # lineages and sessions
    def lineage(self, lineage_id: LineageId, principal: Principal) -> Lineage | None:
        """A lineage that the principal may see."""
        from hermes_core.storage.sqlite.queries import lineages

        with self._view() as reader:
            return lineages.lineage(reader, clean(lineage_id), principal)

    def session(self, session_id: SessionId, principal: Principal) -> Session | None:
        """A session by its exact id."""
        from hermes_core.storage.sqlite.queries import lineages

        with self._view() as reader:
            return lineages.session(reader, clean(session_id), principal)

    def segments(self, lineage_id: LineageId, principal: Principal) -> Sequence[Session]:
        """Sessions of a lineage, oldest first."""
        from hermes_core.storage.sqlite.queries import lineages

        with self._view() as reader:
            return lineages.segments(reader, clean(lineage_id), principal)

    def lineages_by_title(self, title: str, principal: Principal) -> Sequence[Lineage]:
        """Lineages with exactly this title, last active first."""
        from hermes_core.storage.sqlite.queries import lineages

        with self._view() as reader:
            return lineages.by_title(reader, clean(title), principal)

    def sessions_by_prefix(self, prefix: str, principal: Principal, *, limit: int = 20) -> Sequence[Session]:
        """Sessions whose id begins with ``prefix``, newest id first."""
        from hermes_core.storage.sqlite.queries import lineages

        with self._view() as reader:
            return lineages.by_prefix(reader, clean(prefix), principal, limit)

    def summaries(
        self, principal: Principal, *, where: SessionFilter | None = None, limit: int | None = 20
    ) -> Sequence[SessionSummary]:
        """Lineages shown as their tips, last active first, ties by lineage id descending."""
        from hermes_core.storage.sqlite.queries import summaries

        with self._view() as reader:
            return summaries.summaries(reader, principal, where, limit)

    def summary(self, lineage_id: LineageId, principal: Principal) -> SessionSummary | None:
        """One lineage shown as its tip."""
        from hermes_core.storage.sqlite.queries import summaries

        with self._view() as reader:
            return summaries.summary(reader, clean(lineage_id), principal)

    def stats(self) -> StoreStats:
        """Counts over the whole store; the size is of the file and its log."""
        from hermes_core.storage.sqlite.queries import stats

        with self._view() as reader:
            return stats.stats(reader, stats.size_of(self.path))

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
        """Rows of a lineage, or of one of its segments, in order of storing."""
        from hermes_core.storage.sqlite.queries import transcripts

        with self._view() as reader:
            return transcripts.messages(
                reader,
                clean(lineage_id),
                principal,
                session_id=clean(session_id),
                after=after,
                limit=limit,
                hidden=hidden,
            )

    def last_messages(
        self, lineage_id: LineageId, principal: Principal, *, count: int, session_id: SessionId | None = None
    ) -> Sequence[Message]:
        """The last ``count`` rows that are not hidden, in order of storing."""
        from hermes_core.storage.sqlite.queries import transcripts

        with self._view() as reader:
            return transcripts.last_messages(
                reader, clean(lineage_id), principal, count=count, session_id=clean(session_id)
            )

    def scan(
        self,
        needles: Sequence[str],
        principal: Principal,
        *,
        exclude: LineageId | None = None,
        limit: int = 20,
    ) -> Sequence[Message]:
        """User and assistant rows that hold every needle, newest first; reads every row there is."""
        from hermes_core.storage.sqlite.queries import transcripts

        with self._view() as reader:
            return transcripts.scan(reader, needles, principal, exclude=clean(exclude), limit=limit)

    # turns and leases
    def turn(self, turn_id: TurnId) -> Turn | None:
        """A turn."""
        from hermes_core.storage.sqlite.queries import turns

        with self._view() as reader:
            return turns.turn(reader, clean(turn_id))

    def turns(self, lineage_id: LineageId, principal: Principal) -> Sequence[Turn]:
        """Turns of a lineage, oldest first."""
        from hermes_core.storage.sqlite.queries import turns

        with self._view() as reader:
            return turns.turns(reader, clean(lineage_id), principal)

    def active_turn(self, lineage_id: LineageId) -> Turn | None:
        """The turn that runs in a lineage, or that nobody has ended yet."""
        from hermes_core.storage.sqlite.queries import turns

        with self._view() as reader:
            return turns.active_turn(reader, clean(lineage_id))

    def open_calls(self, lineage_id: LineageId) -> Sequence[ToolCall]:
        """Calls of the active turn that have no result yet, in order."""
        from hermes_core.storage.sqlite.queries import turns

        with self._view() as reader:
            return turns.open_calls(reader, clean(lineage_id))

    def usage(self, turn_id: TurnId) -> Sequence[RecordedUsage]:
        """What was recorded of a turn, in order."""
        from hermes_core.storage.sqlite.queries import turns

        with self._view() as reader:
            return turns.usage(reader, clean(turn_id))

    def lease(self, lineage_id: LineageId) -> Lease | None:
        """The lease of a lineage; ``None`` for no such lineage."""
        from hermes_core.storage.sqlite.queries import turns

        with self._view() as reader:
            return turns.lease(reader, clean(lineage_id))

    def leases(self) -> Sequence[Lease]:
        """Leases that are held, longest held first."""
        from hermes_core.storage.sqlite.queries import turns

        with self._view() as reader:
            return turns.leases(reader)

    # inbox
    def inbox_item(self, inbox_id: InboxId) -> InboxItem | None:
        """One row of the inbox."""
        from hermes_core.storage.sqlite.queries import inbox

        with self._view() as reader:
            return inbox.item(reader, inbox_id)

    def waiting(self, lineage_id: LineageId, *, limit: int = 50) -> Sequence[InboxItem]:
        """Pending messages of a lineage, oldest first."""
        from hermes_core.storage.sqlite.queries import inbox

        with self._view() as reader:
            return inbox.waiting(reader, clean(lineage_id), limit)

    def waiting_of_key(self, key: SessionKey, *, limit: int = 50) -> Sequence[InboxItem]:
        """Pending messages of a key, oldest first, also those that have no lineage yet."""
        from hermes_core.storage.sqlite.queries import inbox

        with self._view() as reader:
            return inbox.waiting_of_key(reader, clean(key), limit)

    def work(self, entrances: Sequence[Entrance], *, limit: int = 100) -> Sequence[LineageId]:
        """Lineages with pending messages of these entrances that nobody waits for, longest waiting first."""
        from hermes_core.storage.sqlite.queries import inbox

        with self._view() as reader:
            return inbox.work(reader, clean(tuple(entrances)), limit)

    def unrouted(self, entrances: Sequence[Entrance], *, limit: int = 100) -> Sequence[InboxItem]:
        """Pending messages of these entrances without a lineage, oldest first."""
        from hermes_core.storage.sqlite.queries import inbox

        with self._view() as reader:
            return inbox.unrouted(reader, clean(tuple(entrances)), limit)

    def controls(self, entrances: Sequence[Entrance], *, limit: int = 100) -> Sequence[InboxItem]:
        """The oldest control row of each key of these entrances that nobody waits for and that is not done."""
        from hermes_core.storage.sqlite.queries import inbox

        with self._view() as reader:
            return inbox.controls(reader, clean(tuple(entrances)), limit)

    def controls_of_key(self, key: SessionKey, *, limit: int = 50) -> Sequence[InboxItem]:
        """Control rows of a key that nobody waits for and that are not done, oldest first."""
        from hermes_core.storage.sqlite.queries import inbox

        with self._view() as reader:
            return inbox.controls_of_key(reader, clean(key), limit)

    def attended(self, *, limit: int = 1000) -> Sequence[InboxItem]:
        """Pending rows whose sender waits in the same call, by key, those of one key oldest first."""
        from hermes_core.storage.sqlite.queries import inbox

        with self._view() as reader:
            return inbox.attended(reader, limit)

    def quarantined(self, *, limit: int = 100) -> Sequence[InboxItem]:
        """Rows that could not be read, newest first."""
        from hermes_core.storage.sqlite.queries import inbox

        with self._view() as reader:
            return inbox.quarantined(reader, limit)

    def servers(self) -> Sequence[EntranceServer]:
        """Who serves which entrance, in order of entrance and beginning."""
        from hermes_core.storage.sqlite.queries import servers

        with self._view() as reader:
            return servers.servers(reader)

    # outbox
    def delivery(self, delivery_id: DeliveryId) -> Delivery | None:
        """One delivery."""
        from hermes_core.storage.sqlite.queries import outbox

        with self._view() as reader:
            return outbox.delivery(reader, delivery_id)

    def delivery_by_key(self, key: str) -> Delivery | None:
        """The delivery with an idempotency key."""
        from hermes_core.storage.sqlite.queries import outbox

        with self._view() as reader:
            return outbox.by_key(reader, clean(key))

    def deliveries(self, *, statuses: Sequence[str] = (), limit: int = 100) -> Sequence[Delivery]:
        """Deliveries with one of these statuses (all when empty), newest first."""
        from hermes_core.storage.sqlite.queries import outbox

        with self._view() as reader:
            return outbox.deliveries(reader, clean(tuple(statuses)), limit)

    def next_deliveries(self, entrances: Sequence[Entrance], *, limit: int = 100) -> Sequence[Delivery]:
        """The oldest open delivery of each address of these entrances, longest waiting first."""
        from hermes_core.storage.sqlite.queries import outbox

        with self._view() as reader:
            return outbox.next_deliveries(reader, clean(tuple(entrances)), limit)

    # state and feed
    def state(self, namespace: str, key: str, *, now: int) -> StateEntry | None:
        """One entry that has not expired."""
        from hermes_core.storage.sqlite.queries import plugin_state

        with self._view() as reader:
            return plugin_state.entry(reader, clean(namespace), clean(key), now)

    def states(self, namespace: str, *, now: int, prefix: str = "") -> Sequence[StateEntry]:
        """Entries of a namespace whose key begins with ``prefix``, in order of their keys."""
        from hermes_core.storage.sqlite.queries import plugin_state

        with self._view() as reader:
            return plugin_state.entries(reader, clean(namespace), now, clean(prefix))

    def changes(self, after: str | None, *, limit: int = 1000) -> tuple[Sequence[Change], str]:
        """Changes behind an opaque cursor, oldest first, and the cursor behind them.

        :raises ValueError: the cursor is another store's, or none.
        """
        from hermes_core.storage.sqlite.queries import feed

        with self._view() as reader:
            return feed.changes(reader, after, limit)


class PinnedReads(SqliteReads):
    """Reads on one view that somebody else opened and closes.

    :param path: the database file.
    :param reader: the view; used by one thread at a time.
    """

    def __init__(self, path: str, reader: Reader) -> None:
        self.path = path
        self._reader = reader

    def _view(self) -> AbstractContextManager[Reader]:
        from contextlib import nullcontext

        return nullcontext(self._reader)
