"""The reads of the port beside conversations."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hermes_core.storage.memory.approvals import as_it_stands
from hermes_core.storage.memory.audit import is_wanted, row_as_it_stands
from hermes_core.storage.memory.jobs import job_as_it_stands
from hermes_hookspecs.approvals import OPEN
from hermes_hookspecs.audit import AuditFilter
from hermes_hookspecs.jobs import RUNNING
from hermes_hookspecs.principal import may_read
from hermes_hookspecs.turns import Usage
from hermes_hookspecs.usage import GROUPINGS, UsageGroup, UsageSum

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_core.storage.memory.tables import Tables, UsageRow
    from hermes_hookspecs.approvals import Approval
    from hermes_hookspecs.audit import AuditRow
    from hermes_hookspecs.ids import ApprovalId, JobId, LineageId, SessionId, TurnId
    from hermes_hookspecs.jobs import Job
    from hermes_hookspecs.principal import Owner, Principal
    from hermes_hookspecs.sessions import RouteMove

__all__ = ["MemoryRecordReader"]


class MemoryRecordReader:
    """Reads of requests, calls, jobs, moved routes and usage."""

    _tables: Tables

    def approval(self, approval_id: ApprovalId) -> Approval | None:
        """Return one request."""
        found = self._tables.approvals.get(approval_id)
        return None if found is None else as_it_stands(self._tables, found)

    def approvals(
        self, *, turn_id: TurnId | None = None, is_open: bool | None = None, limit: int = 100
    ) -> Sequence[Approval]:
        """Return requests, newest first."""
        every = [as_it_stands(self._tables, one) for one in reversed(self._tables.approvals.values())]
        found = [
            one
            for one in every
            if turn_id in {None, one.turn_id} and (is_open is None or is_open == (one.status == OPEN))
        ]
        return tuple(found[: max(limit, 0)])

    def audit(self, principal: Principal, *, where: AuditFilter | None = None, limit: int = 100) -> Sequence[AuditRow]:
        """Return what tools did, newest first."""
        wanted = where or AuditFilter()
        every = [row_as_it_stands(self._tables, row) for row in reversed(self._tables.audit.values())]
        found = [row for row in every if self._may_see(row.lineage_id, principal) and is_wanted(row, wanted)]
        return tuple(found[: max(limit, 0)])

    def job(self, job_id: JobId) -> Job | None:
        """Return one job."""
        found = self._tables.jobs.get(job_id)
        return None if found is None else job_as_it_stands(self._tables, found)

    def jobs(
        self, principal: Principal, *, lineage_id: LineageId | None = None, running: bool = False, limit: int = 100
    ) -> Sequence[Job]:
        """Return jobs, newest first."""
        found = [
            job_as_it_stands(self._tables, job)
            for job in reversed(self._tables.jobs.values())
            if lineage_id in {None, job.lineage_id}
            and (not running or job.status == RUNNING)
            and self._may_see(job.lineage_id, principal)
        ]
        return tuple(found[: max(limit, 0)])

    def untold_jobs(self, lineage_id: LineageId, *, limit: int = 20) -> Sequence[Job]:
        """Return the jobs of a lineage that have ended and that no turn of it has heard of, oldest first."""
        every = [job_as_it_stands(self._tables, job) for job in self._tables.jobs.values()]
        found = [job for job in every if job.lineage_id == lineage_id and job.status != RUNNING and not job.told]
        return tuple(found[: max(limit, 0)])

    def route_moves(
        self, *, batch: str | None = None, kinds: Sequence[str] = (), limit: int | None = 100
    ) -> Sequence[RouteMove]:
        """Return the journal of routes, newest first."""
        found = [
            move
            for move in reversed(self._tables.moves)
            if batch in {None, move.batch} and (not kinds or move.kind in kinds)
        ]
        return tuple(found if limit is None else found[: max(limit, 0)])

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
        """Return what was used, in order of name. :raises ValueError: there is no such grouping."""
        if by is not None and by not in GROUPINGS:
            raise ValueError(f"usage is not summed by {by!r}")
        groups: dict[str, list[UsageRow]] = {} if by is not None else {"": []}
        for row in self._tables.usage:
            turn, lineage = self._tables.turns[row.turn_id], self._tables.lineages[row.lineage_id]
            if (
                self._may_see(row.lineage_id, principal)
                and session_id in {None, turn.session_id}
                and lineage_id in {None, row.lineage_id}
                and owner in {None, lineage.owner}
                and (since is None or row.recorded.at >= since)
            ):
                groups.setdefault(self._name(by, row), []).append(row)
        return tuple(UsageGroup(name=name, sum=_sum(groups[name])) for name in sorted(groups))

    def _name(self, by: str | None, row: UsageRow) -> str:
        turn = self._tables.turns[row.turn_id]
        day = datetime.fromtimestamp(row.recorded.at / 1000, UTC).strftime("%Y-%m-%d")
        names = {
            None: "",
            "session": turn.session_id,
            "lineage": row.lineage_id,
            "owner": str(self._tables.lineages[row.lineage_id].owner),
            "model": row.recorded.usage.model or "",
            "platform": turn.entrance.platform,
            "day": day,
        }
        return names[by]

    def _may_see(self, lineage_id: LineageId, principal: Principal) -> bool:
        lineage = self._tables.lineages.get(lineage_id)
        return principal.sees_all if lineage is None else may_read(principal, lineage.owner, lineage.room)


def _sum(rows: Sequence[UsageRow]) -> UsageSum:
    reports = [row.recorded.usage for row in rows]
    costs = [one.estimated_cost_usd for one in reports if one.estimated_cost_usd is not None]
    models = {one.model for one in reports}
    return UsageSum(
        calls=len(reports),
        turns=len({row.turn_id for row in rows}),
        usage=Usage(
            model=models.pop() if len(models) == 1 else None,
            input_tokens=_total(one.input_tokens for one in reports),
            output_tokens=_total(one.output_tokens for one in reports),
            cache_read_tokens=_total(one.cache_read_tokens for one in reports),
            cache_write_tokens=_total(one.cache_write_tokens for one in reports),
            estimated_cost_usd=sum(costs) if reports and len(costs) == len(reports) else None,
        ),
        unpriced=len(reports) - len(costs),
        known_cost_usd=sum(costs, 0.0),
    )


def _total(numbers: Iterable[int | None]) -> int | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
