"""The inbox: acceptance, duplicates, bounds, and rows that follow or leave a route."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

from hermes_hookspecs.errors import Conflict
from hermes_hookspecs.ids import InboxId
from hermes_hookspecs.inbox import CONTROL, PENDING, QUARANTINED, SUPERSEDED, WITHDRAWN
from hermes_hookspecs.messages import Attachment
from hermes_hookspecs.operations import Accept, Attach, Claim, Withdraw
from hermes_hookspecs.state import ABSENT, StateUpdate
from hermes_hookspecs.testing.scene import KEY, OTHER_KEY, binding, holder_at, key_of, releasing, source_at
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.inbox import AcceptResult, InboxDraft
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["InboxTests"]


def _accept(scene: Scene, *drafts: InboxDraft, max_waiting: int = 100) -> Sequence[AcceptResult]:
    return scene.run(Accept(drafts=drafts, now=scene.now, max_waiting=max_waiting))


class InboxTests(StoreFixtures):
    """Nothing accepted is lost, nothing is taken twice."""

    def test_an_accepted_message_waits_with_all_its_fields(self, store: Store, scene: Scene) -> None:
        draft = scene.incoming(
            "look",
            source=attrs.evolve(source_at(), roles=("vip", "admin")),
            identities=("i1", "i2"),
            attachments=(Attachment(kind="image", name="a.png", size=3, sha256="ab"),),
            waiter=holder_at(),
        )

        (taken,) = _accept(scene, draft)

        assert taken.id is not None
        item = store.inbox_item(taken.id)
        assert item is not None
        assert (item.session_key, item.source, item.entrance) == (draft.session_key, draft.source, draft.entrance)
        assert (item.text, item.identities, item.attachments) == ("look", draft.identities, draft.attachments)
        assert (item.kind, item.waiter, item.accepted_at) == ("message", draft.waiter, draft.accepted_at)
        assert (item.status, item.attempts, item.lineage_id, item.error) == (PENDING, 0, None, "")

    def test_rows_are_numbered_in_order_of_acceptance(self, store: Store, scene: Scene) -> None:
        results = _accept(scene, *(scene.incoming(text, accepted_at=9 - len(text)) for text in ("a", "bb", "ccc")))

        ids = [result.id for result in results]
        assert ids == sorted(ids, key=lambda each: each or 0)
        assert [item.text for item in store.waiting_of_key(KEY)] == ["a", "bb", "ccc"]
        assert [item.text for item in store.waiting_of_key(KEY, limit=2)] == ["a", "bb"]

    def test_a_known_identity_makes_a_duplicate(self, store: Store, scene: Scene) -> None:
        first = scene.accept("one", identities=("a", "b"))

        (again,) = _accept(scene, scene.incoming("two", OTHER_KEY, identities=("x", "b")))

        assert (again.id, again.duplicate) == (first, True)
        assert store.waiting_of_key(OTHER_KEY) == ()

    def test_the_other_identities_of_a_duplicate_are_remembered_with_its_row(self, store: Store, scene: Scene) -> None:
        first, other = scene.accept(identities=("a",)), scene.accept(identities=("z",))
        _accept(scene, scene.incoming(identities=("z", "a", "b", "b")))

        (again,) = _accept(scene, scene.incoming(identities=("b", "c")))

        assert (again.id, again.duplicate) == (other, True)
        item = store.inbox_item(other)
        assert item is not None
        assert item.identities == ("z", "b", "c")
        assert _accept(scene, scene.incoming(identities=("a",)))[0].id == first

    def test_commands_have_a_bound_of_their_own(self, scene: Scene) -> None:
        scene.accept("a message")
        drafts = [scene.incoming(text, kind=CONTROL) for text in ("/a", "/b", "/c")]

        *taken, refused = _accept(scene, *drafts, max_waiting=2)

        assert [result.refused for result in taken] == ["", ""]
        assert (refused.id, refused.refused) == (None, "2 commands wait already")
        assert not _accept(scene, scene.incoming("b"), max_waiting=2)[0].refused
        assert not _accept(scene, scene.incoming("/a", OTHER_KEY, kind=CONTROL), max_waiting=2)[0].refused

    def test_a_duplicate_within_a_batch_is_found(self, scene: Scene) -> None:
        first, again, other = _accept(
            scene,
            scene.incoming(identities=("a",)),
            scene.incoming(identities=("a",)),
            scene.incoming(identities=("b",)),
        )

        assert (again.id, again.duplicate) == (first.id, True)
        assert not other.duplicate

    def test_messages_without_identity_are_never_duplicates(self, scene: Scene) -> None:
        assert scene.accept("same") != scene.accept("same")

    def test_a_settled_message_is_still_known(self, scene: Scene) -> None:
        entry = scene.enter()
        first = scene.accept(identities=("a",))
        scene.finish(scene.begin(entry.lineage_id, first))

        (again,) = _accept(scene, scene.incoming(identities=("a",)))

        assert (again.id, again.duplicate) == (first, True)

    def test_a_row_of_a_live_route_belongs_to_its_lineage_at_once(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()

        inbox_id = scene.accept()

        assert [item.id for item in store.waiting(entry.lineage_id)] == [inbox_id]

    def test_an_entrance_that_knows_the_lineage_names_it(self, store: Store, scene: Scene) -> None:
        scene.enter()
        other = scene.enter(OTHER_KEY)

        scene.accept(key=KEY, lineage_id=other.lineage_id)

        assert len(store.waiting(other.lineage_id)) == 1

    def test_rows_that_wait_for_a_session_get_it(self, store: Store, scene: Scene) -> None:
        inbox_id = scene.accept()

        entry = scene.enter()

        assert [item.id for item in store.waiting(entry.lineage_id)] == [inbox_id]

    def test_rows_of_another_key_are_left_alone(self, store: Store, scene: Scene) -> None:
        scene.accept(key=OTHER_KEY)

        entry = scene.enter()

        assert store.waiting(entry.lineage_id) == ()
        assert len(store.waiting_of_key(OTHER_KEY)) == 1

    def test_a_full_queue_refuses_the_single_message(self, store: Store, scene: Scene) -> None:
        drafts = [scene.incoming(text, identities=(text,)) for text in "abc"]

        first, second, third, other = _accept(scene, *drafts, scene.incoming("d", OTHER_KEY), max_waiting=2)

        assert (first.refused, second.refused, other.refused) == ("", "", "")
        assert third.id is None
        assert third.refused
        assert [item.text for item in store.waiting_of_key(KEY)] == ["a", "b"]
        (later,) = _accept(scene, drafts[2])
        assert not later.duplicate

    def test_a_duplicate_is_told_so_even_by_a_full_queue(self, scene: Scene) -> None:
        first = scene.accept(identities=("a",))

        (again,) = _accept(scene, scene.incoming(identities=("a",)), max_waiting=1)

        assert (again.id, again.duplicate, again.refused) == (first, True, "")

    def test_only_rows_that_still_wait_fill_a_queue(self, scene: Scene) -> None:
        entry = scene.enter()
        scene.talk(entry)

        (taken,) = _accept(scene, scene.incoming(), max_waiting=1)

        assert taken.refused == ""

    def test_a_control_row_stands_outside_the_queue(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        control = scene.accept("/stop", kind="control")

        message = scene.accept("hello")

        assert scene.status(control) == PENDING
        assert [item.id for item in store.waiting(entry.lineage_id)] == [message]
        assert scene.begin(entry.lineage_id, message).items[0].id == message

    @pytest.mark.parametrize("named", [True, False], ids=["named", "routed"])
    @pytest.mark.parametrize("state", ["waits", "runs"])
    def test_a_message_for_an_idle_lineage_is_refused_by_a_busy_one(
        self, store: Store, scene: Scene, state: str, named: bool
    ) -> None:
        entry = scene.enter()
        inbox_id = scene.accept("first", OTHER_KEY, lineage_id=entry.lineage_id)
        if state == "runs":
            scene.begin(entry.lineage_id, inbox_id)
        lineage_id = entry.lineage_id if named else None
        draft = scene.incoming(
            identities=("a",), only_if_idle=True, lineage_id=lineage_id, session_key=key_of("x") if named else KEY
        )

        busy, plain = _accept(scene, draft, scene.incoming(identities=("b",)))

        assert (busy.id, busy.duplicate, busy.refused) == (None, False, "busy")
        assert plain.refused == ""
        for item in store.waiting(entry.lineage_id):
            scene.run(Withdraw(ids=(item.id,), now=scene.now))
        scene.revoke(entry.lineage_id)
        (later,) = _accept(scene, draft)
        assert (later.duplicate, later.refused) == (False, "")

    def test_only_messages_and_turns_make_a_lineage_busy(self, scene: Scene) -> None:
        scene.talk(scene.enter())
        scene.accept("/stop", kind="control")
        scene.accept("", error="broken")
        scene.accept("elsewhere", OTHER_KEY)

        taken, second = _accept(scene, *(scene.incoming(only_if_idle=True) for _ in range(2)))

        assert (taken.refused, second.refused) == ("", "busy")

    def test_a_duplicate_is_told_so_even_by_a_busy_lineage(self, scene: Scene) -> None:
        scene.enter()
        first = scene.accept(identities=("a",))

        (again,) = _accept(scene, scene.incoming(identities=("a",), only_if_idle=True))

        assert (again.id, again.duplicate, again.refused) == (first, True, "")

    def test_an_unreadable_item_is_quarantined_and_known(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        inbox_id = scene.accept("", error="broken card", identities=("a",))

        (again,) = _accept(scene, scene.incoming(identities=("a",)))

        item = store.inbox_item(inbox_id)
        assert item is not None
        assert (item.status, item.error) == (QUARANTINED, "broken card")
        assert store.waiting(entry.lineage_id) == ()
        assert again.duplicate

    def test_state_is_written_with_the_batch(self, store: Store, scene: Scene) -> None:
        cursor = StateUpdate(namespace="feishu", key="cursor", value='"7"')

        scene.run(Accept(drafts=(scene.incoming(),), now=scene.now, state=(cursor,)))

        entry = store.state("feishu", "cursor", now=scene.now)
        assert entry is not None
        assert entry.value == '"7"'

    def test_a_conflict_of_the_state_refuses_the_whole_batch(self, store: Store, scene: Scene) -> None:
        scene.accept(identities=("old",))
        wrong = StateUpdate(namespace="feishu", key="cursor", value='"7"', expected_version=3)
        free = StateUpdate(namespace="feishu", key="other", value="1", expected_version=ABSENT)

        with pytest.raises(Conflict):
            scene.run(Accept(drafts=(scene.incoming(identities=("new",)),), now=scene.now, state=(free, wrong)))

        assert len(store.waiting_of_key(KEY)) == 1
        assert store.states("feishu", now=scene.now) == ()
        (taken,) = _accept(scene, scene.incoming(identities=("new",)))
        assert not taken.duplicate

    def test_what_was_fetched_is_written_down_while_the_message_waits(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        there = Attachment(kind="image", reference="img_1", sha256="ab", size=3)
        gone = Attachment(kind="audio", reference="snd_1", text="[audio, not available]")
        waits, other = scene.accept("look", attachments=(Attachment(kind="image", reference="img_1"),)), scene.accept()
        operation = Attach(inbox_id=waits, attachments=(there, gone), now=scene.now)

        assert scene.run(operation)
        assert scene.run(operation)

        items = [store.inbox_item(each) for each in (waits, other)]
        assert [item.attachments for item in items if item is not None] == [(there, gone), ()]
        scene.begin(entry.lineage_id, waits)
        assert not scene.run(attrs.evolve(operation, attachments=()))
        claimed = store.inbox_item(waits)
        assert claimed is not None
        assert claimed.attachments == (there, gone)

    def test_withdraw_takes_back_what_still_waits(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        answered, waits = scene.accept("a"), scene.accept("b")
        scene.begin(entry.lineage_id, answered)
        operation = Withdraw(ids=(answered, waits, InboxId(999_999)), now=scene.now)

        assert scene.run(operation) == 1

        assert scene.status(waits) == WITHDRAWN
        assert scene.status(answered) == "claimed"
        assert scene.run(operation) == 0

    def test_release_settles_what_waited_and_counts_it(self, store: Store, scene: Scene) -> None:
        scene.enter()
        waits = [scene.accept("a"), scene.accept("b", kind="internal")]
        control, other = scene.accept("/new", kind="control"), scene.accept(key=OTHER_KEY)

        released = store.apply(releasing(scene))

        assert released.superseded == 2
        assert [scene.status(each) for each in waits] == [SUPERSEDED] * 2
        assert [scene.status(each) for each in (control, other)] == [PENDING] * 2

    def test_release_settles_no_younger_row(self, store: Store, scene: Scene) -> None:
        entry = scene.enter()
        older = scene.accept("old")
        control = scene.accept("/new", kind="control")
        younger = scene.accept("young")

        released = store.apply(releasing(scene, control_id=control))

        assert released.superseded == 1
        assert (scene.status(older), scene.status(younger)) == (SUPERSEDED, PENDING)
        assert store.waiting(entry.lineage_id) == ()
        new = scene.enter()
        assert [item.id for item in store.waiting(new.lineage_id)] == [younger]

    def test_bind_carries_waiting_rows_along(self, store: Store, scene: Scene) -> None:
        scene.enter()
        target = scene.enter(OTHER_KEY)
        waits = scene.accept()

        bound = store.apply(binding(scene, KEY, target.lineage_id))

        assert [item.id for item in store.waiting(target.lineage_id)] == [waits]
        assert (target.superseded, bound.superseded) == (0, 0)

    def test_bind_without_carrying_settles_the_older_rows(self, store: Store, scene: Scene) -> None:
        scene.enter()
        target = scene.enter(OTHER_KEY)
        older = scene.accept("old")
        control = scene.accept("/resume", kind="control")
        younger = scene.accept("young")

        bound = store.apply(binding(scene, KEY, target.lineage_id, carry=False, control_id=control))

        assert (scene.status(older), bound.superseded) == (SUPERSEDED, 1)
        assert [item.id for item in store.waiting(target.lineage_id)] == [younger]

    def test_rows_of_a_claimed_key_follow(self, store: Store, scene: Scene) -> None:
        old = scene.enter(OTHER_KEY)
        waits = scene.accept(key=OTHER_KEY)

        entry = scene.enter(claims=(Claim(key=OTHER_KEY),))

        assert entry.lineage_id == old.lineage_id
        assert [(item.id, item.session_key) for item in store.waiting(old.lineage_id)] == [(waits, OTHER_KEY)]

    def test_an_unknown_row_is_none(self, store: Store) -> None:
        assert store.inbox_item(InboxId(1)) is None
