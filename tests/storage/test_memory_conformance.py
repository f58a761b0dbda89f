"""The in-memory store keeps every rule of the storage suite."""

from __future__ import annotations

import pytest

from hermes_core.storage.memory import MemoryStore
from hermes_hookspecs.testing.storage import RecordsSuite, StorageSuite


class InMemory:
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


class TestMemoryStore(InMemory, StorageSuite):
    pass


class TestMemoryRecords(InMemory, RecordsSuite):
    pass
