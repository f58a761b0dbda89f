"""What was seen lately, and no more of it than fits."""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["Recent"]

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """A mapping that forgets what was put in longest ago.

    :param most: entries that it holds.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._entries: dict[str, Value] = {}

    def put(self, key: str, value: Value) -> None:
        """Remember something; as if for the first time."""
        self._entries.pop(key, None)
        self._entries[key] = value
        while len(self._entries) > self._most:
            del self._entries[next(iter(self._entries))]

    def get(self, key: str) -> Value | None:
        """Return what was put under a key, ``None`` where that is forgotten."""
        return self._entries.get(key)

    def pop(self, key: str) -> Value | None:
        """Forget what was put under a key, and return it."""
        return self._entries.pop(key, None)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)
