"""Who hears the answer: where others listen, only what was said in that very room is in reach."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs
import pytest

from hermes_hookspecs.operations import Busy
from hermes_hookspecs.principal import Principal, owner_of, principal_of, room_of
from hermes_hookspecs.testing.scene import ALL, OTHER_KEY, binding, key_of, source_at
from hermes_hookspecs.testing.storage.fixtures import StoreFixtures

if TYPE_CHECKING:
    from hermes_hookspecs.ids import InboxId
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.sessions import SessionEntry
    from hermes_hookspecs.source import SessionSource
    from hermes_hookspecs.testing.scene import Scene

__all__ = ["RoomTests", "StrangerTests"]

DM = source_at()
GROUP = source_at("oc_g", chat_type="group")
OTHER_GROUP = source_at("oc_h", chat_type="group")
THREAD = source_at("oc_g", chat_type="thread", thread_id="t_1")
SOMEBODY_ELSE = source_at("oc_g", "ou_2", chat_type="group")

HOSTILE = {
    "separator in a scope": (source_at(user="bob", scope_id="T\x1fX"), source_at(user="X\x1fbob", scope_id="T")),
    "colon in a scope": (source_at(user="bob", scope_id="T:X"), source_at(user="X:bob", scope_id="T")),
    "colon and its code": (source_at(user="a:b"), source_at(user="a%3Ab")),
    "percent and its code": (source_at(user="a%"), source_at(user="a%25")),
    "line feed in a chat": (source_at("a\nb", chat_type="group"), source_at("a", chat_type="group", thread_id="b")),
    "line feed at the end": (source_at(user="a"), source_at(user="a\n")),
    "blank at the end": (source_at(user="a"), source_at(user="a ")),
    "nul": (source_at(user="a"), source_at(user="a\x00")),
    "case": (source_at(user="a"), source_at(user="A")),
    "composed": (source_at(user="\u00e9"), source_at(user="e\u0301")),
    "two halves": (source_at(user="\ud800"), source_at(user="\udfff")),
    "half and replacement": (source_at(user="\ud800"), source_at(user="\ufffd")),
    "two halves and their pair": (source_at(user="\ud800\udc00"), source_at(user="\U00010000")),
    "half in a chat": (source_at("\ud800", user=""), source_at("\ufffd", user="")),
    "person and chat": (source_at("oc_1", "alice"), source_at("alice", "mallory")),
    "nameless chat and person": (source_at("P", user=""), source_at("oc_g", "P", chat_type="group")),
    "nameless chat and room": (source_at("G", user=""), source_at("G", user="", chat_type="group")),
    "threads of a chat": (THREAD, source_at("oc_g", chat_type="thread", thread_id="t_2")),
    "profiles": (source_at(), source_at(profile="other")),
}
"""Pairs of sources whose owners look alike, and are nobody but themselves."""


def _said(scene: Scene, source: SessionSource, *, shared: bool = False) -> SessionEntry:
    """Run a whole turn in a lineage of its own that begins at ``source``."""
    owner = owner_of(source, shared=shared)
    entry = scene.enter(key_of(f"c{scene.fresh()}"), source, shared=shared, owner=owner)
    scene.clock.advance(1)
    inbox_id = scene.accept("needle", entry.session_key, source=source)
    scene.finish(scene.begin(entry.lineage_id, inbox_id))
    return entry


def _in_reach(store: Store, entry: SessionEntry, principal: Principal) -> bool:
    """Return whether a principal reaches a lineage; all reads of the port must be of one mind."""
    lineage_id, session_id = entry.lineage_id, entry.session_id
    answers = {
        "lineage": store.lineage(lineage_id, principal) is not None,
        "session": store.session(session_id, principal) is not None,
        "segments": store.segments(lineage_id, principal) != (),
        "summary": store.summary(lineage_id, principal) is not None,
        "messages": store.messages(lineage_id, principal) != (),
        "last messages": store.last_messages(lineage_id, principal, count=1) != (),
        "turns": store.turns(lineage_id, principal) != (),
        "list": lineage_id in {each.lineage_id for each in store.summaries(principal, limit=None)},
        "scan": lineage_id in {row.lineage_id for row in store.scan(["needle"], principal, limit=100)},
        "prefix": session_id in {each.id for each in store.sessions_by_prefix(session_id, principal)},
    }
    assert len(set(answers.values())) == 1, answers
    return answers["lineage"]


class RoomTests(StoreFixtures):
    """A lineage that was said in one room belongs to it until something of it is said elsewhere."""

    def test_a_lineage_remembers_the_room_that_it_was_said_in(self, scene: Scene) -> None:
        rooms = {where: scene.lineage(_said(scene, where).lineage_id).room for where in (DM, GROUP, THREAD)}

        assert rooms == {DM: None, GROUP: room_of(GROUP), THREAD: room_of(THREAD)}
        assert len({None, *rooms.values()}) == 3

    def test_in_a_group_a_person_reaches_only_what_was_said_in_that_group(self, store: Store, scene: Scene) -> None:
        here, shared = _said(scene, GROUP), _said(scene, GROUP, shared=True)
        elsewhere = [_said(scene, source) for source in (DM, OTHER_GROUP, THREAD, SOMEBODY_ELSE)]
        elsewhere.append(_said(scene, OTHER_GROUP, shared=True))

        me = principal_of(GROUP, shared=False)

        assert [_in_reach(store, each, me) for each in (here, shared)] == [True, True]
        assert [_in_reach(store, each, me) for each in elsewhere] == [False] * 5

    def test_in_private_a_person_reaches_all_that_is_theirs(self, store: Store, scene: Scene) -> None:
        mine = [_said(scene, source) for source in (DM, GROUP, OTHER_GROUP, THREAD, source_at("oc_2"))]
        others = [_said(scene, SOMEBODY_ELSE), _said(scene, GROUP, shared=True), _said(scene, source_at("x", "ou_2"))]

        me = principal_of(DM, shared=False)

        assert [_in_reach(store, each, me) for each in mine] == [True] * 5
        assert [_in_reach(store, each, me) for each in others] == [False] * 3

    def test_a_shared_room_reaches_its_own_and_nobodys_else(self, store: Store, scene: Scene) -> None:
        room = _said(scene, GROUP, shared=True)
        others = [_said(scene, source) for source in (GROUP, SOMEBODY_ELSE, DM)]
        others += [_said(scene, source, shared=True) for source in (OTHER_GROUP, THREAD)]

        for source in (GROUP, SOMEBODY_ELSE):
            everybody = principal_of(source, shared=True)
            assert _in_reach(store, room, everybody)
            assert [_in_reach(store, each, everybody) for each in others] == [False] * 5

    def test_a_thread_is_the_one_that_its_first_message_opens(self, store: Store, scene: Scene) -> None:
        opening = source_at("oc_g", chat_type="channel", prospective_thread_id="t_1")
        thread = _said(scene, opening, shared=True)

        assert _in_reach(store, thread, principal_of(THREAD, shared=True))
        assert not _in_reach(store, thread, principal_of(GROUP, shared=True))

    def test_a_room_without_its_owner_reaches_nothing(self, store: Store, scene: Scene) -> None:
        entry = _said(scene, GROUP)
        here, there = room_of(GROUP), room_of(OTHER_GROUP)
        owner = frozenset({owner_of(GROUP, shared=False)})

        assert _in_reach(store, entry, Principal(owners=owner, room=here))
        assert not _in_reach(store, entry, Principal(room=here))
        assert not _in_reach(store, entry, Principal(owners=owner, room=there))

    def test_who_sees_all_sees_every_room(self, store: Store, scene: Scene) -> None:
        entries = [_said(scene, source) for source in (DM, GROUP, THREAD)]

        assert [_in_reach(store, each, ALL) for each in entries] == [True] * 3

    def test_rooms_apply_before_the_limit(self, store: Store, scene: Scene) -> None:
        here = _said(scene, GROUP)
        for _ in range(3):
            _said(scene, DM)
        me = principal_of(GROUP, shared=False)

        assert [each.lineage_id for each in store.summaries(me, limit=1)] == [here.lineage_id]
        assert [row.lineage_id for row in store.scan(["needle"], me, limit=1)] == [here.lineage_id]
        assert [each.id for each in store.sessions_by_prefix("2", me, limit=1)] == [here.session_id]

    @pytest.mark.parametrize("place", [DM, OTHER_GROUP, THREAD], ids=["dm", "another-group", "thread"])
    def test_a_lineage_that_is_bound_at_another_place_is_private(
        self, store: Store, scene: Scene, place: SessionSource
    ) -> None:
        entry = _said(scene, GROUP)
        in_the_group = principal_of(GROUP, shared=False)
        assert _in_reach(store, entry, in_the_group)

        scene.run(binding(scene, OTHER_KEY, entry.lineage_id, source=place))

        assert scene.lineage(entry.lineage_id).room is None
        assert not _in_reach(store, entry, in_the_group)
        assert _in_reach(store, entry, principal_of(DM, shared=False))

    def test_what_was_private_once_stays_private(self, store: Store, scene: Scene) -> None:
        private, was_said_here = _said(scene, DM), _said(scene, GROUP)
        scene.run(binding(scene, OTHER_KEY, was_said_here.lineage_id, source=DM))

        for entry in (private, was_said_here):
            scene.run(binding(scene, key_of("again"), entry.lineage_id, source=GROUP))
            scene.begin(entry.lineage_id, scene.accept("needle", key_of("again"), source=GROUP))

            assert scene.lineage(entry.lineage_id).room is None
            assert not _in_reach(store, entry, principal_of(GROUP, shared=False))

    def test_a_room_may_have_another_key(self, store: Store, scene: Scene) -> None:
        entry = _said(scene, GROUP)

        scene.run(binding(scene, OTHER_KEY, entry.lineage_id, source=attrs.evolve(GROUP, message_id="m_2")))

        assert _in_reach(store, entry, principal_of(GROUP, shared=False))

    def test_a_message_from_another_place_makes_a_lineage_private(self, store: Store, scene: Scene) -> None:
        entry = _said(scene, GROUP)
        waits = scene.accept("needle", OTHER_KEY, lineage_id=entry.lineage_id, source=DM)
        in_the_group = principal_of(GROUP, shared=False)
        assert _in_reach(store, entry, in_the_group)

        scene.begin(entry.lineage_id, waits)

        assert scene.lineage(entry.lineage_id).room is None
        assert not _in_reach(store, entry, in_the_group)

    def test_a_begin_that_takes_nothing_changes_no_room(self, scene: Scene) -> None:
        entry = _said(scene, GROUP)
        scene.begin(entry.lineage_id, maintenance=True)
        waits: InboxId = scene.accept("needle", OTHER_KEY, lineage_id=entry.lineage_id, source=DM)

        assert isinstance(scene.try_begin(entry.lineage_id, waits), Busy)

        assert scene.lineage(entry.lineage_id).room == room_of(GROUP)

    def test_everybody_of_a_room_may_go_on_there(self, store: Store, scene: Scene) -> None:
        entry = _said(scene, GROUP, shared=True)
        waits = scene.accept("needle", entry.session_key, source=SOMEBODY_ELSE)

        scene.begin(entry.lineage_id, waits)

        assert _in_reach(store, entry, principal_of(GROUP, shared=True))


class StrangerTests(StoreFixtures):
    """Ids are opaque: whatever stands in them, nobody becomes somebody else."""

    @pytest.mark.parametrize(("one", "other"), HOSTILE.values(), ids=HOSTILE.keys())
    def test_who_looks_like_the_owner_is_a_stranger(
        self, store: Store, scene: Scene, one: SessionSource, other: SessionSource
    ) -> None:
        entries = {source: _said(scene, source) for source in (one, other)}

        reach = {
            (mine, theirs): _in_reach(store, entry, principal_of(mine, shared=False))
            for mine in (one, other)
            for theirs, entry in entries.items()
        }

        assert reach == {(one, one): True, (one, other): False, (other, one): False, (other, other): True}

    def test_an_owner_is_read_back_as_it_was_given(self, scene: Scene) -> None:
        for number, source in enumerate(each for pair in HOSTILE.values() for each in pair):
            lineage = scene.lineage(scene.enter(key_of(str(number)), source).lineage_id)

            assert (lineage.owner, lineage.room) == (owner_of(source, shared=False), room_of(source))
