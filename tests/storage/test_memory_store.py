"""What is the in-memory store's own: whole writes, views that stand still, nothing shared between two opens."""

from __future__ import annotations

import threading
from pathlib import Path

import attrs
import pytest

from hermes_core.storage.memory import MemoryBackend, MemoryStore
from hermes_core.storage.memory.store import _handlers
from hermes_core.storage.memory.text import clean
from hermes_hookspecs import operations
from hermes_hookspecs.errors import StoreStopped
from hermes_hookspecs.messages import MessageDraft, ToolCall
from hermes_hookspecs.operations import Operation
from hermes_hookspecs.ports.store import StoreOptions
from hermes_hookspecs.testing.scene import ALL, Scene

PATIENCE_S = 30


@pytest.fixture
def store():
    store = MemoryStore()
    yield store
    store.close()


def test_every_operation_of_the_contract_is_handled():
    found = [getattr(operations, name) for name in operations.__all__]
    kinds = {kind for kind in found if isinstance(kind, type) and issubclass(kind, Operation)} - {Operation}

    assert set(_handlers()) == kinds


def test_every_open_makes_a_store_of_its_own():
    options = StoreOptions(path=Path("ignored.db"))
    first, second = MemoryBackend().open(options), MemoryBackend().open(options)

    Scene(first).enter()

    assert second.stats().lineages == 0
    assert first.changes(None)[1] != second.changes(None)[1]


def test_a_view_stands_still_while_others_write(store):
    scene = Scene(store)
    entry = scene.enter()
    written = threading.Event()
    reading = threading.Event()

    def look(reader):
        before = reader.messages(entry.lineage_id, ALL)
        reading.set()
        assert written.wait(PATIENCE_S)
        return before, reader.messages(entry.lineage_id, ALL), reader.lineage(entry.lineage_id, ALL)

    future = store.submit_read(look)
    assert reading.wait(PATIENCE_S)
    scene.talk(entry)
    written.set()
    before, after, lineage = future.result(PATIENCE_S)

    assert before == after == ()
    assert lineage.message_count == 0
    assert len(scene.rows(entry.lineage_id)) == 2


def test_a_handler_that_breaks_leaves_nothing_behind(store):
    scene = Scene(store)
    entry = scene.enter()
    mark, tables = store.change_mark(), store._tables

    def broken(tables, operation):
        tables.lineages.clear()
        tables.feed.append("half")
        raise ZeroDivisionError

    store._run = dict(store._run) | {operations.SetFlags: broken}
    with pytest.raises(ZeroDivisionError):
        scene.run(operations.SetFlags(lineage_id=entry.lineage_id, now=1, pinned=True))

    assert store._tables is tables
    assert store.change_mark() == mark
    assert scene.lineage(entry.lineage_id).pinned is False


def test_a_closed_store_refuses_reads_on_its_threads_and_writes(store):
    operation = Scene(store).wanting()
    store.close()

    assert isinstance(store.submit(operation).exception(PATIENCE_S), StoreStopped)
    with pytest.raises(StoreStopped):
        store.submit_read(lambda reader: reader.stats())


def test_what_is_clean_is_not_copied():
    draft = MessageDraft(role="user", content="日志", timestamp=1, tool_calls=(ToolCall(id="a", name="b"),))

    assert clean(draft) is draft


def test_cleaning_reaches_every_text_of_a_value():
    bad, good = "a\udc80", "a\ufffd"
    draft = MessageDraft(role="user", content="fine", timestamp=1, tool_calls=(ToolCall(id=bad, name="b"),))

    cleaned = clean((draft, frozenset({bad})))

    assert cleaned == (attrs.evolve(draft, tool_calls=(ToolCall(id=good, name="b"),)), frozenset({good}))
