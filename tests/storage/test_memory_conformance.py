"""The in-memory store keeps every rule of the storage suite."""

from __future__ import annotations

import pytest

from hermes_core.storage.memory import MemoryStore
from hermes_hookspecs.testing.storage import RecordsSuite, StorageSuite


class TestMemoryStore(StorageSuite):
    durable = False

    @pytest.fixture
    def store(self):
        store = MemoryStore()
        yield store
        store.close()

    @pytest.fixture
    def another_store(self):
        store = MemoryStore()
        yield store
        store.close()


class TestMemoryRecords(RecordsSuite):
    durable = TestMemoryStore.durable
    store = TestMemoryStore.store
    another_store = TestMemoryStore.another_store
