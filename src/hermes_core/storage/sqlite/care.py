"""The health of a SQLite store: sizes, faults, their repair, and copies."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite import files
from hermes_core.storage.sqlite.copying import copy_database
from hermes_core.storage.sqlite.faults import RULES
from hermes_core.storage.sqlite.gate import gate_files
from hermes_core.storage.sqlite.locks import describe_holders
from hermes_core.storage.sqlite.queries.stats import size_of
from hermes_core.storage.sqlite.rows import read_entrance
from hermes_hookspecs.clock import SystemClock
from hermes_hookspecs.errors import StoreRefused
from hermes_hookspecs.ports.care import Finding, StoreHealth
from hermes_hookspecs.source import Entrance

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from hermes_core.storage.sqlite.database import Database
    from hermes_core.storage.sqlite.transaction import Reader, SQLiteValue, Transaction
    from hermes_hookspecs.clock import Clock

__all__ = ["SqliteCare"]

WAITING = """
    SELECT platform, account_id, count(*) FROM inbox
    WHERE status = 'pending' AND kind <> 'control' AND waiter IS NULL GROUP BY platform, account_id
"""
SERVED = "SELECT DISTINCT entrance FROM entrance_servers"
PATIENCE_S = 20.0
"""How long a copy waits for another process that recovers the log."""
REPAIR_S = 600.0
"""How long a repair may take; it is one transaction, and everybody waits for it."""


class SqliteCare:
    """Examines, repairs and copies the file of an open database (:class:`~hermes_hookspecs.ports.care.StoreCare`).

    :param database: stays its owner's. clock: ``None`` for the machine's.
    """

    def __init__(self, database: Database, *, clock: Clock | None = None) -> None:
        self._database = database
        self._clock = SystemClock() if clock is None else clock

    def health(self) -> StoreHealth:
        """Return sizes and modes; quick."""
        path = self._database.path
        size, with_log = _file_size(path), size_of(path)
        with self._database.read() as reader:
            return StoreHealth(
                size=size,
                wal_size=with_log - size,
                pages=_number(reader, "PRAGMA page_count"),
                free_pages=_number(reader, "PRAGMA freelist_count"),
                journal_mode=str(_one(reader, "PRAGMA journal_mode")),
                schema_version=_number(reader, "PRAGMA user_version"),
            )

    def integrity(self) -> list[str]:
        """Return what SQLite finds wrong with the file, nothing when it is sound; reads all of it."""
        return self._database.integrity()

    def findings(self) -> list[Finding]:
        """Return faults of the rows, of the place, and who is in the way; changes nothing. Reads every row."""
        first = self._holder()
        with self._database.read() as reader:
            found = [finding for rule in RULES for _, finding in rule.find(reader)]
            found += _unserved(reader)
        found += _place(self._database.path)
        # Every writer holds the lock for a moment; only who still does is in the way.
        if first and self._holder() == first:
            text = f"{first} holds the write lock; whoever wants to write waits for it"
            found.append(Finding(kind="write-lock", subject=first, text=text, severity="note"))
        return found

    def _holder(self) -> str:
        path = self._database.path
        return describe_holders(f"{path}-shm", gate_files(path)[0])

    def repair(self) -> list[Finding]:
        """Put right what :meth:`findings` calls fixable, in one transaction; return what was repaired.

        :raises StoreBusy: others kept the store. :raises StoreFull: no space; nothing was changed.
        """
        with self._database.read() as reader:
            found = {rule.kind: rule.find(reader) for rule in RULES if rule.mend is not None}
        if not any(found.values()):
            return []
        heavy = {rule.kind: tuple(subject for subject, _ in found.get(rule.kind, ())) for rule in RULES if rule.heavy}
        now = self._clock.now()
        return self._database.apply(lambda tx: _mend_all(tx, heavy, now), timeout_s=REPAIR_S)

    def backup(self, target: Path, *, progress: Callable[[int, int], None] | None = None) -> int:
        """Copy the store, as it is at one moment, to a new file while others go on writing; return its size.

        :raises StorageError: the target exists, or the copy failed; nothing half done is left.
        """
        with self._database.read():
            pass  # a store that is closed, or of the process that this one was forked from, is refused here
        return copy_database(self._database.path, target, busy_timeout_s=PATIENCE_S, progress=progress)


def _mend_all(tx: Transaction, heavy: dict[str, tuple[SQLiteValue, ...]], now: int) -> list[Finding]:
    """Mend rule by rule; what was found before the transaction is looked at again inside it."""
    from attrs import evolve

    mended = []
    for rule in RULES:
        if rule.mend is None:
            continue
        known = heavy.get(rule.kind)
        found = rule.find(tx) if known is None else [one for subject in known for one in rule.find(tx, subject)]
        for subject, finding in found:
            how = rule.mend(tx, subject, now)
            mended.append(finding if how is None else evolve(finding, text=f"{finding.text}: {how}"))
    return mended


def _unserved(reader: Reader) -> Iterator[Finding]:
    """Yield the entrances whose messages wait and that no process has said to serve."""
    served = {(one.platform, one.account_id) for one in (read_entrance(str(row[0])) for row in reader.all(SERVED))}
    rows = cast("list[tuple[str, str, int]]", reader.all(WAITING))  # its columns
    for platform, account, count in sorted(rows):
        if (platform, account) not in served:
            entrance = Entrance(platform, account)
            many = "1 message waits" if count == 1 else f"{count} messages wait"
            yield Finding(
                kind="unserved",
                subject=str(entrance),
                text=f"{many} at {entrance}, and no process serves it; start one",
            )


def _place(path: str) -> Iterator[Finding]:
    """Yield that the file stands where it is not safe."""
    try:
        files.check_file_system(path)
    except StoreRefused as error:
        yield Finding(kind="file-system", subject=path, text=str(error), severity="error")


def _file_size(path: str) -> int:
    return os.stat(path).st_size


def _one(reader: Reader, sql: str) -> SQLiteValue:
    row = reader.one(sql)
    return None if row is None else row[0]


def _number(reader: Reader, sql: str) -> int:
    return cast("int", _one(reader, sql))  # these pragmas answer an integer, always
