"""A turn hears, before anything else, of the jobs of its conversation that have ended and that nobody told it of.

Those whose process died are closed as lost then: nobody else may look after the store of a single terminal.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import attrs

from hermes_core.leases import holder_lives
from hermes_core.settling import settled
from hermes_core.turns.jobs import ending, tell_of_end
from hermes_core.turns.presence import has_nobody
from hermes_hookspecs.errors import Conflict
from hermes_hookspecs.jobs import LOST, job_text
from hermes_hookspecs.messages import USER, MessageDraft
from hermes_hookspecs.operations import TellJobs
from hermes_hookspecs.principal import operator
from hermes_hookspecs.turns import DEAD

if TYPE_CHECKING:
    from hermes_core.turns.surroundings import Surroundings
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.jobs import Job
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.turns import Fence

__all__ = ["JobNews", "job_news", "tell_news"]


@attrs.frozen(kw_only=True)
class JobNews:
    """What there is to tell of the jobs of a lineage, oldest first.

    Attributes:
        unheard: ended, and nobody else answers the message that says so: at a terminal, after a reset. lost: they run
            in no process any more, as far as is known here.
    """

    unheard: tuple[Job, ...]
    lost: tuple[Job, ...]

    def __bool__(self) -> bool:
        """Return whether there is anything."""
        return bool(self.unheard or self.lost)


def job_news(around: Surroundings, reader: StoreReader, lineage_id: LineageId) -> JobNews:
    """Return what a turn of this lineage is to be told."""
    running = reader.jobs(operator(), lineage_id=lineage_id, running=True)
    lost = tuple(job for job in reversed(running) if holder_lives(job.holder) is False)
    return JobNews(unheard=_unheard(around, reader, lineage_id), lost=lost)


async def tell_news(around: Surroundings, fence: Fence, news: JobNews) -> bool:
    """Close the jobs that are lost, put into a turn how jobs have ended; return whether a row was stored.

    :raises LeaseLost: the turn is not ours any more.
    """
    unheard = news.unheard
    if news.lost:
        for job in news.lost:
            ended = await settled(around.store.perform(ending(job, LOST, around.clock.now(), reason=DEAD)))
            if ended is not None:
                tell_of_end(around.waker.wake, ended)
        read = around.store.submit_read(lambda reader: _unheard(around, reader, fence.lineage_id))
        unheard = await asyncio.wrap_future(read)
    if not unheard:
        return False
    now = around.clock.now()
    drafts = tuple(MessageDraft(role=USER, content=job_text(job), timestamp=now) for job in unheard)
    telling = TellJobs(fence=fence, job_ids=tuple(job.id for job in unheard), drafts=drafts, now=now)
    try:
        await settled(around.store.perform(telling))
    except Conflict:  # a message told of one of them meanwhile; the next turn looks again
        return False
    return True


def _unheard(around: Surroundings, reader: StoreReader, lineage_id: LineageId) -> tuple[Job, ...]:
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
