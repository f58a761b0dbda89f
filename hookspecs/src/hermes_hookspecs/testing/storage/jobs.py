"""Jobs: begun under the lease, ended once, told to their own conversation and to no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

from hermes_hookspecs.errors import Conflict, LeaseLost
from hermes_hookspecs.ids import JobId, MessageId, SessionId
from hermes_hookspecs.inbox import INTERNAL, PENDING, SETTLED
from hermes_hookspecs.jobs import CANCELLED, DONE, FAILED, LOST, MOST_RESULT, RUNNING, job_text
from hermes_hookspecs.messages import KIND_SUMMARY, SYSTEM, USER, MessageDraft
from hermes_hookspecs.operations import CancelJob, Compress, Delete, EndJob, StartJob, Sweep, TellJobs
from hermes_hookspecs.source import SessionSource
from hermes_hookspecs.testing.scene import (
    ALL,
    KEY,
    OTHER_KEY,
    binding,
    fence_of,
    holder_at,
    releasing,
    saying,
    source_at,
)
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures

if TYPE_CHECKING:
    from hermes_hookspecs.jobs import Job
    from hermes_hookspecs.operations import Begun
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.sessions import SessionEntry
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["JobTests"]

JOB = JobId("J1")


def _starting(scene: Scene, begun: Begun, job_id: str = JOB, source: SessionSource | None = None) -> StartJob:
    return StartJob(
        fence=fence_of(begun),
        job_id=JobId(job_id),
        kind="build",
        label="make all",
        holder=holder_at(),
        source=source or source_at(),
        session_key=KEY,
        now=scene.now,
    )


def _started(scene: Scene, entry: SessionEntry, job_id: str = JOB) -> Job:
    """Start a job in a turn that is over by now."""
    begun = scene.ask(entry)
    job = scene.run(_starting(scene, begun, job_id))
    scene.finish(begun, saying("it runs"))
    return job


def _ending(scene: Scene, job_id: str = JOB, status: str = DONE) -> EndJob:
    return EndJob(job_id=JobId(job_id), status=status, now=scene.now, result="42 tests passed")


def _end(scene: Scene, job_id: str = JOB) -> Job:
    ended = scene.run(_ending(scene, job_id))
    assert ended is not None
    return ended


class JobTests(StoreFixtures):
    """What somebody began in one conversation ends in that conversation."""

    def test_a_job_is_read_as_it_was_started(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)

        job = scene.run(_starting(scene, begun))

        assert store.job(JOB) == scene.run(_starting(scene, begun)) == job
        assert store.jobs(ALL, running=True) == store.jobs(ALL, lineage_id=entry.lineage_id) == (job,)
        assert (job.lineage_id, job.session_id, job.turn_id) == (entry.lineage_id, entry.session_id, begun.turn.id)
        assert (job.kind, job.label, job.status, job.started_at) == ("build", "make all", RUNNING, scene.now)
        assert (job.session_key, job.source, job.holder) == (KEY, source_at(), holder_at())
        assert (job.settled_at, job.cancelled_at, job.inbox_id, job.told) == (None, None, None, False)

    def test_without_the_lease_nothing_is_started(self, store: Store, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        scene.revoke(begun.turn.lineage_id)

        with pytest.raises(LeaseLost):
            scene.run(_starting(scene, begun))

        assert store.jobs(ALL) == ()

    def test_its_end_is_a_message_of_its_own_conversation(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        _started(scene, entry)
        scene.clock.advance(9)
        before = scene.lineage(entry.lineage_id).last_activity

        ended = _end(scene)

        (item,) = store.waiting(entry.lineage_id)
        assert (ended.status, ended.settled_at, ended.result) == (DONE, scene.now, "42 tests passed")
        assert ended.inbox_id == item.id
        assert (item.kind, item.status, item.text) == (INTERNAL, PENDING, job_text(ended))
        assert (item.session_key, item.source, item.lineage_id) == (KEY, source_at(), entry.lineage_id)
        assert (item.entrance.platform, item.waiter) == ("feishu", None)
        assert scene.lineage(entry.lineage_id).last_activity == before

    def test_it_ends_once(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        _started(scene, entry)
        ended = _end(scene)

        again = scene.run(_ending(scene, status=LOST))

        assert again == ended
        assert len(store.waiting(entry.lineage_id)) == 1
        assert store.jobs(ALL, running=True) == ()

    def test_its_end_follows_compression(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        job = _started(scene, entry)
        begun = scene.ask(entry)
        scene.run(
            Compress(
                fence=fence_of(begun),
                expected=entry.session_id,
                session_id=SessionId("child"),
                kept_from=MessageId(begun.rows[0].id),
                now=scene.now,
                summary=MessageDraft(role=SYSTEM, content="in short", kind=KIND_SUMMARY, timestamp=1),
            )
        )
        scene.finish(begun, saying("done"))

        ended = _end(scene)
        heard = scene.begin(entry.lineage_id, *(item.id for item in store.waiting(entry.lineage_id)))

        assert (ended.session_id, job.session_id) == (entry.session_id, entry.session_id)
        assert (heard.session.id, heard.rows[-1].session_id) == ("child", "child")

    def test_after_a_reset_whoever_is_on_the_key_is_not_spoken_to(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        _started(scene, entry)
        scene.run(releasing(scene))
        fresh = scene.enter()
        notice = scene.delivering("a job of an earlier session has ended")

        ended = scene.run(attrs.evolve(_ending(scene), notice=notice))

        assert ended is not None
        assert (ended.status, ended.inbox_id, ended.told) == (DONE, None, False)
        assert store.waiting(fresh.lineage_id) == store.waiting(entry.lineage_id) == store.waiting_of_key(KEY) == ()
        assert [(row.text, row.lineage_id) for row in store.deliveries()] == [(notice.text, notice.lineage_id)]

    def test_where_its_conversation_has_moved_it_ends_there(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        _started(scene, entry)
        elsewhere = source_at("oc_2")
        scene.enter(OTHER_KEY, elsewhere)
        scene.run(binding(scene, OTHER_KEY, entry.lineage_id, source=elsewhere))
        scene.run(releasing(scene))

        scene.run(attrs.evolve(_ending(scene), notice=scene.delivering("not this")))

        (item,) = store.waiting(entry.lineage_id)
        assert (item.session_key, item.source) == (OTHER_KEY, elsewhere)
        assert store.deliveries() == ()

    def test_a_terminal_hears_of_it_with_its_next_turn(self, store: Store, scene: Scene) -> None:
        terminal = SessionSource(platform="cli", chat_id="pts-1")
        entry = scene.enter(KEY, terminal)
        begun = scene.begin(entry.lineage_id, scene.accept(source=terminal))
        scene.run(_starting(scene, begun, source=terminal))
        scene.finish(begun, saying("it runs"))

        scene.run(attrs.evolve(_ending(scene), notice=scene.delivering("nobody is sent this")))

        assert store.waiting(entry.lineage_id) == ()
        assert store.deliveries() == ()
        assert [job.id for job in store.untold_jobs(entry.lineage_id)] == [JOB]

    def test_a_turn_that_tells_of_it_tells_once(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        _started(scene, entry)
        ended = _end(scene)
        begun = scene.ask(scene.enter(), passed_over=frozenset({ended.inbox_id}))
        rows = (saying(job_text(ended), USER),)
        telling = TellJobs(fence=fence_of(begun), job_ids=(JOB,), drafts=rows, now=scene.now)

        ids = scene.run(telling)

        assert [row.content for row in scene.rows(entry.lineage_id) if row.id in ids] == [job_text(ended)]
        assert ended.inbox_id is not None
        assert scene.status(ended.inbox_id) == SETTLED
        assert store.untold_jobs(entry.lineage_id) == ()
        with pytest.raises(Conflict):
            scene.run(telling)
        assert len(scene.rows(entry.lineage_id)) == 4

    def test_a_job_that_a_message_tells_of_is_not_told_again(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        _started(scene, entry)
        ended = _end(scene)
        assert store.untold_jobs(entry.lineage_id) == (ended,)

        assert ended.inbox_id is not None
        scene.begin(entry.lineage_id, ended.inbox_id)

        assert store.untold_jobs(entry.lineage_id) == ()
        found = store.job(JOB)
        assert found is not None
        assert found.told

    def test_a_running_job_of_another_conversation_is_not_told(self, store: Store, scene: Scene) -> None:
        entry, other = scene.enter(), scene.enter(OTHER_KEY)
        _started(scene, entry)
        begun = scene.ask(other)
        telling = TellJobs(fence=fence_of(begun), job_ids=(JOB,), drafts=(saying("x", USER),), now=scene.now)

        for _ in range(2):
            with pytest.raises(Conflict):
                scene.run(telling)
            scene.run(_ending(scene))

        assert [row.content for row in scene.rows(other.lineage_id)] == ["hello"]

    def test_the_first_wish_to_cancel_counts(self, store: Store, scene: Scene) -> None:
        _started(scene, scene.enter())
        wanted_at = scene.now
        scene.run(CancelJob(job_id=JOB, now=wanted_at))
        scene.clock.advance(5)

        again = scene.run(CancelJob(job_id=JOB, now=scene.now))
        ended = scene.run(_ending(scene, status=CANCELLED))

        assert again is not None
        assert ended is not None
        assert (again.status, again.cancelled_at) == (RUNNING, wanted_at)
        assert (ended.status, ended.cancelled_at) == (CANCELLED, wanted_at)
        assert scene.run(CancelJob(job_id=JobId("J9"), now=scene.now)) is None

    def test_a_job_goes_with_its_conversation(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        _started(scene, entry)

        scene.run(Delete(lineage_id=entry.lineage_id, now=scene.now))

        assert scene.run(_ending(scene)) is None
        assert store.jobs(ALL) == ()
        assert store.waiting_of_key(KEY) == ()

    def test_a_long_result_is_cut(self, scene: Scene) -> None:
        _started(scene, scene.enter())

        ended = scene.run(attrs.evolve(_ending(scene, status=FAILED), result="x" * (MOST_RESULT + 1), reason="exit 1"))

        assert ended is not None
        assert (len(ended.result), ended.reason) == (MOST_RESULT, "exit 1")

    def test_jobs_that_ended_long_ago_are_swept(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        _started(scene, entry, "J1")
        _started(scene, entry, "J2")
        scene.run(_ending(scene, "J1"))
        before = scene.now + 1

        swept = scene.run(Sweep(now=scene.now, inbox_before=0, outbox_before=0, records_before=before))

        assert swept.records == 1
        assert [job.id for job in store.jobs(ALL)] == ["J2"]
