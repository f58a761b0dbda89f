"""A scene on either store, and search over it."""

from __future__ import annotations

import pytest

from hermes_core.search.scan import ScanIndex
from hermes_core.search.service import SearchRequest, SessionSearch
from hermes_core.storage.memory import MemoryStore
from hermes_core.storage.sqlite.backend import SqliteBackend
from hermes_hookspecs.ports.store import StoreOptions
from hermes_hookspecs.testing.scene import ALL, Scene


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path):
    if request.param == "memory":
        store = MemoryStore()
    else:
        store = SqliteBackend().open(StoreOptions(path=tmp_path / "state.db", durability="normal"))
    yield store
    store.close()


@pytest.fixture
def scene(store):
    return Scene(store)


@pytest.fixture
def ask(store):
    """Return a function that answers a request: fields of :class:`SearchRequest`, and ``principal``."""

    def ask(query="", *, principal=ALL, index=None, **fields):
        search = SessionSearch(store, ScanIndex(store) if index is None else index, principal)
        return search.answer(SearchRequest(query=query, **fields))

    return ask
