"""The index finds what reading everything finds: the suite of the kit."""

from __future__ import annotations

import pytest

from hermes_core.storage.sqlite.backend import SqliteBackend
from hermes_fts5.config import Fts5Config
from hermes_fts5.source import Fts5Source
from hermes_hookspecs.ports.store import StoreOptions
from hermes_hookspecs.testing.search import SearchIndexSuite


class TestFts5(SearchIndexSuite):
    """The index on a store on disk."""

    @pytest.fixture
    def store(self, tmp_path):
        store = SqliteBackend().open(StoreOptions(path=tmp_path / "state.db", durability="normal"))
        yield store
        store.close()

    @pytest.fixture
    def open_index(self):
        return Fts5Source(Fts5Config()).open

    @pytest.fixture
    def hide(self, take_back):
        return take_back
