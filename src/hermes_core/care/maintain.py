"""One round of maintenance: dead turns are closed, what has had its time ends, what is old goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.leases import holder_lives
from hermes_core.turns.jobs import close_lost_jobs
from hermes_hookspecs.operations import LeaveEntrances, Sweep
from hermes_hookspecs.ports.desks import Maintained
from hermes_hookspecs.ports.sqlite import sqlite_access
from hermes_hookspecs.principal import operator

if TYPE_CHECKING:
    from collections.abc import Collection

    from hermes_core.config.sections import Settings
    from hermes_core.resets.desk import ResetDesk
    from hermes_core.turns.service import TurnService
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ports.search import SearchIndex
    from hermes_hookspecs.ports.services import AttachmentStore
    from hermes_hookspecs.ports.store import Store

__all__ = ["maintain"]

MOST_SWEEPS = 20
"""Bounded steps of one round; each is a transaction of its own."""
CHANGES_KEPT_DAYS = 7
"""How long the change feed is kept for those who read it from outside the store."""
ABSENT_DAYS = 30
"""A plugin that is not in use here, and has looked after its tables nowhere else for so long, is gone."""
CLEARING_S = 0.5
INDEXING_S = 1.0
"""Seconds of indexing in one round."""
_DAY_MS = 86_400_000


def maintain(
    store: Store,
    clock: Clock,
    settings: Settings,
    turns: TurnService,
    *,
    resets: ResetDesk,
    index: SearchIndex,
    files: AttachmentStore,
    plugins: Collection[str] = (),
) -> Maintained:
    """Do one round; a second one behind it finds nothing to do. Blocks for a bounded time.

    :param plugins: names of those that are in use; their tables stay however far they lag.
    :raises StorageError: the store cannot do it; what was done until then stays.
    """
    recovered = turns.recovery.close_dead_turns()
    gone = tuple(one.holder for one in store.servers() if holder_lives(one.holder) is False)
    if gone:
        store.apply(LeaveEntrances(holders=gone, now=clock.now()))
    ended, more_to_end = resets.sweep()
    close_lost_jobs(store, clock, turns.waker.wake)
    swept, more = _sweep(store, clock, settings)
    older_than_s = settings.inbox.keep_days * 86_400.0  # a message may wait as long, with nobody else referring to it
    files.sweep(lambda lineage_id: store.lineage(lineage_id, operator()) is not None, older_than_s=older_than_s)
    unindexed = index.catch_up(budget_s=INDEXING_S)
    uncleared = _clear_tables(store, clock, {index.name, *plugins})
    return Maintained(
        recovered=recovered,
        swept=swept,
        unindexed=unindexed,
        more=more or more_to_end or unindexed > 0 or uncleared > 0,
        reset=ended,
    )


def _clear_tables(store: Store, clock: Clock, present: Collection[str]) -> int:
    """Drop tables of plugins that are gone, and delete some of what was dropped; return how many tables are left.

    What such a plugin holds can be made again, and it holds texts that were deleted since; the feed waits for it, too.
    """
    access = sqlite_access(store)
    if access is None:
        return 0
    for plugin in access.lagging(clock.now() - ABSENT_DAYS * _DAY_MS):
        if plugin not in present:
            _log_absent(plugin)
            access.drop(plugin)
    return access.clear_dropped(budget_s=CLEARING_S)


def _log_absent(plugin: str) -> None:
    from logging import getLogger

    text = "plugin %r has not looked after its tables for %d days: they were dropped, it can make them again"
    getLogger(__name__).warning(text, plugin, ABSENT_DAYS)


def _sweep(store: Store, clock: Clock, settings: Settings) -> tuple[int, bool]:
    """Remove what is old, step by step; return how many rows went, and whether there may be more."""
    now, removed = clock.now(), 0
    operation = Sweep(
        now=now,
        inbox_before=now - int(settings.inbox.keep_days * _DAY_MS),
        outbox_before=now - int(settings.outbox.keep_days * _DAY_MS),
        records_before=now - int(settings.agent.audit_keep_days * _DAY_MS),
        changes_before=now - CHANGES_KEPT_DAYS * _DAY_MS,
        moves_before=now - int(settings.routing.journal_keep_days * _DAY_MS),
    )
    for _ in range(MOST_SWEEPS):
        swept = store.apply(operation)
        removed += swept.inbox + swept.outbox + swept.state + swept.records + swept.changes + swept.moves
        if not swept.more:
            return removed, False
    return removed, True
