"""The SQLite store and the in-memory store cannot be told apart: random operations, every read after each step."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hermes_core.storage.memory import MemoryStore
from hermes_core.storage.sqlite.backend import SqliteBackend
from hermes_hookspecs.ports.store import StoreOptions
from hermes_hookspecs.testing.machine import StoreMachine, machine_settings


class SqliteAgainstMemory(StoreMachine):
    def new_store(self):
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "state.db"
        return SqliteBackend().open(StoreOptions(path=path, durability="normal"))

    def new_oracle(self):
        return MemoryStore()

    def teardown(self):
        super().teardown()
        self.folder.cleanup()


class TestSqliteAgainstMemory(SqliteAgainstMemory.TestCase):
    settings = machine_settings(examples=20, steps=30)
