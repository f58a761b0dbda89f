"""A real store on disk, the index on it, and short ways to fill both."""

from __future__ import annotations

import pytest

from hermes_core.storage.sqlite.backend import SqliteBackend
from hermes_fts5.config import Fts5Config
from hermes_fts5.source import Fts5Source
from hermes_hookspecs.ports.search import SearchQuery
from hermes_hookspecs.ports.store import StoreOptions
from hermes_hookspecs.testing.scene import ALL, Scene, key_of, saying, source_at

TELL = """
    INSERT INTO changes (kind, lineage_no, message_id, at) SELECT ?2, lineage_no, id, 0 FROM messages WHERE id = ?1
"""


@pytest.fixture
def path(tmp_path):
    return tmp_path / "state.db"


@pytest.fixture
def open_store(path):
    """Return a function that opens the store of the test; it is closed behind it."""
    opened = []

    def open_one(at=path):
        opened.append(SqliteBackend().open(StoreOptions(path=at, durability="normal")))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store):
    return open_store()


@pytest.fixture
def open_index():
    """Return a function that opens the index of a store; settings may be given."""

    def open_index(store, **settings):
        return Fts5Source(Fts5Config(**settings)).open(store)

    return open_index


@pytest.fixture
def index(store, open_index):
    return open_index(store)


@pytest.fixture
def scene(store):
    return Scene(store)


@pytest.fixture
def take_back():
    """Return a function that takes a row back as undo does; the change feed hears of it."""

    def take_back(store, message_id, *, hidden=True):
        def work(writer):
            writer.run("UPDATE messages SET hidden = ? WHERE id = ?", (int(hidden), message_id))
            writer.run(TELL, (message_id, "hide" if hidden else "show"))

        store.sqlite_access().apply(work)

    return take_back


@pytest.fixture
def redact():
    """Return a function that gives a row another text; the change feed hears of it."""

    def redact(store, message_id, text):
        def work(writer):
            writer.run("UPDATE messages SET content = ? WHERE id = ?", (text, message_id))
            writer.run(TELL, (message_id, "change"))

        store.sqlite_access().apply(work)

    return redact


@pytest.fixture
def say(scene):
    """Return a function that stores texts in a conversation of their own; gives its lineage and the rows' ids."""

    def say(chat, *texts, user="ou_1"):
        entry = scene.enter(key_of(chat), source_at(chat, user))
        begun = scene.begin(entry.lineage_id, scene.accept("", entry.session_key, lineage_id=entry.lineage_id))
        rows = scene.append(begun, *(saying(text) for text in texts))
        scene.finish(begun)
        return entry.lineage_id, rows

    return say


@pytest.fixture
def tell(scene):
    """Return a function that stores one text in a conversation of its own, at a time; gives the row's id."""

    def tell(chat, text, *, role="assistant", at=1):
        entry = scene.enter(key_of(chat), source_at(chat))
        begun = scene.begin(entry.lineage_id, scene.accept("", entry.session_key, lineage_id=entry.lineage_id))
        (row,) = scene.append(begun, saying(text, role, at))
        scene.finish(begun)
        return row

    return tell


@pytest.fixture
def found(index):
    """Return a function that gives the ids of the rows that a query finds."""

    def found(text, principal=ALL, *, of=None, **fields):
        named = {"text": text, "limit": 100, "budget_s": 30.0} | fields
        result = (of or index).search(SearchQuery(**named), principal)
        return [hit.message_id for hit in result.hits]

    return found


@pytest.fixture
def caught_up(index):
    """Return a function that indexes everything there is."""

    def caught_up(of=None):
        while (of or index).catch_up(budget_s=10.0):
            continue

    return caught_up
