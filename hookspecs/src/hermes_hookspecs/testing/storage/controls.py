"""Control rows: the effect of a command and the row's end are one step, exactly once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from hermes_hookspecs.errors import Conflict, HermesError, SessionNotFound, TitleError
from hermes_hookspecs.ids import InboxId, LineageId
from hermes_hookspecs.inbox import (
    APPLIED,
    CONTROL,
    PENDING,
    QUARANTINED,
    SETTLED,
    SUPERSEDED,
    WITHDRAWN,
    ControlOutcome,
)
from hermes_hookspecs.operations import Deliver, Rename, Revoke, SetFlags, Withdraw
from hermes_hookspecs.outbox import REPLY
from hermes_hookspecs.testing.scene import KEY, OTHER_KEY, binding, releasing
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_hookspecs.ids import DeliveryId
    from hermes_hookspecs.operations import Operation
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.sessions import SessionEntry
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["ControlTests"]


def _naming(scene: Scene, entry: SessionEntry, title: str) -> Rename:
    return Rename(lineage_id=entry.lineage_id, title=title, origin="user", now=scene.now)


def _answer(scene: Scene, control: InboxId, key: str = "reply") -> DeliveryId:
    """Store the reply to a command; return its row."""
    draft = scene.delivering("done", key=key, kind=REPLY, inbox_id=control)
    (delivery_id,) = scene.run(Deliver(drafts=(draft,), now=scene.now, settle=control))
    return delivery_id


class ControlTests(StoreFixtures):
    """A command is applied exactly once, whatever dies in between."""

    def test_a_reset_is_applied_with_its_row(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        running, waits = scene.ask(entry), scene.accept("waits")
        control = scene.accept("/new", kind=CONTROL)
        younger = scene.accept("younger")

        outcome = scene.control(releasing(scene, control_id=control), inbox_id=control)

        assert outcome == ControlOutcome(
            lineage_id=entry.lineage_id, session_id=entry.session_id, stopped=running.turn.id, superseded=1
        )
        assert (scene.status(control), scene.item(control).outcome) == (APPLIED, outcome)
        assert (scene.status(waits), scene.status(younger)) == (SUPERSEDED, PENDING)
        route = store.route(KEY)
        assert route is not None
        assert route.lineage_id is None

    def test_an_effect_does_not_run_again(self, store: Store, scene: Scene) -> None:
        scene.enter()
        control = scene.accept("/new", kind=CONTROL)
        first = scene.control(releasing(scene), inbox_id=control)
        entry = scene.enter()
        waits = scene.accept("for the new session")

        again = scene.control(releasing(scene), inbox_id=control)

        assert not first.repeated
        assert again.repeated
        assert (again.lineage_id, again.session_id) == (first.lineage_id, first.session_id)
        route = store.route(KEY)
        assert route is not None
        assert route.lineage_id == entry.lineage_id
        assert scene.status(waits) == PENDING
        assert scene.item(control).outcome == first

    def test_a_bind_says_what_it_settled(self, scene: Scene) -> None:
        scene.enter()
        target = scene.enter(OTHER_KEY)
        scene.accept("one")
        scene.accept("two")

        outcome = scene.control(binding(scene, KEY, target.lineage_id, carry=False))

        assert outcome == ControlOutcome(lineage_id=target.lineage_id, session_id=target.session_id, superseded=2)

    def test_a_stop_says_which_turn_it_ended(self, scene: Scene) -> None:
        entry = scene.enter()
        running = scene.ask(entry)
        stop = Revoke(lineage_id=entry.lineage_id, now=scene.now, reason="/stop")

        first, second = scene.control(stop), scene.control(stop)

        assert first == ControlOutcome(
            lineage_id=entry.lineage_id, session_id=entry.session_id, stopped=running.turn.id
        )
        assert second == ControlOutcome(lineage_id=entry.lineage_id)

    def test_titles_and_flags_are_effects(self, scene: Scene) -> None:
        entry = scene.enter()

        named = scene.control(_naming(scene, entry, "plan"))
        pinned = scene.control(SetFlags(lineage_id=entry.lineage_id, now=scene.now, pinned=True))

        assert named == ControlOutcome(lineage_id=entry.lineage_id, title="plan")
        assert pinned == ControlOutcome(lineage_id=entry.lineage_id, session_id=entry.session_id)
        lineage = scene.lineage(entry.lineage_id)
        assert (lineage.title, lineage.pinned) == ("plan", True)

    def test_a_command_may_change_nothing_here(self, scene: Scene) -> None:
        control = scene.accept("/help", kind=CONTROL)

        first, again = (scene.control(None, inbox_id=control) for _ in range(2))

        assert (first, again) == (ControlOutcome(), ControlOutcome(repeated=True))
        assert scene.status(control) == APPLIED

    def test_a_command_without_a_reply_is_done_at_once(self, scene: Scene) -> None:
        control = scene.accept("recall", kind=CONTROL)

        scene.control(None, inbox_id=control, settle=True)

        assert scene.status(control) == SETTLED
        assert scene.control(None, inbox_id=control).repeated

    def test_the_reply_settles_the_command(self, scene: Scene) -> None:
        entry = scene.enter()
        control = scene.accept("/title", kind=CONTROL)
        first = scene.control(_naming(scene, entry, "plan"), inbox_id=control)

        reply = _answer(scene, control)

        assert scene.status(control) == SETTLED
        delivery = scene.delivery(reply)
        assert (delivery.text, delivery.kind, delivery.inbox_id) == ("done", REPLY, control)
        again = scene.control(_naming(scene, entry, "other"), inbox_id=control)
        assert (again.title, again.repeated) == (first.title, True)
        assert scene.lineage(entry.lineage_id).title == "plan"

    def test_a_reply_is_stored_once_however_often_it_is_given(self, store: Store, scene: Scene) -> None:
        control = scene.accept("/help", kind=CONTROL)
        scene.control(None, inbox_id=control)

        assert _answer(scene, control) == _answer(scene, control)

        assert len(store.deliveries()) == 1
        assert scene.status(control) == SETTLED

    def test_a_command_may_be_settled_by_its_reply_alone(self, scene: Scene) -> None:
        entry = scene.enter()
        control = scene.accept("/help", kind=CONTROL)

        _answer(scene, control)

        assert scene.status(control) == SETTLED
        with pytest.raises(Conflict):
            scene.control(_naming(scene, entry, "late"), inbox_id=control)
        assert scene.lineage(entry.lineage_id).title is None

    def test_a_reply_settles_nothing_but_a_command_that_waits_for_it(self, scene: Scene) -> None:
        message, withdrawn = scene.accept("hello"), scene.accept("/new", kind=CONTROL)
        scene.run(Withdraw(ids=(withdrawn,), now=scene.now))

        for number, inbox_id in enumerate((message, withdrawn, InboxId(999_999))):
            _answer(scene, inbox_id, key=f"reply {number}")

        assert (scene.status(message), scene.status(withdrawn)) == (PENDING, WITHDRAWN)

    def test_only_a_command_that_waits_is_applied(self, scene: Scene) -> None:
        entry = scene.enter()
        message, withdrawn = scene.accept("hello"), scene.accept("/new", kind=CONTROL)
        broken = scene.accept("", kind=CONTROL, error="unreadable")
        scene.run(Withdraw(ids=(withdrawn,), now=scene.now))

        for inbox_id in (message, withdrawn, broken, InboxId(999_999)):
            with pytest.raises(Conflict):
                scene.control(_naming(scene, entry, "plan"), inbox_id=inbox_id)

        assert scene.lineage(entry.lineage_id).title is None
        assert [scene.status(each) for each in (message, withdrawn, broken)] == [PENDING, WITHDRAWN, QUARANTINED]

    @pytest.mark.parametrize(
        ("effect", "error"),
        [
            (lambda scene: _naming(scene, scene.enter(), "taken"), TitleError),
            (lambda scene: releasing(scene, check=True, expected=LineageId("L-other"), title="t"), Conflict),
            (lambda scene: binding(scene, KEY, LineageId("L-nowhere")), SessionNotFound),
        ],
        ids=["taken-title", "route-that-moved", "nowhere"],
    )
    def test_an_effect_that_fails_leaves_everything_as_it_was(
        self, store: Store, scene: Scene, effect: Callable[[Scene], Operation[object]], error: type[HermesError]
    ) -> None:
        entry = scene.enter()
        scene.run(_naming(scene, scene.enter(OTHER_KEY), "taken"))
        control, operation = scene.accept("/title", kind=CONTROL), effect(scene)
        before = (store.route(KEY), scene.lineage(entry.lineage_id), scene.item(control), store.changes(None)[0])

        with pytest.raises(error):
            scene.control(operation, inbox_id=control)

        after = (store.route(KEY), scene.lineage(entry.lineage_id), scene.item(control), store.changes(None)[0])
        assert after == before
        assert not scene.control(_naming(scene, entry, "free"), inbox_id=control).repeated
        assert scene.lineage(entry.lineage_id).title == "free"
