"""What goes with a reset, and what the next session begins with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_hookspecs.errors import Conflict
from hermes_hookspecs.messages import KIND_SUMMARY, SYSTEM, MessageDraft
from hermes_hookspecs.operations import PutState
from hermes_hookspecs.state import ABSENT, CONVERSATION, StateUpdate
from hermes_hookspecs.testing.scene import OTHER_KEY, binding, releasing
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures

if TYPE_CHECKING:
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["ResetTests"]

CARRIED = MessageDraft(role=SYSTEM, content="before", sent="it was said before", kind=KIND_SUMMARY, timestamp=1)


def _remember(scene: Scene, lineage_id: LineageId | None, namespace: str = CONVERSATION, key: str = "model") -> None:
    update = StateUpdate(namespace=namespace, key=key, value='"m"', lineage_id=lineage_id)
    scene.run(PutState(updates=(update,), now=scene.now))


class ResetTests(StoreFixtures):
    """State of a conversation, and a summary that is carried over."""

    def test_what_holds_for_the_conversation_goes_with_it(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        _remember(scene, entry.lineage_id)
        _remember(scene, entry.lineage_id, "plugin")
        _remember(scene, None, key="nobody's")

        scene.run(releasing(scene))

        assert store.state(CONVERSATION, "model", now=scene.now) is None
        assert store.state("plugin", "model", now=scene.now) is not None
        assert store.state(CONVERSATION, "nobody's", now=scene.now) is not None

    def test_it_stays_while_another_route_leads_there(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        scene.run(binding(scene, OTHER_KEY, entry.lineage_id))
        _remember(scene, entry.lineage_id)

        scene.run(releasing(scene))
        between = store.state(CONVERSATION, "model", now=scene.now)
        scene.run(releasing(scene, OTHER_KEY))

        assert between is not None
        assert store.state(CONVERSATION, "model", now=scene.now) is None

    def test_a_release_that_does_not_happen_forgets_nothing(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        _remember(scene, entry.lineage_id)

        with pytest.raises(Conflict):
            scene.run(releasing(scene, check=True))

        assert store.state(CONVERSATION, "model", now=scene.now) is not None

    def test_what_a_release_remembers_is_written_with_it_or_not_at_all(self, store: Store, scene: Scene) -> None:
        scene.enter()
        note = StateUpdate(namespace="a", key="b", value="1", expected_version=ABSENT)

        scene.run(releasing(scene, state=(note,)))
        entry = scene.enter()
        with pytest.raises(Conflict):
            scene.run(releasing(scene, state=(note,)))

        kept = store.state("a", "b", now=scene.now)
        assert kept is not None
        assert kept.version == 1
        assert scene.enter().lineage_id == entry.lineage_id

    def test_a_session_begins_with_what_is_carried_over(self, store: Store, scene: Scene) -> None:
        made = scene.enter(carry=CARRIED)
        same = scene.enter(carry=CARRIED)
        scene.talk(made, "one")

        first, *others = scene.rows(made.lineage_id)
        assert same.lineage_id == made.lineage_id
        assert (first.role, first.kind, first.content, first.sent) == (SYSTEM, KIND_SUMMARY, "before", CARRIED.sent)
        assert (first.session_id, first.turn_id) == (made.session_id, None)
        assert [row.content for row in others] == ["one", "hi"]
        lineage = scene.lineage(made.lineage_id)
        assert (lineage.message_count, lineage.preview) == (3, "one")
        assert store.stats().messages == 3
