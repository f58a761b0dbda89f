"""The toy store and the core's in-memory store cannot be told apart."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hermes_toy_store.backend import ToyBackend

from hermes_hookspecs.ports.store import StoreOptions
from hermes_hookspecs.testing.machine import StoreMachine, machine_settings

memory = pytest.importorskip("hermes_core.storage.memory", reason="the oracle is the core's in-memory store")


class ToyAgainstMemory(StoreMachine):
    knows_records = False

    def new_store(self):
        self.folder = tempfile.TemporaryDirectory()
        return ToyBackend().open(StoreOptions(path=Path(self.folder.name) / "state.db", durability="normal"))

    def new_oracle(self):
        return memory.MemoryStore()

    def teardown(self):
        super().teardown()
        self.folder.cleanup()


class TestToyAgainstMemory(ToyAgainstMemory.TestCase):
    settings = machine_settings(examples=6, steps=25)
