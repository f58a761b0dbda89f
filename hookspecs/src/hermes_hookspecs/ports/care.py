"""Examining, repairing and copying a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["Finding", "Janitor", "StoreCare", "StoreHealth"]


@attrs.frozen(kw_only=True)
class Finding:
    """Something that is not as it should be.

    Attributes:
        kind: one word or two with a hyphen, the same for the same kind of fault: ``dangling-parent``, ``stuck-turn``.
        subject: id of what it is about. text: one line for people: what, and what to do.
        fixable: a repair puts it right. severity: ``note``, ``warning`` or ``error``.
    """

    kind: str
    subject: str
    text: str
    fixable: bool = False
    severity: str = "warning"


@attrs.frozen(kw_only=True)
class StoreHealth:
    """Sizes in bytes and pages, for people; ``None`` where a backend has no such thing.

    Attributes:
        size: of the data. wal_size: of the write-ahead log. free_pages, pages: of the file.
        journal_mode: as it is now. schema_version: of the file.
    """

    size: int
    wal_size: int | None = None
    pages: int | None = None
    free_pages: int | None = None
    journal_mode: str | None = None
    schema_version: int | None = None


class Janitor(Protocol):
    """Does chores of derived data in a thread of its own, while its process is the one that was elected for it."""

    def start(self) -> None:
        """Begin; a second call does nothing."""
        ...

    def close(self) -> None:
        """End the thread and let another process be elected; before the store is closed. Idempotent."""
        ...


class StoreCare(Protocol):
    """What a durable store can do for its own health. Every method blocks."""

    def health(self) -> StoreHealth:
        """Return sizes and modes; quick."""
        ...

    def integrity(self) -> Sequence[str]:
        """Return what is structurally wrong with the file, nothing when it is sound; reads all of it."""
        ...

    def findings(self) -> Sequence[Finding]:
        """Return references that lead nowhere, and rows whose states contradict each other; changes nothing."""
        ...

    def repair(self) -> Sequence[Finding]:
        """Put right what :meth:`findings` calls fixable, in one transaction; return what was repaired.

        Idempotent. No message's text is ever changed; rows are reconnected or closed, not rewritten.
        """
        ...

    def backup(self, target: Path, *, progress: Callable[[int, int], None] | None = None) -> int:
        """Copy the store, as it is at one moment, to a new file while others go on writing.

        :param progress: told pages done and pages in all.
        :returns: size of the copy in bytes.
        :raises StorageError: the target exists, or the copy failed; nothing half done is left.
        """
        ...
