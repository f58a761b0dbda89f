"""Requests for approval: stored under the lease, answered once, gone with their turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

from hermes_hookspecs.approvals import APPROVED, DENIED, EXPIRED, MOST_SHOWN, OPEN, WITHDRAWN
from hermes_hookspecs.audit import BROKEN_OFF, REFUSED, AuditEntry
from hermes_hookspecs.errors import Conflict, LeaseLost
from hermes_hookspecs.ids import ApprovalId
from hermes_hookspecs.messages import INTERRUPTED_RESULT, NOT_APPROVED_RESULT, NOT_BEGUN_RESULT, TOOL, ToolCall
from hermes_hookspecs.operations import AnswerApproval, Append, AskApproval, Control, Delete, Sweep
from hermes_hookspecs.testing.scene import ALL, KEY, asking, fence_of, result, saying, source_at
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures

if TYPE_CHECKING:
    from hermes_hookspecs.operations import Begun
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["ApprovalTests"]

_PATIENCE_MS = 60_000


def _asking_for(scene: Scene, begun: Begun, call_id: str = "c1", name: str = "aaaaa") -> AskApproval:
    return AskApproval(
        fence=fence_of(begun),
        approval_id=ApprovalId(name),
        call=ToolCall(id=call_id, name="rm", arguments='{"path": "/x"}'),
        source=source_at(),
        session_key=KEY,
        now=scene.now,
        expires_at=scene.now + _PATIENCE_MS,
    )


def _answering(scene: Scene, name: str = "aaaaa", status: str = APPROVED) -> AnswerApproval:
    return AnswerApproval(approval_id=ApprovalId(name), status=status, now=scene.now, answered_by="OU_1")


class ApprovalTests(StoreFixtures):
    """Nobody answers for a turn that has ended, and nobody answers twice."""

    def test_a_request_is_read_as_it_was_made(self, store: Store, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        scene.append(begun, asking("c1"))

        asked = scene.run(_asking_for(scene, begun))

        assert store.approval(asked.id) == asked
        assert (asked.lineage_id, asked.session_id, asked.turn_id) == (
            begun.turn.lineage_id,
            begun.session.id,
            begun.turn.id,
        )
        assert (asked.call_id, asked.tool_name, asked.effect, asked.arguments) == (
            "c1",
            "rm",
            "write",
            '{"path": "/x"}',
        )
        assert (asked.status, asked.asked_at, asked.expires_at) == (OPEN, scene.now, scene.now + _PATIENCE_MS)
        assert (asked.settled_at, asked.session_key, asked.source) == (None, KEY, source_at())
        assert store.approval(ApprovalId("other")) is None

    def test_a_request_and_what_its_entrance_is_told_are_one_transaction(self, store: Store, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        told = attrs.evolve(_asking_for(scene, begun), deliveries=(scene.delivering("may I?"),))

        scene.run(told)
        scene.run(told)

        assert [row.text for row in store.deliveries()] == ["may I?"]

    def test_a_call_is_asked_for_once_in_its_turn(self, store: Store, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        first = scene.run(_asking_for(scene, begun))

        second = scene.run(_asking_for(scene, begun, name="bbbbb"))

        assert second == first
        assert store.approval(ApprovalId("bbbbb")) is None

    def test_two_requests_of_a_turn_are_answered_apart(self, store: Store, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        scene.run(_asking_for(scene, begun, "c1", "aaaaa"))
        scene.run(_asking_for(scene, begun, "c2", "bbbbb"))

        scene.run(_answering(scene, "bbbbb", DENIED))

        assert [(one.id, one.status) for one in store.approvals(turn_id=begun.turn.id)] == [
            ("bbbbb", DENIED),
            ("aaaaa", OPEN),
        ]
        assert [one.id for one in store.approvals(is_open=True)] == ["aaaaa"]
        assert [one.id for one in store.approvals(is_open=False)] == ["bbbbb"]

    def test_the_first_answer_counts(self, store: Store, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        scene.run(_asking_for(scene, begun))
        scene.clock.advance(5)
        answered = scene.run(_answering(scene))

        with pytest.raises(Conflict, match="approved"):
            scene.run(_answering(scene, status=DENIED))

        assert (answered.status, answered.settled_at, answered.answered_by) == (APPROVED, scene.now, "OU_1")
        assert store.approval(answered.id) == answered

    def test_an_answer_behind_its_time_is_none(self, store: Store, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        asked = scene.run(_asking_for(scene, begun))
        scene.clock.advance(_PATIENCE_MS)

        with pytest.raises(Conflict, match="expired"):
            scene.run(_answering(scene))
        scene.run(_answering(scene, status=EXPIRED))

        found = store.approval(asked.id)
        assert found is not None
        assert found.status == EXPIRED

    def test_without_the_lease_nobody_is_asked(self, store: Store, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        scene.revoke(begun.turn.lineage_id)

        with pytest.raises(LeaseLost):
            scene.run(_asking_for(scene, begun))

        assert store.approvals() == ()

    @pytest.mark.parametrize("end", ["finished", "stopped"])
    def test_a_request_ends_with_its_turn(self, end: str, store: Store, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        scene.run(_asking_for(scene, begun))
        scene.clock.advance(7)
        if end == "finished":
            scene.finish(begun, saying("done"))
        else:
            scene.revoke(begun.turn.lineage_id)

        with pytest.raises(Conflict, match="withdrawn"):
            scene.run(_answering(scene))

        (found,) = store.approvals()
        assert (found.status, found.settled_at) == (WITHDRAWN, scene.now)
        assert store.approvals(is_open=True) == ()

    @pytest.mark.parametrize("end", ["finished", "stopped", "taken over"])
    @pytest.mark.parametrize("answer", [None, DENIED, EXPIRED, APPROVED])
    def test_a_call_that_nobody_approved_did_not_run_and_its_turns_end_says_so(
        self, answer: str | None, end: str, store: Store, scene: Scene
    ) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        notes = tuple(
            AuditEntry(call_id=call_id, tool_name="rm", effect="write", arguments="{}", started_at=scene.now)
            for call_id in ("c1", "c2")
        )
        scene.run(Append(fence=fence_of(begun), drafts=(asking("c1", "c2"),), now=scene.now, audit=notes))
        scene.run(_asking_for(scene, begun))
        if answer is not None:
            scene.run(_answering(scene, status=answer))

        if end == "finished":
            scene.finish(begun, saying("never mind"))
        elif end == "stopped":
            scene.revoke(begun.turn.lineage_id)
        else:
            lease = store.lease(entry.lineage_id)
            scene.ask(entry, "still there?", presumed_dead=None if lease is None else lease.stamp)

        ran = answer == APPROVED
        results = [row.content for row in store.messages(entry.lineage_id, ALL) if row.role == TOOL]
        assert results == [INTERRUPTED_RESULT if ran else NOT_APPROVED_RESULT, INTERRUPTED_RESULT]
        audited = [(row.entry.outcome, row.entry.approval_id) for row in reversed(store.audit(ALL))]
        assert audited == [(BROKEN_OFF, None) if ran else (REFUSED, "aaaaa"), (BROKEN_OFF, None)]

    @pytest.mark.parametrize("end", ["finished", "stopped", "taken over"])
    @pytest.mark.parametrize("is_asked", [False, True])
    def test_a_call_that_waited_for_one_before_it_did_not_run_and_its_turns_end_says_so(
        self, is_asked: bool, end: str, store: Store, scene: Scene
    ) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        row = asking("c1", "c2", "c3", "c4")
        in_order = tuple(attrs.evolve(call, in_order=call.id != "c3") for call in row.tool_calls)
        notes = tuple(
            AuditEntry(call_id=call.id, tool_name="rm", effect="write", arguments="{}", started_at=scene.now)
            for call in in_order
        )
        drafts = (attrs.evolve(row, tool_calls=in_order),)
        scene.run(Append(fence=fence_of(begun), drafts=drafts, now=scene.now, audit=notes))
        scene.append(begun, result("c1"))
        if is_asked:
            scene.run(_asking_for(scene, begun, "c2"))

        if end == "finished":
            scene.finish(begun, saying("never mind"))
        elif end == "stopped":
            scene.revoke(begun.turn.lineage_id)
        else:
            lease = store.lease(entry.lineage_id)
            scene.ask(entry, "still there?", presumed_dead=None if lease is None else lease.stamp)

        results = {row.tool_call_id: row.content for row in store.messages(entry.lineage_id, ALL) if row.role == TOOL}
        assert results == {
            "c1": "42",
            "c2": NOT_APPROVED_RESULT if is_asked else INTERRUPTED_RESULT,
            "c3": INTERRUPTED_RESULT,
            "c4": NOT_BEGUN_RESULT,
        }
        audited = {row.entry.call_id: (row.entry.outcome, row.entry.result) for row in store.audit(ALL)}
        assert audited["c2"] == ((REFUSED, NOT_APPROVED_RESULT) if is_asked else (BROKEN_OFF, ""))
        assert (audited["c3"], audited["c4"]) == ((BROKEN_OFF, ""), (REFUSED, NOT_BEGUN_RESULT))

    def test_a_call_that_was_refused_stays_so_when_its_conversation_is_deleted(
        self, store: Store, scene: Scene
    ) -> None:
        begun = scene.ask(scene.enter())
        note = AuditEntry(call_id="c1", tool_name="rm", effect="write", arguments="{}", started_at=scene.now)
        scene.run(Append(fence=fence_of(begun), drafts=(asking("c1"),), now=scene.now, audit=(note,)))
        scene.run(_asking_for(scene, begun))
        scene.revoke(begun.turn.lineage_id)

        scene.run(Delete(lineage_id=begun.turn.lineage_id, now=scene.now))

        (row,) = store.audit(ALL)
        assert (row.entry.outcome, row.entry.result) == (REFUSED, "")

    def test_an_answer_is_an_effect_of_a_command_and_runs_once(self, store: Store, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        scene.run(_asking_for(scene, begun))
        command = scene.accept("/approve aaaaa", kind="control")

        first = scene.run(Control(inbox_id=command, effect=_answering(scene), now=scene.now))
        second = scene.run(Control(inbox_id=command, effect=_answering(scene), now=scene.now))

        assert (first.lineage_id, first.repeated, second.repeated) == (begun.turn.lineage_id, False, True)
        assert [one.status for one in store.approvals()] == [APPROVED]

    def test_long_arguments_are_cut(self, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        call = ToolCall(id="c1", name="rm", arguments="字" * (MOST_SHOWN + 1))

        asked = scene.run(attrs.evolve(_asking_for(scene, begun), call=call))

        assert asked.arguments == "字" * MOST_SHOWN

    def test_requests_go_with_their_lineage(self, store: Store, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        scene.run(_asking_for(scene, begun))

        scene.run(Delete(lineage_id=begun.turn.lineage_id, now=scene.now, force=True))

        assert store.approvals() == ()

    def test_old_requests_are_swept_and_open_ones_stay(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        ended = scene.ask(entry)
        scene.run(_asking_for(scene, ended, name="aaaaa"))
        scene.finish(ended, saying("done"))
        running = scene.ask(entry)
        scene.run(_asking_for(scene, running, name="bbbbb"))
        sweep = Sweep(now=scene.now, inbox_before=0, outbox_before=0, records_before=scene.now + 1)

        swept = scene.run(sweep)

        assert swept.records == 1
        assert [one.id for one in store.approvals()] == ["bbbbb"]
