"""Jobs: begun under the lease, ended once, told to their own session or kept for its next turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_core.storage.memory.inbox import store_item
from hermes_core.storage.memory.outbox import store_deliveries
from hermes_core.storage.memory.turns import append, check_fence
from hermes_hookspecs.errors import Conflict
from hermes_hookspecs.inbox import INTERNAL, PENDING, SETTLED, InboxDraft
from hermes_hookspecs.jobs import MOST_RESULT, RUNNING, Job, job_text
from hermes_hookspecs.operations import Append
from hermes_hookspecs.source import Entrance

if TYPE_CHECKING:
    from hermes_core.storage.memory.tables import Tables
    from hermes_hookspecs.ids import MessageId
    from hermes_hookspecs.operations import CancelJob, EndJob, StartJob, TellJobs
    from hermes_hookspecs.sessions import Route

__all__ = ["cancel_job", "end_job", "job_as_it_stands", "start_job", "tell_jobs"]


def job_as_it_stands(tables: Tables, job: Job) -> Job:
    """Return a job; its session has heard of it when the row that says so does not wait any more."""
    item = None if job.inbox_id is None else tables.inbox.get(job.inbox_id)
    heard = job.inbox_id is not None and (item is None or item.status != PENDING)
    return attrs.evolve(job, told=job.told or heard)


def start_job(tables: Tables, operation: StartJob) -> Job:
    """Run :class:`~hermes_hookspecs.operations.StartJob`."""
    known = tables.jobs.get(operation.job_id)
    if known is not None:
        return job_as_it_stands(tables, known)
    turn = check_fence(tables, operation.fence)
    tables.jobs[operation.job_id] = started = Job(
        id=operation.job_id,
        lineage_id=turn.lineage_id,
        session_id=tables.lineages[turn.lineage_id].tip,
        turn_id=turn.id,
        kind=operation.kind,
        label=operation.label,
        status=RUNNING,
        started_at=operation.now,
        session_key=operation.session_key,
        source=operation.source,
        holder=operation.holder,
    )
    return started


def end_job(tables: Tables, operation: EndJob) -> Job | None:
    """Run :class:`~hermes_hookspecs.operations.EndJob`."""
    found = tables.jobs.get(operation.job_id)
    if found is None or found.status != RUNNING:
        return None if found is None else job_as_it_stands(tables, found)
    ended = attrs.evolve(
        found,
        status=operation.status,
        settled_at=operation.now,
        reason=operation.reason,
        result=operation.result[:MOST_RESULT],
    )
    route = _route(tables, ended)
    if route is None and ended.source.platform != "cli" and operation.notice is not None:
        store_deliveries(tables, (operation.notice,), operation.now)
    elif route is not None and route.source.platform != "cli":
        ended = attrs.evolve(ended, inbox_id=store_item(tables, _draft(ended, route, operation.now), ended.lineage_id))
    tables.jobs[ended.id] = ended
    return ended


def _route(tables: Tables, job: Job) -> Route | None:
    """Return the job's own route where that leads to its lineage, else the one that does and was used last."""
    routes = [route for route in tables.routes.values() if route.lineage_id == job.lineage_id]
    return min(routes, key=lambda one: (one.key != job.session_key, -one.updated_at, one.key), default=None)


def _draft(job: Job, route: Route, now: int) -> InboxDraft:
    source = job.source if route.key == job.session_key else route.source
    return InboxDraft(
        session_key=route.key,
        source=source,
        entrance=Entrance(route.source.platform, route.source.account_id),
        text=job_text(job),
        accepted_at=now,
        kind=INTERNAL,
    )


def cancel_job(tables: Tables, operation: CancelJob) -> Job | None:
    """Run :class:`~hermes_hookspecs.operations.CancelJob`."""
    found = tables.jobs.get(operation.job_id)
    if found is None:
        return None
    if found.status == RUNNING and found.cancelled_at is None:
        tables.jobs[found.id] = found = attrs.evolve(found, cancelled_at=operation.now)
    return job_as_it_stands(tables, found)


def tell_jobs(tables: Tables, operation: TellJobs) -> tuple[MessageId, ...]:
    """Run :class:`~hermes_hookspecs.operations.TellJobs`."""
    lineage_id = operation.fence.lineage_id
    ids = append(tables, Append(fence=operation.fence, drafts=operation.drafts, now=operation.now))
    for job_id in operation.job_ids:
        known = tables.jobs.get(job_id)
        found = None if known is None else job_as_it_stands(tables, known)
        if found is None or found.lineage_id != lineage_id or found.status == RUNNING or found.told:
            raise Conflict(f"job {job_id} is not one that {lineage_id} has to be told of; look again")
        tables.jobs[job_id] = attrs.evolve(found, told=True)
        item = None if found.inbox_id is None else tables.inbox.get(found.inbox_id)
        if item is not None and item.status == PENDING:
            tables.settle(item, SETTLED, operation.now)
    return ids
