"""Requests for approval, what tools did, and jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.cleaning import clean
from hermes_core.storage.sqlite.queries.access import visible
from hermes_core.storage.sqlite.rows import read_holder, read_source
from hermes_hookspecs.approvals import Approval
from hermes_hookspecs.audit import AuditEntry, AuditRow
from hermes_hookspecs.jobs import Job
from hermes_hookspecs.source import Entrance

if TYPE_CHECKING:
    from hermes_core.storage.sqlite.transaction import Reader, SQLiteValue
    from hermes_hookspecs.audit import AuditFilter
    from hermes_hookspecs.ids import ApprovalId, InboxId, JobId, LineageId, SessionId, SessionKey, TurnId
    from hermes_hookspecs.principal import Principal

    Row = tuple[SQLiteValue, ...]
    Text = str | None
    Number = int | None
    ApprovalRow = tuple[
        ApprovalId, LineageId, SessionId, TurnId, str, str, str, str, str, int, int, Number, SessionKey | None, str, str
    ]
    AuditCells = tuple[
        int, LineageId, SessionId, TurnId, str, str, str, str, int, Number, int, str, str, Text, SessionKey | None,
        Text, Text, ApprovalId | None, str, str,
    ]  # fmt: skip
    JobRow = tuple[
        JobId, LineageId, SessionId, TurnId, str, str, str, int, Number, Number, SessionKey, InboxId | None, int, str,
        str, str, str,
    ]  # fmt: skip

__all__ = ["approval", "approvals", "audit", "job", "jobs", "untold_jobs"]

# One that is open is asked by nobody any more once its turn has ended.
APPROVAL = """
    SELECT a.id, a.lineage_id, a.session_id, a.turn_id, a.call_id, a.tool_name, a.effect, a.arguments,
        iif(a.status = 'open' AND coalesce(t.outcome, '') <> 'active', 'withdrawn', a.status),
        a.asked_at, a.expires_at, coalesce(a.settled_at, t.ended_at), a.session_key, a.source, a.answered_by
    FROM approvals AS a LEFT JOIN turns AS t ON t.id = a.turn_id
"""
# The same for a call without a result.
AUDIT = """
    SELECT a.id, a.lineage_id, a.session_id, a.turn_id, a.call_id, a.tool_name, a.effect,
        iif(a.outcome = 'running' AND coalesce(t.outcome, '') <> 'active', 'broken off', a.outcome),
        a.started_at, a.duration_ms, a.late, a.platform, a.account_id, a.terminal, a.session_key, a.user_id,
        a.user_name, a.approval_id, a.arguments, a.result
    FROM audit AS a LEFT JOIN turns AS t ON t.id = a.turn_id LEFT JOIN lineages AS l ON l.id = a.lineage_id
"""
JOB = """
    SELECT j.id, j.lineage_id, j.session_id, j.turn_id, j.kind, j.label, j.status, j.started_at, j.settled_at,
        j.cancelled_at, j.session_key, j.inbox_id,
        j.told OR (j.inbox_id IS NOT NULL AND coalesce(i.status, '') <> 'pending'), j.reason, j.holder, j.source,
        j.result
    FROM jobs AS j LEFT JOIN inbox AS i ON i.id = j.inbox_id
"""
UNTOLD = f"""
    {JOB} WHERE j.lineage_id = ? AND j.status <> 'running' AND j.told = 0
        AND (j.inbox_id IS NULL OR i.status = 'pending') ORDER BY j.no LIMIT ?
