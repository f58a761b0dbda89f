"""Bytes on disk for each message of 218 bytes, a hundred of them in each session."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measuring import Bounds, fact
from benchmarks.raw import APPEND, Raw
from benchmarks.stage import NOW, fill, open_store, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.measuring import Row, Size
    from benchmarks.peer import Peer

__all__ = ["run"]

_IN_A_SESSION = 100
_BYTES = 218
_PEER_SESSIONS = 200


def run(size: Size, peer: Peer | None) -> Iterator[Row]:
    """Yield the one row; plain SQLite has the same table and its indexes, and nothing else."""
    sessions = size.messages_on_disk // _IN_A_SESSION
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(folder, "normal")
        for number in range(sessions):
            fill(store, f"d{number}", _IN_A_SESSION, size=_BYTES)
        store.close()
        ours = (Path(folder) / "state.db").stat().st_size
        raw = Raw(folder, "normal")
        for lineage_no in range(1, sessions + 1):
            raw.write(
                *(
                    (APPEND, (lineage_no, f"Sd{lineage_no}", lineage_no, text(number, _BYTES), NOW))
                    for number in range(_IN_A_SESSION)
                )
            )
        raw.close()
        plain = raw.path.stat().st_size
    theirs = None
    if peer is not None:
        count = _PEER_SESSIONS
        peer.ask("fill", name="disk", sessions={f"d{number}": _IN_A_SESSION for number in range(count)}, size=_BYTES)
        theirs = float(str(peer.ask("size"))) / (count * _IN_A_SESSION)
    messages = sessions * _IN_A_SESSION
    yield fact(
        f"bytes for each of {messages // 1000}k messages",
        ours / messages,
        plain / messages,
        unit="B",
        peer=theirs,
        peer_bounds=Bounds(3, 6),
    )
