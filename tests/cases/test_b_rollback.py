"""Group B: a write that fails half-way."""

from __future__ import annotations

import apsw
import attrs
import pytest

from hermes_core.storage.sqlite.backend import SqliteBackend
from hermes_hookspecs.errors import HermesError
from hermes_hookspecs.messages import TOOL, MessageDraft
from hermes_hookspecs.operations import Accept, Append, Delete, Finish, PutState, Rename
from hermes_hookspecs.ports.store import StoreOptions
from hermes_hookspecs.state import StateUpdate
from hermes_hookspecs.testing.scene import Scene, fence_of, key_of, saying

PATIENCE_S = 60


@pytest.fixture
def store(tmp_path):
    opened = SqliteBackend().open(StoreOptions(path=tmp_path / "home" / "state.db"))
    yield opened
    opened.close()


@pytest.fixture
def scene(store):
    return Scene(store)


class Unspeakable:
    """A value that no database takes."""


def _bad_append(scene, begun):
    drafts = (saying("fine"), attrs.evolve(saying("x"), content=Unspeakable()))
    return Append(fence=fence_of(begun), drafts=drafts, now=1)


def _illegal_append(scene, begun):
    drafts = (saying("fine"), MessageDraft(role=TOOL, content="?", timestamp=1, tool_call_id="never asked"))
    return Append(fence=fence_of(begun), drafts=drafts, now=1)


def _huge_number(scene, begun):
    drafts = (saying("fine"), attrs.evolve(saying("x"), token_count=2**70))
    return Append(fence=fence_of(begun), drafts=drafts, now=1)


def _bad_finish(scene, begun):
    drafts = (saying("fine"), attrs.evolve(saying("x"), token_count=Unspeakable()))
    return Finish(fence=fence_of(begun), outcome="done", drafts=drafts, now=1)


def _bad_accept(scene, begun):
    drafts = (scene.incoming("fine"), attrs.evolve(scene.incoming("x"), identities=(Unspeakable(),)))
    return Accept(drafts=drafts, now=1)


def _conflicting_accept(scene, begun):
    update = StateUpdate(namespace="n", key="k", value="v", expected_version=7)
    return Accept(drafts=(scene.incoming("fine"),), now=1, state=(update,))


def _bad_state(scene, begun):
    updates = (StateUpdate(namespace="n", key="k", value="v"), StateUpdate(namespace="n", key="l", value=Unspeakable()))
    return PutState(updates=updates, now=1)


def _bad_entry(scene, begun):
    return scene.wanting(key_of("new"), now=Unspeakable())


def _busy_delete(scene, begun):
    return Delete(lineage_id=begun.turn.lineage_id, now=1)


def _taken_title(scene, begun):
    other = scene.enter(key_of("other"))
    scene.run(Rename(lineage_id=other.lineage_id, title="plan", origin="user", now=1))
    return Rename(lineage_id=begun.turn.lineage_id, title="plan", origin="user", now=1)


FAILING = [
    _bad_append,
    _illegal_append,
    _huge_number,
    _bad_finish,
    _bad_accept,
    _conflicting_accept,
    _bad_state,
    _bad_entry,
    _busy_delete,
    _taken_title,
]


def everything(store, scene, begun):
    stats = store.stats()
    return scene.texts(begun.turn.lineage_id), stats.waiting, stats.lineages, stats.routes, store.leases()


@pytest.mark.parametrize("failing", FAILING, ids=lambda failing: failing.__name__.strip("_"))
def test_b02_a_write_that_fails_half_way_leaves_nothing_and_frees_the_lock(store, scene, tmp_path, failing):
    begun = scene.ask(scene.enter())
    operation = failing(scene, begun)
    before = everything(store, scene, begun)

    with pytest.raises((HermesError, TypeError, ValueError, OverflowError, AttributeError)):
        store.apply(operation)

    stranger = apsw.Connection(str(tmp_path / "home" / "state.db"))
    stranger.execute("BEGIN IMMEDIATE")
    stranger.execute("ROLLBACK")
    stranger.close()
    assert everything(store, scene, begun) == before
    assert store.state("n", "k", now=1) is None
    scene.finish(begun, saying("and it goes on"))
    assert scene.texts(begun.turn.lineage_id)[-1] == "and it goes on"


def test_b02_one_that_fails_does_not_take_its_neighbours_along(store, scene):
    begun = scene.ask(scene.enter())
    operations = [
        Accept(drafts=(scene.incoming(f"message {number}"),), now=1)
        if number != 5
        else PutState(updates=(StateUpdate(namespace="n", key="k", value="v", expected_version=3),), now=1)
        for number in range(10)
    ]

    futures = [store.submit(operation) for operation in operations]
    fates = [future.exception(PATIENCE_S) for future in futures]

    assert [isinstance(fate, HermesError) for fate in fates] == [number == 5 for number in range(10)]
    assert store.stats().waiting == 9
    assert scene.texts(begun.turn.lineage_id) == ["hello"]
