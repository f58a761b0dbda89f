"""Steering: a message that was accepted is said into the turn that runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

from hermes_hookspecs.errors import Conflict, IllegalMessage
from hermes_hookspecs.ids import InboxId
from hermes_hookspecs.inbox import CONTROL, PENDING, SETTLED
from hermes_hookspecs.messages import ASSISTANT, USER, MessageDraft
from hermes_hookspecs.operations import Begin, NothingWaiting, Withdraw
from hermes_hookspecs.principal import room_of
from hermes_hookspecs.testing.scene import ALL, OTHER_KEY, asking, key_of, result, saying, source_at
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures

if TYPE_CHECKING:
    from hermes_hookspecs.operations import Begun
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["SteeringTests"]


def _steered(inbox_id: InboxId, text: str = "and this", role: str = USER) -> MessageDraft:
    return MessageDraft(role=role, content=text, timestamp=1, inbox_id=inbox_id)


def _standing(scene: Scene, begun: Begun) -> object:
    lineage_id = begun.turn.lineage_id
    return scene.rows(lineage_id), scene.lineage(lineage_id), scene.store.turns(lineage_id, ALL)


class SteeringTests(StoreFixtures):
    """Its row is done in the step that stores it, and it belongs to the turn from then on."""

    def test_a_steered_message_is_stored_and_done(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        steered, waits = scene.accept("and this", kind="internal"), scene.accept("later")
        scene.append(begun, asking("c1"))

        scene.append(begun, result("c1"), _steered(steered))

        row = scene.rows(entry.lineage_id)[-1]
        assert (row.role, row.content, row.inbox_id, row.turn_id) == (USER, "and this", steered, begun.turn.id)
        item = scene.item(steered)
        assert (item.status, item.attempts) == (SETTLED, 1)
        turn = store.turn(begun.turn.id)
        assert turn == attrs.evolve(begun.turn, inbox_ids=(*begun.turn.inbox_ids, steered))
        assert scene.status(waits) == PENDING
        assert scene.lineage(entry.lineage_id).message_count == 4
        assert scene.lineage(entry.lineage_id).version == begun.version + 2

    def test_it_stays_done_when_the_turn_ends(self, scene: Scene) -> None:
        entry = scene.enter()
        begun = scene.ask(entry)
        steered = scene.accept("and this")
        scene.append(begun, _steered(steered))

        scene.finish(begun, again=frozenset({steered}))

        assert scene.status(steered) == SETTLED
        assert scene.try_begin(entry.lineage_id, steered) == NothingWaiting()
        assert scene.texts(entry.lineage_id) == ["hello", "and this"]

    def test_it_does_not_come_between_calls_and_results(self, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        steered = scene.accept("and this")
        scene.append(begun, asking("c1", "c2"))
        before = _standing(scene, begun)

        with pytest.raises(IllegalMessage):
            scene.append(begun, result("c1"), _steered(steered))

        assert _standing(scene, begun) == before
        assert scene.status(steered) == PENDING

    @pytest.mark.parametrize("case", ["withdrawn", "elsewhere", "unrouted", "control", "missing"])
    def test_what_does_not_wait_here_is_not_said(self, scene: Scene, case: str) -> None:
        begun = scene.ask(scene.enter())
        scene.enter(OTHER_KEY)
        inbox_id = {
            "withdrawn": lambda: scene.accept("x"),
            "elsewhere": lambda: scene.accept("x", OTHER_KEY),
            "unrouted": lambda: scene.accept("x", key_of("nowhere")),
            "control": lambda: scene.accept("x", kind=CONTROL),
            "missing": lambda: InboxId(999_999),
        }[case]()
        if case == "withdrawn":
            scene.run(Withdraw(ids=(inbox_id,), now=scene.now))
        good = scene.accept("good")
        before = _standing(scene, begun)

        with pytest.raises(Conflict):
            scene.append(begun, _steered(good), _steered(inbox_id))

        assert _standing(scene, begun) == before
        assert scene.item(good).attempts == 0
        assert scene.status(good) == PENDING

    def test_only_a_user_row_holds_a_message(self, scene: Scene) -> None:
        begun = scene.ask(scene.enter())
        steered = scene.accept("and this")

        with pytest.raises(IllegalMessage):
            scene.append(begun, _steered(steered, role=ASSISTANT))

        assert scene.status(steered) == PENDING

    def test_what_is_steered_from_another_place_makes_the_lineage_private(self, store: Store, scene: Scene) -> None:
        group = source_at("oc_g", chat_type="group")
        entry = scene.enter(source=group)
        begun = scene.begin(entry.lineage_id, scene.accept(source=group))
        here, private = scene.accept("here", source=group), scene.accept("private")
        scene.append(begun, _steered(here))
        assert scene.lineage(entry.lineage_id).room == room_of(group)
        _, cursor = store.changes(None)

        scene.append(begun, _steered(private))

        assert scene.lineage(entry.lineage_id).room is None
        assert sorted(change.kind for change in store.changes(cursor)[0]) == ["insert", "lineage"]

    def test_a_begin_run_again_still_knows_its_turn(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        operation: Begin = scene.beginning(entry.lineage_id, scene.accept())
        store.apply(operation)
        begun = scene.begin(entry.lineage_id, drafts=operation.drafts, turn_id=operation.turn_id)
        scene.append(begun, _steered(scene.accept("and this")), saying("yes"))

        again = scene.begin(entry.lineage_id, drafts=operation.drafts, turn_id=operation.turn_id)

        assert again.turn == store.turn(begun.turn.id)
        assert again.lease == scene.lease(entry.lineage_id)
