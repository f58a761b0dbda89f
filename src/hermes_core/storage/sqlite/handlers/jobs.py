"""Jobs: begun under the lease, ended once, told to their own session or kept for its next turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.handlers.deliveries import cells_of, store_deliveries
from hermes_core.storage.sqlite.handlers.steps import append
from hermes_core.storage.sqlite.queries.records import job
from hermes_core.storage.sqlite.rows import holder_text, read_source, source_text
from hermes_hookspecs.errors import Conflict, LeaseLost
from hermes_hookspecs.inbox import INTERNAL
from hermes_hookspecs.jobs import MOST_RESULT, RUNNING, job_text
from hermes_hookspecs.operations import Append

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.storage.sqlite.transaction import SQLiteValue, Transaction
    from hermes_hookspecs.ids import InboxId, JobId, MessageId
    from hermes_hookspecs.jobs import Job
    from hermes_hookspecs.operations import CancelJob, EndJob, StartJob, TellJobs

    Row = tuple[SQLiteValue, ...]

__all__ = ["cancel_job", "end_job", "start_job", "tell_jobs"]

FENCED = "SELECT tip FROM lineages WHERE id = ? AND lease_token = ? AND turn_id = ?"
INSERT = """
    INSERT INTO jobs (id, lineage_id, session_id, turn_id, kind, label, status, started_at, session_key, holder, source)
    VALUES (?, ?, ?, ?, ?, ?, 'running', ?, ?, ?, ?)
"""
END = "UPDATE jobs SET status = ?, settled_at = ?, reason = ?, result = ? WHERE id = ?"
# Its own key before others, and of these the one used last.
ROUTE = """
    SELECT key, platform, account_id, source FROM routes WHERE lineage_id = ?
    ORDER BY key <> ?, updated_at DESC, key LIMIT 1
"""
INSERT_INBOX = """
    INSERT INTO inbox (session_key, lineage_id, kind, status, accepted_at, platform, account_id, source, text)
    VALUES (?, ?, ?, 'pending', ?, ?, ?, ?, ?)
"""
HEARD_BY = "UPDATE jobs SET inbox_id = ? WHERE id = ?"
CANCEL = "UPDATE jobs SET cancelled_at = coalesce(cancelled_at, ?) WHERE id = ? AND status = 'running'"
TOLD = "UPDATE jobs SET told = 1 WHERE id = ?"
SETTLE = "UPDATE inbox SET status = 'done', settled_at = ? WHERE id = ? AND status = 'pending'"


def start_job(operation: StartJob) -> Callable[[Transaction], Job]:
    """Work of :class:`~hermes_hookspecs.operations.StartJob`."""
    fence = operation.fence
    holder, source = holder_text(operation.holder), source_text(operation.source)

    def work(tx: Transaction) -> Job:
        known = job(tx, operation.job_id)
        if known is not None:
            return known
        found = tx.one(FENCED, (fence.lineage_id, fence.token, fence.turn_id))
        if found is None:
            raise LeaseLost(fence.lineage_id, fence.token)
        where = (operation.job_id, fence.lineage_id, found[0], fence.turn_id)
        what = (operation.kind, operation.label, operation.now, operation.session_key, holder, source)
        tx.run(INSERT, (*where, *what))
        return _there(tx, operation.job_id)

    return work


def end_job(operation: EndJob) -> Callable[[Transaction], Job | None]:
    """Work of :class:`~hermes_hookspecs.operations.EndJob`."""
    notices = cells_of(() if operation.notice is None else (operation.notice,))
    result, now = operation.result[:MOST_RESULT], operation.now

    def work(tx: Transaction) -> Job | None:
        found = job(tx, operation.job_id)
        if found is None or found.status != RUNNING:
            return found
        tx.run(END, (operation.status, now, operation.reason, result, found.id))
        ended = _there(tx, found.id)
        route = tx.one(ROUTE, (ended.lineage_id, ended.session_key))
        if route is None and ended.source.platform != "cli":
            store_deliveries(tx, notices, now)
        elif route is not None and route[1] != "cli":
            tx.run(HEARD_BY, (_accept(tx, ended, route, now), ended.id))
        return _there(tx, ended.id)

    return work


def _accept(tx: Transaction, ended: Job, route: Row, now: int) -> InboxId:
    """Store the row by which the session hears of it; where it began, from the one who began it."""
    key, platform, account_id, source = cast("tuple[str, str, str, str]", route)  # columns of ROUTE
    is_home = key == ended.session_key
    speaker = ended.source if is_home else read_source(source)
    cells = (key, ended.lineage_id, INTERNAL, now, platform, account_id, source_text(speaker), job_text(ended))
    return cast("InboxId", tx.insert(INSERT_INBOX, cells))  # the rowid is the id


def cancel_job(operation: CancelJob) -> Callable[[Transaction], Job | None]:
    """Work of :class:`~hermes_hookspecs.operations.CancelJob`."""

    def work(tx: Transaction) -> Job | None:
        tx.run(CANCEL, (operation.now, operation.job_id))
        return job(tx, operation.job_id)

    return work


def tell_jobs(operation: TellJobs) -> Callable[[Transaction], tuple[MessageId, ...]]:
    """Work of :class:`~hermes_hookspecs.operations.TellJobs`."""
    fence, now = operation.fence, operation.now
    store = append(Append(fence=fence, drafts=operation.drafts, now=now))

    def work(tx: Transaction) -> tuple[MessageId, ...]:
        ids = store(tx)
        for job_id in operation.job_ids:
            found = job(tx, job_id)
            if found is None or found.lineage_id != fence.lineage_id or found.status == RUNNING or found.told:
                raise Conflict(f"job {job_id} is not one that {fence.lineage_id} has to be told of; look again")
            tx.run(TOLD, (job_id,))
            tx.run(SETTLE, (now, found.inbox_id))
        return ids

    return work


def _there(tx: Transaction, job_id: JobId) -> Job:
    found = job(tx, job_id)
    if found is None:
        raise Conflict(f"there is no job {job_id}; nothing was changed")
    return found
