"""Work that outlives its turn: run on a thread of its own, ended in the store, closed as lost when its process dies."""

from __future__ import annotations

import asyncio
import inspect
from logging import getLogger
from threading import Lock, Thread
from typing import TYPE_CHECKING

from hermes_core.leases import holder_here, holder_lives
from hermes_core.outbox.topics import outbox_topic
from hermes_core.plugins.stages import in_words, one_line
from hermes_core.settling import settled
from hermes_core.turns.side_usage import record_side_usage
from hermes_core.turns.topics import JOBS, WORK
from hermes_hookspecs.errors import HermesError, StorageError
from hermes_hookspecs.ids import new_job_id
from hermes_hookspecs.jobs import CANCELLED, DONE, FAILED, LOST, RUNNING
from hermes_hookspecs.metering import metered
from hermes_hookspecs.operations import EndJob, StartJob
from hermes_hookspecs.outbox import NOTICE, DeliveryDraft, delivery_key
from hermes_hookspecs.principal import operator
from hermes_hookspecs.source import Entrance
from hermes_hookspecs.tools import in_thread, result_text
from hermes_hookspecs.turns import DEAD

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hermes_core.turns.surroundings import Surroundings
    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.ids import JobId
    from hermes_hookspecs.jobs import Job
    from hermes_hookspecs.ports.store import Store, StoreReader
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.turns import Fence, Usage

    Work = Callable[[], Awaitable[str] | str]

__all__ = ["JobRunner", "TurnJobs", "close_lost_jobs", "ending", "tell_of_end"]

_log = getLogger(__name__)

_LOOK_S = 1.0
"""Longest time until a wish to cancel is seen that no signal told of."""
_CLEANUP_S = 5.0
"""Seconds for which jobs may clean up when their profile is closed."""
_MOST = 1000


def ending(job: Job, status: str, now: int, *, reason: str = "", result: str = "") -> EndJob:
    """Return the operation that ends a job and tells its session, or says where it was left that it has ended."""
    text = (
        f"The background job {job.id} of your earlier session {job.session_id} has ended: {status}. "
        f"/resume {job.session_id} goes on there."
    )
    notice = DeliveryDraft(
        key=delivery_key(job.session_key, f"job {job.id}"),
        target=job.source,
        text=text,
        session_key=job.session_key,
        kind=NOTICE,
    )
    return EndJob(job_id=job.id, status=status, now=now, reason=reason, result=result, notice=notice)


def tell_of_end(wake: Callable[[str], None], job: Job) -> None:
    """Wake who answers the session of a job that has ended, and who sends what its entrance is told."""
    entrance = Entrance(job.source.platform, job.source.account_id)
    for topic in (WORK, job.lineage_id, outbox_topic(entrance)):
        wake(topic)


def close_lost_jobs(store: Store, clock: Clock, wake: Callable[[str], None]) -> int:
    """Close the jobs whose process is known to be dead, and tell their sessions; return how many. Blocks."""
    closed = 0
    for job in store.jobs(operator(), running=True, limit=_MOST):
        if holder_lives(job.holder) is not False:
            continue
        ended = store.apply(ending(job, LOST, clock.now(), reason=DEAD))
        if ended is not None and ended.status == LOST:
            closed += 1
            tell_of_end(wake, ended)
    return closed


class TurnJobs:
    """Begins jobs on behalf of one turn (:class:`~hermes_hookspecs.jobs.Jobs`)."""

    def __init__(self, around: Surroundings, fence: Fence, source: SessionSource, session_key: str) -> None:
        self._around = around
        self._fence = fence
        self._source = source
        self._session_key = session_key

    async def start(self, work: Work, *, kind: str, label: str) -> Job:
        """Register a job and begin it. :raises LeaseLost: the turn is not ours any more; nothing was begun."""
        from hermes_hookspecs.ids import SessionKey

        now, key = self._around.clock.now(), SessionKey(self._session_key)
        operation = StartJob(
            fence=self._fence,
            job_id=new_job_id(now),
            kind=" ".join(kind.split()),
            label=" ".join(label.split()),
            holder=holder_here(Entrance(self._source.platform, self._source.account_id), key),
            source=self._source,
            session_key=key,
            now=now,
        )
        job = await settled(self._around.store.perform(operation))
        self._around.jobs.begin(job, work)
        return job