"""


def approval(reader: Reader, approval_id: ApprovalId) -> Approval | None:
    """One request."""
    row = reader.one(f"{APPROVAL} WHERE a.id = ?", (clean(approval_id),))
    return None if row is None else _approval(row)


def approvals(reader: Reader, *, turn_id: TurnId | None, is_open: bool | None, limit: int) -> tuple[Approval, ...]:
    """Requests, newest first."""
    conditions, values = ["TRUE"], list[str]()
    if turn_id is not None:
        conditions.append("a.turn_id = ?")
        values.append(clean(turn_id))
    if is_open is not None:
        # The first part is what the index of open requests is made for.
        state = "a.status = 'open' AND t.outcome = 'active'"
        conditions.append(state if is_open else f"NOT ({state}) IS TRUE")
    sql = f"{APPROVAL} WHERE {' AND '.join(conditions)} ORDER BY a.no DESC LIMIT ?"
    return tuple(map(_approval, reader.all(sql, (*values, max(limit, 0)))))


def _approval(row: Row) -> Approval:
    (
        approval_id, lineage_id, session_id, turn_id, call_id, tool, effect, arguments, status, asked, expires,
        settled, key, source, by,
    ) = cast("ApprovalRow", row)  # columns of APPROVAL  # fmt: skip
    return Approval(
        id=approval_id,
        lineage_id=lineage_id,
        session_id=session_id,
        turn_id=turn_id,
        call_id=call_id,
        tool_name=tool,
        effect=effect,
        arguments=arguments,
        status=status,
        asked_at=asked,
        expires_at=expires,
        settled_at=settled,
        session_key=key,
        source=read_source(source),
        answered_by=by,
    )


def audit(reader: Reader, principal: Principal, where: AuditFilter | None, limit: int) -> tuple[AuditRow, ...]:
    """What tools did, newest first."""
    condition, owners = visible(principal)
    conditions, values = [f"({condition})"], list["SQLiteValue"](owners)
    if where is not None:
        wanted = {
            "a.lineage_id = ?": where.lineage_id,
            "a.session_id = ?": where.session_id,
            "a.tool_name = ?": where.tool_name,
            "? IN (a.user_id, a.user_name)": where.person,
            "iif(a.outcome = 'running' AND coalesce(t.outcome, '') <> 'active', 'broken off', a.outcome) = ?": (
                where.outcome
            ),
            "a.started_at >= ?": where.since,
            "a.started_at < ?": where.until,
        }
        conditions += [text for text, value in wanted.items() if value is not None]
        values += [clean(value) for value in wanted.values() if value is not None]
    sql = f"{AUDIT} WHERE {' AND '.join(conditions)} ORDER BY a.id DESC LIMIT ?"
    return tuple(map(_audit, reader.all(sql, (*values, max(limit, 0)))))


def _audit(row: Row) -> AuditRow:
    (
        row_id, lineage_id, session_id, turn_id, call_id, tool, effect, outcome, started, duration, late, platform,
        account, terminal, key, user, name, approval_id, arguments, result,
    ) = cast("AuditCells", row)  # columns of AUDIT  # fmt: skip
    entry = AuditEntry(
        call_id=call_id,
        tool_name=tool,
        effect=effect,
        arguments=arguments,
        started_at=started,
        outcome=outcome,
        duration_ms=duration,
        result=result,
        approval_id=approval_id,
    )
    return AuditRow(
        id=row_id,
        lineage_id=lineage_id,
        session_id=session_id,
        turn_id=turn_id,
        entry=entry,
        late=bool(late),
        entrance=Entrance(platform, account, terminal),
        session_key=key,
        user_id=user,
        user_name=name,
    )


def job(reader: Reader, job_id: JobId) -> Job | None:
    """One job."""
    row = reader.one(f"{JOB} WHERE j.id = ?", (clean(job_id),))
    return None if row is None else _job(row)


def jobs(
    reader: Reader, principal: Principal, *, lineage_id: LineageId | None, running: bool, limit: int
) -> tuple[Job, ...]:
    """Jobs, newest first."""
    condition, owners = visible(principal)
    conditions, values = [f"({condition})"], list["SQLiteValue"](owners)
    if lineage_id is not None:
        conditions.append("j.lineage_id = ?")
        values.append(clean(lineage_id))
    if running:
        conditions.append("j.status = 'running'")
    sql = f"{JOB} LEFT JOIN lineages AS l ON l.id = j.lineage_id WHERE {' AND '.join(conditions)}"
    return tuple(map(_job, reader.all(f"{sql} ORDER BY j.no DESC LIMIT ?", (*values, max(limit, 0)))))


def untold_jobs(reader: Reader, lineage_id: LineageId, limit: int) -> tuple[Job, ...]:
    """Jobs of a lineage that have ended and that no turn has heard of, oldest first."""
    return tuple(map(_job, reader.all(UNTOLD, (clean(lineage_id), max(limit, 0)))))


def _job(row: Row) -> Job:
    (
        job_id, lineage_id, session_id, turn_id, kind, label, status, started, settled, cancelled, key, inbox_id, told,
        reason, holder, source, result,
    ) = cast("JobRow", row)  # columns of JOB  # fmt: skip
    return Job(
        id=job_id,
        lineage_id=lineage_id,
        session_id=session_id,
        turn_id=turn_id,
        kind=kind,
        label=label,
        status=status,
        started_at=started,
        session_key=key,
        source=read_source(source),
        holder=read_holder(holder),
        settled_at=settled,
        cancelled_at=cancelled,
        inbox_id=inbox_id,
        told=bool(told),
        reason=reason,
        result=result,
    )
