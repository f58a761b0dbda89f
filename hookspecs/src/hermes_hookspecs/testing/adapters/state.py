"""What an adapter remembers, kept in memory as a store would keep it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hermes_hookspecs.errors import Conflict
from hermes_hookspecs.state import StateEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.state import StateUpdate

__all__ = ["MemoryState"]


class MemoryState:
    """A :class:`~hermes_hookspecs.ports.platform.StateReader` that takes updates, all of a call or none.

    :param namespace: the platform's name: updates of any other are refused. Its accounts share it, as in a store.
    """

    def __init__(self, namespace: str, clock: Clock) -> None:
        self._namespace = namespace
        self._clock = clock
        self._entries: dict[str, StateEntry] = {}

    def get(self, key: str) -> StateEntry | None:
        """Return one entry, ``None`` where there is none or it has expired."""
        entry = self._entries.get(key)
        return entry if entry is not None and self._lives(entry) else None

    def list(self, prefix: str = "") -> Sequence[StateEntry]:
        """Return the entries whose keys begin with ``prefix``, sorted by key."""
        entries = self._entries.copy()
        return [entries[key] for key in sorted(entries) if key.startswith(prefix) and self._lives(entries[key])]

    def take(self, updates: Iterable[StateUpdate]) -> None:
        """Write updates.

        :raises ValueError: one is of another namespace, or its value is no JSON; nothing was written.
        :raises Conflict: an entry is not of the version that its update expects; nothing was written.
        """
        entries = self._entries.copy()
        for update in updates:
            if update.namespace != self._namespace:
                raise ValueError(f"state of {update.namespace!r} is written by {self._namespace!r}")
            before = entries.get(update.key)
            version = before.version if before is not None and self._lives(before) else 0
            if update.expected_version is not None and update.expected_version != version:
                raise Conflict(f"{update.key!r} is of version {version}, not {update.expected_version}")
            if update.value is None:
                entries.pop(update.key, None)
                continue
            json.loads(update.value)
            entries[update.key] = StateEntry(
                namespace=update.namespace,
                key=update.key,
                value=update.value,
                version=version + 1,
                updated_at=self._clock.now(),
                person=update.person,
                lineage_id=update.lineage_id,
                expires_at=update.expires_at,
            )
        self._entries = entries

    def _lives(self, entry: StateEntry) -> bool:
        return entry.expires_at is None or entry.expires_at > self._clock.now()
