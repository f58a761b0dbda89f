"""A turn hears, before anything else, of the jobs of its conversation that have ended and that nobody told it of."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from hermes_core.settling import settled
from hermes_core.turns.presence import has_nobody
from hermes_hookspecs.errors import Conflict
from hermes_hookspecs.jobs import job_text
from hermes_hookspecs.messages import USER, MessageDraft
from hermes_hookspecs.operations import TellJobs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_core.turns.surroundings import Surroundings
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.jobs import Job
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.turns import Fence

__all__ = ["tell_of_jobs", "unheard_jobs"]


async def tell_of_jobs(around: Surroundings, fence: Fence, jobs: Sequence[Job]) -> None:
    """Put into a turn how jobs have ended.

    :raises LeaseLost: the turn is not ours any more.
    """
    now = around.clock.now()
    drafts = tuple(MessageDraft(role=USER, content=job_text(job), timestamp=now) for job in jobs)
    telling = TellJobs(fence=fence, job_ids=tuple(job.id for job in jobs), drafts=drafts, now=now)
    with suppress(Conflict):  # a message told of one of them meanwhile; the next turn looks again
        await settled(around.store.perform(telling))


def unheard_jobs(around: Surroundings, reader: StoreReader, lineage_id: LineageId) -> tuple[Job, ...]:
    """Return the jobs whose own messages nobody answers: at a terminal, after a reset. Oldest first."""
    found = reader.untold_jobs(lineage_id)
    if not found:
        return ()
    served = around.presence.served(reader.servers())
    unheard: list[Job] = []
    for job in found:
        item = None if job.inbox_id is None else reader.inbox_item(job.inbox_id)
        if item is None or has_nobody(item, served):
            unheard.append(job)
    return tuple(unheard)