class JobRunner:
    """Runs the jobs of one process, on one loop of its own. Thread-safe."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._lock = Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None
        self._tasks: dict[JobId, asyncio.Task[None]] = {}
        self._wanted: set[JobId] = set()
        self._watch: asyncio.Task[None] | None = None

    def begin(self, job: Job, work: Work) -> None:
        """Begin a job that is stored; returns at once."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = Thread(target=self._loop.run_forever, name="hermes-jobs", daemon=True)
                self._thread.start()
            self._loop.call_soon_threadsafe(self._take, job, work)

    def close(self) -> None:
        """Cancel what runs and close it as lost, within seconds; a second call does nothing. Blocks."""
        with self._lock:
            loop, thread, self._loop, self._thread = self._loop, self._thread, None, None
        if loop is None or thread is None:
            return
        asyncio.run_coroutine_threadsafe(self._end_all(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    # --- on the loop

    def _take(self, job: Job, work: Work) -> None:
        self._tasks[job.id] = asyncio.get_running_loop().create_task(self._run(job, work))
        if self._watch is None or self._watch.done():
            self._watch = asyncio.get_running_loop().create_task(self._look_out())

    async def _run(self, job: Job, work: Work) -> None:
        status, reason, result = DONE, "", ""
        used: list[Usage] = []
        try:
            with metered(used.append):
                result = result_text(await _result(work))
        except asyncio.CancelledError:
            status, reason = (CANCELLED, "") if job.id in self._wanted else (LOST, DEAD)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a job raises is how it ended
            status, reason = FAILED, in_words(error)
        finally:
            self._tasks.pop(job.id, None)
            self._wanted.discard(job.id)
        around = self._around
        await record_side_usage(around, job.turn_id, used)
        operation = ending(job, status, around.clock.now(), reason=reason, result=result)
        try:
            ended = await settled(around.store.perform(operation))
        except StorageError as error:
            around.leftovers.owe(operation, f"the end of job {job.id}", error)
        except HermesError as error:
            _log.warning("the end of job %s is not recorded: %s", job.id, one_line(error))
        else:
            if ended is not None:
                tell_of_end(around.waker.wake, ended)

    async def _look_out(self) -> None:
        """Cancel the jobs that somebody wants to end, and those whose conversation is gone, as long as any runs."""
        waiter = self._around.waker.enter(JOBS)
        try:
            while self._tasks:
                jobs = await asyncio.wrap_future(self._around.store.submit_read(self._read))
                for job_id, job in jobs.items():
                    is_over = job is None or job.cancelled_at is not None or job.status != RUNNING
                    task = self._tasks.get(job_id)
                    if is_over and task is not None and job_id not in self._wanted:
                        self._wanted.add(job_id)
                        task.cancel()
                await waiter.wait(_LOOK_S, look=False)
        except StorageError as error:
            _log.warning("nobody can cancel the jobs of this process: %s", one_line(error))
        finally:
            self._around.waker.leave(waiter)

    def _read(self, reader: StoreReader) -> dict[JobId, Job | None]:
        return {job_id: reader.job(job_id) for job_id in tuple(self._tasks)}

    async def _end_all(self) -> None:
        tasks = [*self._tasks.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_CLEANUP_S)
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)


async def _result(work: Work) -> object:
    """Return what a job gives: an asynchronous function runs on this loop, a plain one on a thread of its own."""
    if inspect.iscoroutinefunction(work):
        return await work()
    found = await in_thread(work)
    return await found if inspect.isawaitable(found) else found
