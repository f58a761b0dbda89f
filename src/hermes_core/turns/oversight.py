"""What people see of the work of agents, and what they have to say in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.leases import holder_lives
from hermes_core.turns.approvals import approval_topic
from hermes_core.turns.jobs import ending, tell_of_end
from hermes_core.turns.topics import JOBS
from hermes_hookspecs.approvals import APPROVED, DENIED, may_answer
from hermes_hookspecs.errors import AmbiguousReference, ApprovalNotFound, Conflict, JobNotFound
from hermes_hookspecs.jobs import LOST, RUNNING
from hermes_hookspecs.operations import AnswerApproval, CancelJob, Control
from hermes_hookspecs.turns import DEAD

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_core.sessions.desk import SessionDesk
    from hermes_hookspecs.approvals import Approval
    from hermes_hookspecs.audit import AuditFilter, AuditRow
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ids import ApprovalId, InboxId, LineageId, SessionId
    from hermes_hookspecs.jobs import Job
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.principal import Owner, Principal
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.usage import UsageGroup

__all__ = ["OversightDesk"]

_MOST_OPEN = 1000


class OversightDesk:
    """See :class:`~hermes_hookspecs.ports.oversight.Oversight`. Thread-safe; blocks."""

    def __init__(self, store: Store, clock: Clock, desk: SessionDesk, wake: Callable[[str], None]) -> None:
        self._store = store
        self._clock = clock
        self._desk = desk
        self._wake = wake

    # --- approvals

    def approvals(self, source: SessionSource) -> Sequence[Approval]:
        """Return the open requests that whoever speaks from ``source`` may answer, oldest first."""
        principal, source = self._desk.principal(source), self._desk.at_home(source)
        now = self._clock.now()
        return tuple(
            one
            for one in reversed(self._store.approvals(is_open=True, limit=_MOST_OPEN))
            if one.expires_at > now and may_answer(one, principal, source) and self._is_waited_for(one)
        )

    def _is_waited_for(self, asked: Approval) -> bool:
        """Return whether the process that asked may still be there; an answer to a dead one would promise a call."""
        lease = self._store.lease(asked.lineage_id)
        return lease is not None and lease.holder is not None and holder_lives(lease.holder) is not False

    def answer(
        self, approval_id: str, source: SessionSource, *, approve: bool, control_id: InboxId | None = None
    ) -> Approval:
        """Answer a request. Errors as the port says."""
        before = None if control_id is None else self._answered_by(control_id)
        if before is not None:
            return before
        asked = self._meant(approval_id, source)
        name = source.user_name or source.participant or source.platform
        answering = AnswerApproval(
            approval_id=asked.id,
            status=APPROVED if approve else DENIED,
            now=self._clock.now(),
            answered_by=" ".join(name.split()),
        )
        try:
            if control_id is None:
                self._store.apply(answering)
            else:
                self._store.apply(Control(inbox_id=control_id, effect=answering, now=self._clock.now()))
        except Conflict:
            raise ApprovalNotFound(asked.id) from None
        self._wake(approval_topic(asked.id))
        return self._there(asked.id)

    def _meant(self, approval_id: str, source: SessionSource) -> Approval:
        mine = self.approvals(source)
        wanted = approval_id.strip().lower()
        if wanted:
            mine = [one for one in mine if one.id == wanted]
        if not mine:
            raise ApprovalNotFound(wanted)
        if len(mine) > 1:
            raise AmbiguousReference("", [(one.id, one.tool_name) for one in mine])
        return mine[0]

    def _answered_by(self, control_id: InboxId) -> Approval | None:
        """Return what the command's row has answered in an earlier try whose reply is still owed."""
        item = self._store.inbox_item(control_id)
        if item is None or item.outcome is None or item.outcome.lineage_id is None:
            return None
        settled = self._store.approvals(is_open=False, limit=_MOST_OPEN)
        mine = [one for one in settled if one.lineage_id == item.outcome.lineage_id and one.answered_by]
        return max(mine, key=lambda one: one.settled_at or 0, default=None)

    def _there(self, approval_id: ApprovalId) -> Approval:
        found = self._store.approval(approval_id)
        if found is None:
            raise ApprovalNotFound(approval_id)
        return found

    # --- jobs

    def jobs(
        self, principal: Principal, *, lineage_id: LineageId | None = None, running: bool = False, limit: int = 100
    ) -> Sequence[Job]:
        """Return jobs, newest first."""
        return self._store.jobs(principal, lineage_id=lineage_id, running=running, limit=limit)

    def job_state(self, job: Job) -> str:
        """Return how a job stands, in words."""
        if job.status != RUNNING:
            return job.status
        lives = holder_lives(job.holder)
        if lives is False:
            return "process is gone"
        if lives is None:
            return "unknown host"
        return RUNNING if job.cancelled_at is None else "ending"

    def cancel_job(self, job_id: str, principal: Principal) -> Job:
        """Ask the process of a job to end it. Errors as the port says."""
        mine = self._store.jobs(principal, limit=_MOST_OPEN)
        found = [one for one in mine if one.id == job_id]
        if not found and job_id:
            found = [one for one in mine if one.id.startswith(job_id) and one.status == RUNNING]
        if not found:
            raise JobNotFound(job_id)
        if len(found) > 1:
            raise AmbiguousReference(job_id, [(one.id, one.label) for one in found])
        job = found[0]
        if job.status == RUNNING and holder_lives(job.holder) is False:
            ended = self._store.apply(ending(job, LOST, self._clock.now(), reason=DEAD))
            if ended is not None:
                tell_of_end(self._wake, ended)
            return ended or job
        wanted = self._store.apply(CancelJob(job_id=job.id, now=self._clock.now()))
        self._wake(JOBS)
        return wanted or job

    # --- what was done, and what it took

    def audit(self, principal: Principal, *, where: AuditFilter | None = None, limit: int = 100) -> Sequence[AuditRow]:
        """Return what tools did, newest first."""
        return self._store.audit(principal, where=where, limit=limit)

    def usage(
        self,
        principal: Principal,
        *,
        by: str,
        session_id: SessionId | None = None,
        lineage_id: LineageId | None = None,
        owner: Owner | None = None,
        since: int | None = None,
    ) -> Sequence[UsageGroup]:
        """Return sums of usage in order of name."""
        return self._store.usage_sums(
            principal, by=by, session_id=session_id, lineage_id=lineage_id, owner=owner, since=since
        )
