"""The floor: the same tables and indexes, the same durability, written by plain statements without any promise.

No trigger, no fence, no counters, no change feed, no other process in mind: what SQLite itself takes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from benchmarks.stage import NOW
from hermes_core.storage.sqlite.schema import FIRST

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["APPEND", "Raw"]

APPEND = """
    INSERT INTO messages (lineage_no, session_id, turn_no, role, content, timestamp, sent, tool_calls, tool_call_id,
        tool_name, token_count, finish_reason, reasoning, kind, inbox_id, attachments)
    VALUES (?, ?, ?, 'assistant', ?, ?, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)
"""


class Raw:
    """One apsw connection to a file of its own. One thread at a time.

    :param folder: where the file is, or is made.
    :param durability: ``full`` or ``normal``.
    :param busy_timeout_s: SQLite's own patience.
    """

    def __init__(self, folder: str | Path, durability: str = "full", busy_timeout_s: float = 20.0) -> None:
        self.path = Path(folder) / "raw.db"
        is_new = not self.path.exists()
        self.connection = apsw.Connection(str(self.path))
        self.connection.set_busy_timeout(int(busy_timeout_s * 1000))
        self.connection.execute(f"PRAGMA journal_mode = WAL; PRAGMA synchronous = {durability}").fetchall()
        if is_new:
            # fetchall, because apsw runs a text of several statements only up to the first row
            self.connection.execute(f"BEGIN; {FIRST}; DROP TRIGGER messages_inserted; COMMIT").fetchall()

    def write(self, *statements: tuple[str, Sequence[object]]) -> None:
        """One transaction."""
        execute = self.connection.execute
        execute("BEGIN IMMEDIATE")
        for sql, bindings in statements:
            execute(sql, bindings)
        execute("COMMIT")

    def append(self, lineage_no: int, words: str) -> None:
        """Store one message in a transaction of its own."""
        self.write((APPEND, (lineage_no, f"S{lineage_no}", lineage_no, words, NOW)))

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()
