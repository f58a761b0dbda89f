"""The scan keeps every rule of the search suite, on every kind of store."""

from __future__ import annotations

import apsw
import attrs
import pytest

from hermes_core.search.scan import ScanIndex
from hermes_core.storage.memory import MemoryStore
from hermes_core.storage.sqlite.backend import SqliteBackend
from hermes_hookspecs.ports.store import StoreOptions
from hermes_hookspecs.testing.search import SearchIndexSuite


class TestScanOfMemory(SearchIndexSuite):
    @pytest.fixture
    def store(self):
        store = MemoryStore()
        yield store
        store.close()

    @pytest.fixture
    def open_index(self):
        return ScanIndex

    @pytest.fixture
    def hide(self):
        def hide(store, message_id):
            transcripts = store._tables.transcripts
            for lineage_id, rows in transcripts.items():
                transcripts[lineage_id] = tuple(
                    attrs.evolve(row, hidden=True) if row.id == message_id else row for row in rows
                )

        return hide


class TestScanOfSqlite(SearchIndexSuite):
    @pytest.fixture
    def store(self, tmp_path):
        store = SqliteBackend().open(StoreOptions(path=tmp_path / "state.db", durability="normal"))
        yield store
        store.close()

    @pytest.fixture
    def open_index(self):
        return ScanIndex

    @pytest.fixture
    def hide(self, tmp_path):
        def hide(store, message_id):
            connection = apsw.Connection(str(tmp_path / "state.db"))
            connection.set_busy_timeout(5_000)
            connection.execute("UPDATE messages SET hidden = 1 WHERE id = ?", (message_id,))
            connection.close()

        return hide
