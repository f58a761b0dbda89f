"""The in-memory store: plain Python, obviously right, gone with its process.

It is the oracle of the conformance suite and the value ``memory`` of ``[storage] backend``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_core.storage.memory.store import MemoryBackend as MemoryBackend
    from hermes_core.storage.memory.store import MemoryStore as MemoryStore

__all__ = ["MemoryBackend", "MemoryStore"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hermes_core.storage.memory import store

    return getattr(store, name)
