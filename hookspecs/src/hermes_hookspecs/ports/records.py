"""Reads of a store beside conversations: requests for approval, what tools did, jobs, moved routes, usage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.approvals import Approval
    from hermes_hookspecs.audit import AuditFilter, AuditRow
    from hermes_hookspecs.ids import ApprovalId, JobId, LineageId, SessionId, TurnId
    from hermes_hookspecs.jobs import Job
    from hermes_hookspecs.principal import Owner, Principal
    from hermes_hookspecs.sessions import RouteMove
    from hermes_hookspecs.usage import UsageGroup

__all__ = ["RecordReader"]


class RecordReader(Protocol):
    """What a :class:`~hermes_hookspecs.ports.store.StoreReader` reads beside conversations. Collections are tuples."""

    # approvals
    def approval(self, approval_id: ApprovalId) -> Approval | None:
        """Return one request; one whose turn has ended without an answer is *withdrawn*."""
        ...

    def approvals(
        self, *, turn_id: TurnId | None = None, is_open: bool | None = None, limit: int = 100
    ) -> Sequence[Approval]:
        """Return requests, newest first: of one turn or of all, open, settled or both."""
        ...

    # audit
    def audit(self, principal: Principal, *, where: AuditFilter | None = None, limit: int = 100) -> Sequence[AuditRow]:
        """Return what tools did, newest first. Calls of deleted lineages are seen by the operator alone."""
        ...

    # jobs
    def job(self, job_id: JobId) -> Job | None:
        """Return one job."""
        ...

    def jobs(
        self, principal: Principal, *, lineage_id: LineageId | None = None, running: bool = False, limit: int = 100
    ) -> Sequence[Job]:
        """Return jobs, newest first: of one lineage or of all, with ``running`` those that have not ended."""
        ...

    def untold_jobs(self, lineage_id: LineageId, *, limit: int = 20) -> Sequence[Job]:
        """Return the jobs of a lineage that have ended and that no turn of it has heard of, oldest first."""
        ...

    # routes
    def route_moves(
        self, *, batch: str | None = None, kinds: Sequence[str] = (), limit: int | None = 100
    ) -> Sequence[RouteMove]:
        """Return the journal of routes, newest first: of one batch or all, of some kinds or (``()``) of every kind."""
        ...

    # usage
    def usage_sums(
        self,
        principal: Principal,
        *,
        by: str | None = None,
        session_id: SessionId | None = None,
        lineage_id: LineageId | None = None,
        owner: Owner | None = None,
        since: int | None = None,
    ) -> Sequence[UsageGroup]:
        """Return what was used in lineages that the principal may see, in order of name.

        :param by: one of :data:`~hermes_hookspecs.usage.GROUPINGS`; ``None`` for one group without a name, also of
            nothing. since: UTC milliseconds of the report.
        :raises ValueError: there is no such grouping.
        """
        ...
