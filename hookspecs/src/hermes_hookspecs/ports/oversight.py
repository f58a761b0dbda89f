"""What people see of the work of agents, and what they have to say in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.approvals import Approval
    from hermes_hookspecs.audit import AuditFilter, AuditRow
    from hermes_hookspecs.ids import InboxId, LineageId, SessionId
    from hermes_hookspecs.jobs import Job
    from hermes_hookspecs.principal import Owner, Principal
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.usage import UsageGroup, UsageSum

__all__ = ["HasOversight", "Oversight"]


class Oversight(Protocol):
    """Requests for approval, background jobs, the audit. Everything blocks."""

    def approvals(self, source: SessionSource) -> Sequence[Approval]:
        """Return the open requests that whoever speaks from ``source`` may answer, oldest first."""
        ...

    def answer(
        self, approval_id: str, source: SessionSource, *, approve: bool, control_id: InboxId | None = None
    ) -> Approval:
        """Answer a request; whoever waits for it learns at once, in whatever process.

        :param approval_id: ``""`` for the only one that may be answered from there.
        :param control_id: the command's inbox row: its effect happens once.
        :raises ApprovalNotFound: no such request, not open any more, or not for this person to answer: it reads the
            same. Nothing was changed.
        :raises AmbiguousReference: no id was given, and several are open.
        """
        ...

    def jobs(
        self, principal: Principal, *, lineage_id: LineageId | None = None, running: bool = False, limit: int = 100
    ) -> Sequence[Job]:
        """Return jobs, newest first."""
        ...

    def job_state(self, job: Job) -> str:
        """Return how a job stands, in words: its status, ``ending``, ``process is gone`` or ``unknown host``.

        *Ending*: somebody has cancelled it. One whose process is gone is closed by whoever looks after the store next.
        """
        ...

    def cancel_job(self, job_id: str, principal: Principal) -> Job:
        """Ask the process of a job to end it; one whose process is gone is closed as lost at once.

        :param job_id: the id, or its unique beginning among those that run.
        :returns: the job as it stands: its end comes by itself.
        :raises JobNotFound: no such job, or not yours. :raises AmbiguousReference: several begin so.
        """
        ...

    def audit(self, principal: Principal, *, where: AuditFilter | None = None, limit: int = 100) -> Sequence[AuditRow]:
        """Return what tools did, newest first."""
        ...

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
        """Return sums of usage in order of name; ``by`` is one of :data:`~hermes_hookspecs.usage.GROUPINGS`."""
        ...


class HasOversight(Protocol):
    """The part of an :class:`~hermes_hookspecs.ports.app.App` that is about the work of agents."""

    @property
    def oversight(self) -> Oversight:
        """Return what people see of agents' work, and have to say in it."""
        ...

    @property
    def default_agent(self) -> str:
        """Return the name of the agent that answers where nobody names one."""
        ...

    def agent_setup(self) -> str:
        """Return one line that says how to configure the agent that would answer by default, ``""`` where one does."""
        ...

    def usage_of(
        self,
        principal: Principal,
        *,
        session_id: SessionId | None = None,
        lineage_id: LineageId | None = None,
        owner: Owner | None = None,
        since: int | None = None,
    ) -> UsageSum:
        """Return what was used in a session, a lineage, by a person (its ``owner``), or in all that may be seen.

        :param since: UTC milliseconds.
        """
        ...
