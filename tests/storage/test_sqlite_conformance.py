"""The SQLite store keeps the contract."""

from __future__ import annotations

import pytest

from hermes_core.storage.sqlite.backend import SqliteBackend
from hermes_hookspecs.ports.store import StoreOptions
from hermes_hookspecs.testing.storage import RecordsSuite, StorageSuite


class OnDisk:
    durable = True

    @pytest.fixture
    def opened(self):
        stores = []
        yield stores
        for store in stores:
            store.close()

    @pytest.fixture
    def open_at(self, tmp_path, opened):
        def open_store(name):
            opened.append(SqliteBackend().open(StoreOptions(path=tmp_path / name / "state.db")))
            return opened[-1]

        return open_store

    @pytest.fixture
    def store(self, open_at):
        return open_at("home")

    @pytest.fixture
    def reopen(self, store, open_at):
        def close_and_open():
            store.close()
            return open_at("home")

        return close_and_open

    @pytest.fixture
    def another_store(self, open_at):
        return open_at("elsewhere")


class TestSqliteStore(OnDisk, StorageSuite):
    pass


class TestSqliteRecords(OnDisk, RecordsSuite):
    pass
