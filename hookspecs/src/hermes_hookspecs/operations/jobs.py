"""Writes of background jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.operations.operation import Operation

if TYPE_CHECKING:
    from hermes_hookspecs.ids import (
        JobId,
        MessageId,  # noqa: F401 - named in a subscript, which linters do not read
        SessionKey,
    )
    from hermes_hookspecs.jobs import Job  # noqa: F401 - as above
    from hermes_hookspecs.messages import MessageDraft
    from hermes_hookspecs.outbox import DeliveryDraft
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.turns import Fence, LeaseHolder

__all__ = ["CancelJob", "EndJob", "StartJob", "TellJobs"]


@attrs.frozen(kw_only=True)
class StartJob(Operation["Job"]):
    """Store a job of the running turn; its session is the tip. A job with a known id is returned as it stands.

    :raises LeaseLost: the token is no longer the lineage's; nothing was written.
    """

    fence: Fence
    job_id: JobId
    kind: str
    label: str
    holder: LeaseHolder
    source: SessionSource
    session_key: SessionKey
    now: int


@attrs.frozen(kw_only=True)
class EndJob(Operation["Job | None"]):
    """End a job that runs and tell its session, in one transaction; one that has ended is returned as it stands.

    The session hears of it by an inbox row of kind ``internal`` with the lineage of the job, when a route leads to
    that lineage: the job's own key, else the one used last; the row has that route's key and address. Where no route
    leads there (the conversation was left or reset), or only a terminal's, no row is made: whoever is on the key now
    is not spoken to, and the job waits in :meth:`~hermes_hookspecs.ports.records.RecordReader.untold_jobs` for the
    lineage's next turn.

    Attributes:
        status: one of :data:`~hermes_hookspecs.jobs.ENDS`. result: at most
            :data:`~hermes_hookspecs.jobs.MOST_RESULT` characters are kept.
        notice: stored where no route leads to the lineage and the job began at no terminal: that something of an
            earlier session has ended, never what came of it.

    :returns: ``None`` for a job that is gone with its lineage.
    """

    job_id: JobId
    status: str
    now: int
    reason: str = ""
    result: str = ""
    notice: DeliveryDraft | None = None


@attrs.frozen(kw_only=True)
class CancelJob(Operation["Job | None"]):
    """Note that somebody wants a job to end: the first wish counts. Its process ends it; ``None`` for no such job."""

    job_id: JobId
    now: int


@attrs.frozen(kw_only=True)
class TellJobs(Operation["tuple[MessageId, ...]"]):
    """Store rows of the running turn that say how jobs of its lineage ended, and mark these as told.

    An inbox row of such a job that still waits is done with this. The rows are stored as by
    :class:`~hermes_hookspecs.operations.Append`.

    :raises LeaseLost: the token is no longer the lineage's; nothing was written.
    :raises Conflict: a job runs, is not of this lineage, or its session has heard of it; nothing was written.
    """

    fence: Fence
    job_ids: tuple[JobId, ...]
    drafts: tuple[MessageDraft, ...]
    now: int
