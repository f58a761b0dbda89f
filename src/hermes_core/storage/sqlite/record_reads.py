"""The reads of the port beside conversations; modules are imported when the first read of their kind comes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from hermes_core.storage.sqlite.transaction import Reader
    from hermes_hookspecs.approvals import Approval
    from hermes_hookspecs.audit import AuditFilter, AuditRow
    from hermes_hookspecs.ids import ApprovalId, JobId, LineageId, SessionId, TurnId
    from hermes_hookspecs.jobs import Job
    from hermes_hookspecs.principal import Owner, Principal
    from hermes_hookspecs.sessions import RouteMove
    from hermes_hookspecs.usage import UsageGroup

__all__ = ["SqliteRecordReads"]


class SqliteRecordReads:
    """Reads of requests, calls, jobs, moved routes and usage; the view is the subclass's business."""

    def _view(self) -> AbstractContextManager[Reader]:
        raise NotImplementedError

    def approval(self, approval_id: ApprovalId) -> Approval | None:
        """One request."""
        from hermes_core.storage.sqlite.queries import records

        with self._view() as reader:
            return records.approval(reader, approval_id)

    def approvals(
        self, *, turn_id: TurnId | None = None, is_open: bool | None = None, limit: int = 100
    ) -> Sequence[Approval]:
        """Requests, newest first."""
        from hermes_core.storage.sqlite.queries import records

        with self._view() as reader:
            return records.approvals(reader, turn_id=turn_id, is_open=is_open, limit=limit)

    def audit(self, principal: Principal, *, where: AuditFilter | None = None, limit: int = 100) -> Sequence[AuditRow]:
        """What tools did, newest first."""
        from hermes_core.storage.sqlite.queries import records

        with self._view() as reader:
            return records.audit(reader, principal, where, limit)

    def job(self, job_id: JobId) -> Job | None:
        """One job."""
        from hermes_core.storage.sqlite.queries import records

        with self._view() as reader:
            return records.job(reader, job_id)

    def jobs(
        self, principal: Principal, *, lineage_id: LineageId | None = None, running: bool = False, limit: int = 100
    ) -> Sequence[Job]:
        """Jobs, newest first."""
        from hermes_core.storage.sqlite.queries import records

        with self._view() as reader:
            return records.jobs(reader, principal, lineage_id=lineage_id, running=running, limit=limit)

    def untold_jobs(self, lineage_id: LineageId, *, limit: int = 20) -> Sequence[Job]:
        """Jobs of a lineage that have ended and that no turn has heard of, oldest first."""
        from hermes_core.storage.sqlite.queries import records

        with self._view() as reader:
            return records.untold_jobs(reader, lineage_id, limit)

    def route_moves(
        self, *, batch: str | None = None, kinds: Sequence[str] = (), limit: int | None = 100
    ) -> Sequence[RouteMove]:
        """Lines of the journal of routes, newest first."""
        from hermes_core.storage.sqlite.queries import moves

        with self._view() as reader:
            return moves.route_moves(reader, batch, kinds, limit)

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
        """Sums of what was used, in order of name. :raises ValueError: there is no such grouping."""
        from hermes_core.storage.sqlite.queries import usage

        with self._view() as reader:
            return usage.usage_sums(
                reader, principal, by=by, session_id=session_id, lineage_id=lineage_id, owner=owner, since=since
            )
