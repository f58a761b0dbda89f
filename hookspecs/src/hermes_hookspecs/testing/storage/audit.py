"""What tools did: a row per call that survives everything but its time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

from hermes_hookspecs.audit import (
    ANSWERED,
    BROKEN_OFF,
    FAILED,
    MOST_ARGUMENTS,
    MOST_RESULT,
    RUNNING,
    AuditEntry,
    AuditFilter,
)
from hermes_hookspecs.errors import LeaseLost
from hermes_hookspecs.ids import TurnId
from hermes_hookspecs.operations import Append, Delete, RecordAudit, Sweep
from hermes_hookspecs.principal import Principal, owner_of
from hermes_hookspecs.testing.scene import ALL, OTHER_KEY, asking, fence_of, result, source_at
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures

if TYPE_CHECKING:
    from hermes_hookspecs.messages import MessageDraft
    from hermes_hookspecs.operations import Begun
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["AuditTests"]


def _asked(scene: Scene, call_id: str = "c1", tool: str = "ls") -> AuditEntry:
    return AuditEntry(call_id=call_id, tool_name=tool, effect="read", arguments="{}", started_at=scene.now)


def _step(scene: Scene, begun: Begun, draft: MessageDraft, *entries: AuditEntry) -> None:
    scene.run(Append(fence=fence_of(begun), drafts=(draft,), now=scene.now, audit=entries))


class AuditTests(StoreFixtures):
    """Whoever looks sees who called what, and how it went."""

    def test_a_call_is_noted_with_its_step_and_again_with_its_result(self, store: Store, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        entry = _asked(scene)
        _step(scene, begun, asking("c1"), entry)
        (before,) = store.audit(ALL)

        done = attrs.evolve(entry, outcome=ANSWERED, duration_ms=12, result="a b")
        _step(scene, begun, result("c1"), done)

        (row,) = store.audit(ALL)
        assert (before.entry.outcome, before.entry.duration_ms) == (RUNNING, None)
        assert row.entry == done
        assert (row.id, row.late) == (before.id, False)
        assert (row.lineage_id, row.session_id, row.turn_id) == (
            begun.turn.lineage_id,
            begun.session.id,
            begun.turn.id,
        )
        assert (row.entrance, row.session_key, row.user_id, row.user_name) == (
            begun.turn.entrance,
            begun.turn.session_key,
            "ou_1",
            "OU_1",
        )

    def test_a_step_that_lost_its_lease_notes_nothing(self, store: Store, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        scene.revoke(begun.turn.lineage_id)

        with pytest.raises(LeaseLost):
            _step(scene, begun, asking("c1"), _asked(scene))

        assert store.audit(ALL) == ()

    def test_what_is_told_behind_the_loss_of_the_lease_is_late(self, store: Store, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        _step(scene, begun, asking("c1"), _asked(scene))
        scene.revoke(begun.turn.lineage_id)
        done = attrs.evolve(_asked(scene), outcome=ANSWERED, duration_ms=9, result="deleted")

        scene.run(RecordAudit(turn_id=begun.turn.id, entries=(done,), now=scene.now))

        (row,) = store.audit(ALL)
        assert (row.entry, row.late) == (done, True)

    def test_a_call_whose_turn_ended_without_its_result_is_broken_off(self, store: Store, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        _step(scene, begun, asking("c1"), _asked(scene))

        scene.revoke(begun.turn.lineage_id)

        assert [row.entry.outcome for row in store.audit(ALL)] == [BROKEN_OFF]
        assert len(store.audit(ALL, where=AuditFilter(outcome=BROKEN_OFF))) == 1
        assert store.audit(ALL, where=AuditFilter(outcome=RUNNING)) == ()

    def test_of_a_turn_that_is_gone_nothing_is_noted(self, store: Store, scene: Scene) -> None:
        scene.enter()

        scene.run(RecordAudit(turn_id=TurnId("T-nowhere"), entries=(_asked(scene),), now=scene.now))

        assert store.audit(ALL) == ()

    def test_rows_are_found_by_every_condition(self, store: Store, scene: Scene) -> None:
        first = scene.ask(scene.enter())
        _step(scene, first, asking("c1", "c2"), _asked(scene, "c1", "ls"), _asked(scene, "c2", "rm"))
        start = scene.now
        scene.clock.advance(1000)
        other = scene.enter(OTHER_KEY, source_at("oc_2", "ou_2"))
        second = scene.begin(other.lineage_id, scene.accept(key=OTHER_KEY, source=source_at("oc_2", "ou_2")))
        _step(scene, second, asking("c1"), attrs.evolve(_asked(scene, "c1", "ls"), outcome=FAILED, duration_ms=1))

        def found(**fields: object) -> list[tuple[str, str]]:
            # attrs cannot say in types that the class of a value takes its own fields as keyword arguments
            where = AuditFilter(**fields)  # type: ignore[arg-type]
            return [(row.turn_id, row.entry.call_id) for row in store.audit(ALL, where=where)]

        one, two = first.turn.id, second.turn.id
        assert found() == [(two, "c1"), (one, "c2"), (one, "c1")]
        assert found(lineage_id=other.lineage_id) == found(session_id=other.session_id) == [(two, "c1")]
        assert found(tool_name="ls") == [(two, "c1"), (one, "c1")]
        assert found(person="ou_2") == found(person="OU_2") == [(two, "c1")]
        assert found(outcome=FAILED) == [(two, "c1")]
        assert found(since=start + 1) == [(two, "c1")]
        assert found(until=start + 1) == [(one, "c2"), (one, "c1")]
        assert len(store.audit(ALL, limit=2)) == 2

    def test_a_person_sees_calls_of_the_own_conversations(self, store: Store, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        _step(scene, begun, asking("c1"), _asked(scene))
        mine = Principal(owners=frozenset({owner_of(source_at(), shared=False)}))
        other = Principal(owners=frozenset({owner_of(source_at(user="ou_9"), shared=False)}))

        assert len(store.audit(mine)) == 1
        assert store.audit(other) == ()

    def test_long_texts_are_cut(self, store: Store, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        entry = attrs.evolve(_asked(scene), arguments="x" * (MOST_ARGUMENTS + 1), result="y" * (MOST_RESULT + 1))

        _step(scene, begun, asking("c1"), entry)

        (row,) = store.audit(ALL)
        assert (len(row.entry.arguments), len(row.entry.result)) == (MOST_ARGUMENTS, MOST_RESULT)

    def test_who_called_what_stays_when_the_conversation_is_deleted(self, store: Store, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        _step(scene, begun, asking("c1"), _asked(scene))

        scene.run(Delete(lineage_id=begun.turn.lineage_id, now=scene.now, force=True))

        (row,) = store.audit(ALL)
        assert (row.entry.tool_name, row.user_id) == ("ls", "ou_1")
        assert (row.entry.arguments, row.entry.result) == ("", "")
        assert store.audit(Principal(owners=frozenset({owner_of(source_at(), shared=False)}))) == ()

    def test_old_rows_are_swept_unless_their_turn_runs(self, store: Store, scene: Scene) -> None:
        ended, running = scene.ask(scene.enter()), scene.ask(scene.enter(OTHER_KEY))
        for begun in (ended, running):
            _step(scene, begun, asking("c1"), _asked(scene))
        scene.revoke(ended.turn.lineage_id)
        before = scene.now

        none = scene.run(Sweep(now=scene.now, inbox_before=0, outbox_before=0, records_before=before))
        swept = scene.run(Sweep(now=scene.now, inbox_before=0, outbox_before=0, records_before=before + 1))

        assert (none.records, swept.records) == (0, 1)
        assert [row.turn_id for row in store.audit(ALL)] == [running.turn.id]
