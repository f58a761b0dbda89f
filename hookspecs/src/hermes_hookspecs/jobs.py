"""Work that outlives the turn that began it; its session hears how it ended, and nobody else does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hermes_hookspecs.ids import InboxId, JobId, LineageId, SessionId, SessionKey, TurnId
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.turns import LeaseHolder

__all__ = ["CANCELLED", "DONE", "ENDS", "FAILED", "LOST", "MOST_RESULT", "RUNNING", "Job", "Jobs", "job_text"]

RUNNING, DONE, FAILED, CANCELLED, LOST = "running", "done", "failed", "cancelled", "lost"
ENDS = (DONE, FAILED, CANCELLED, LOST)
"""How a job ends: by itself, by an exception, because somebody wanted it, or with its process."""

MOST_RESULT = 50_000
"""Most characters of a result that are kept."""


@attrs.frozen(kw_only=True)
class Job:
    """A job as it is stored.

    Attributes:
        session_id, session_key, source, turn_id: where it began; these never change. The lineage may have gone on in
            a child since.
        kind: one word, such as the tool's name. label: what it does, for people. holder: the process that does it.
        started_at, settled_at: UTC milliseconds. cancelled_at: when somebody wanted it to end, ``None`` for nobody.
        inbox_id: the row by which its session hears of the end, ``None`` where nobody answers for the session; then
            the session's next turn begins with it. told: that has happened.
        reason: one line, for ends other than ``done``. result: what came of it, at most :data:`MOST_RESULT`
            characters.
    """

    id: JobId
    lineage_id: LineageId
    session_id: SessionId
    turn_id: TurnId
    kind: str
    label: str
    status: str
    started_at: int
    session_key: SessionKey
    source: SessionSource
    holder: LeaseHolder
    settled_at: int | None = None
    cancelled_at: int | None = None
    inbox_id: InboxId | None = None
    told: bool = False
    reason: str = ""
    result: str = ""


def job_text(job: Job) -> str:
    """Return what a session hears of a job that has ended: a heading of one line, and the result behind it."""
    why = f": {job.reason}" if job.reason else ""
    heading = f"[Background job {job.id} ({job.label}) ended: {job.status}{why}]"
    return f"{heading}\n{job.result}" if job.result else heading


class Jobs(Protocol):
    """Begins jobs on behalf of one turn."""

    async def start(self, work: Callable[[], Awaitable[str] | str], *, kind: str, label: str) -> Job:
        """Register a job and begin it; return it at once.

        What ``work`` returns is the result, which comes into the session as a message of its own. An asynchronous
        function runs on a loop that outlives the turn, beside other jobs, and is cancelled when somebody cancels the
        job or the process ends; a plain function runs on a thread of its own and cannot be broken off.

        :param kind: one word. label: what it does, one line for people.
        :raises LeaseLost: the turn has lost its lease; nothing was begun.
        """
        ...
