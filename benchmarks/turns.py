"""The lease, and a whole turn with an agent that has nothing to say."""

from __future__ import annotations

import asyncio
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.appends import off_main
from benchmarks.measuring import OURS, RAW, Bounds, alternate, clocked, row, timing
from benchmarks.raw import Raw
from benchmarks.stage import HOLDER, NOW, enter, open_store, text
from hermes_core import open_app
from hermes_hookspecs.ids import LineageId, TurnId
from hermes_hookspecs.operations import Begin, Begun, Finish
from hermes_hookspecs.source import SessionSource
from hermes_hookspecs.turns import DONE, Fence

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from benchmarks.measuring import Row, Size, Timing
    from benchmarks.peer import Peer
    from hermes_core.storage.sqlite.store import SqliteStore
    from hermes_hookspecs.ports.agent import AgentEvent, TurnContext

__all__ = ["run"]

_LEASES, _TURNS = 150, 60
_TAKE = """
    UPDATE lineages SET lease_token = lease_token + 1, lease_holder = ?, lease_acquired_at = ?, lease_expires_at = ?
    WHERE id = 'Lone'
"""
_LINEAGE = """
    INSERT OR IGNORE INTO lineages (id, tip, owner, shared, platform, created_at, last_activity, written_at, source)
    VALUES ('Lone', 'Sone', 'person', 0, 'feishu', 1, 1, 1, '{}')
"""
_ACCEPT = """
    INSERT INTO inbox (id, session_key, lineage_id, kind, status, accepted_at, platform, account_id, source, text)
    VALUES (?, 'key', 'Lone', 'message', 'pending', ?, 'feishu', 'default', '{}', ?)
"""
_CLAIM = "UPDATE inbox SET status = 'claimed' WHERE id = ?"
_TURN = """
    INSERT INTO turns (no, id, lineage_id, session_id, token, platform, account_id, inbox_ids, started_at, outcome,
        attempt)
    VALUES (?, ?, 'Lone', 'Sone', 1, 'feishu', 'default', '1', ?, 'active', 1)
"""
_ROW = """
    INSERT INTO messages (lineage_no, session_id, turn_no, role, content, timestamp, inbox_id)
    VALUES (1, 'Sone', ?, 'user', ?, ?, ?)
"""
_SETTLE = "UPDATE inbox SET status = 'done', settled_at = ? WHERE id = ?"
_END = "UPDATE turns SET outcome = 'done', ended_at = ? WHERE no = ?"
_FREE = "UPDATE lineages SET lease_holder = NULL, version = version + 1 WHERE id = 'Lone'"


def run(size: Size, _peer: Peer | None) -> Iterator[Row]:
    """Yield the rows of the lease and of the turn; the original has neither as one thing."""
    yield from _lease(size)
    yield from _turn(size)


def _lease(size: Size) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        store, raw = open_store(folder), Raw(folder)
        lineage_id = enter(store, "one")
        raw.write((_LINEAGE, ()))
        turns = count(1)
        seen = alternate(
            size.rounds,
            {
                OURS: lambda: off_main(lambda: _take_and_give_back(store, lineage_id, turns)),
                RAW: lambda: off_main(
                    lambda: clocked(lambda _: raw.connection.execute(_TAKE, ("somebody", NOW, NOW)).fetchall(), _LEASES)
                ),
            },
        )
        yield row("lease acquire (begin) against one UPDATE", seen, "p50", Bounds(1.3, 1.05))
        raw.close()
        store.close()


def _take_and_give_back(store: SqliteStore, lineage_id: LineageId, turns: Iterator[int]) -> Timing:
    """Only the taking is timed: a begin that claims nothing, which still writes its turn."""
    clock = time.perf_counter_ns
    taken = []
    for _ in range(_LEASES):
        turn_id = TurnId(f"T{next(turns)}")
        before = clock()
        begun = store.apply(
            Begin(lineage_id=lineage_id, turn_id=turn_id, holder=HOLDER, now=NOW, ttl_ms=30_000, maintenance=True)
        )
        taken.append(clock() - before)
        if not isinstance(begun, Begun):
            raise TypeError(f"the lease was not free: {begun!r}")
        store.apply(Finish(fence=Fence(lineage_id, turn_id, begun.lease.token), outcome=DONE, now=NOW))
    return timing(taken, sum(taken))


class _Silent:
    """An agent without an answer."""

    name = "silent"
    model: str | None = None

    async def run(self, turn: TurnContext) -> AsyncIterator[AgentEvent]:
        """Yield nothing."""
        nothing: tuple[AgentEvent, ...] = ()
        for event in nothing:
            yield event


def _turn(size: Size) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder, open_app(Path(folder) / "home", plugins=False, environ={}) as app:
        raw = Raw(folder)
        raw.write((_LINEAGE, ()))
        turns = count(1)
        source = SessionSource(platform="api_server", chat_id="one", user_id="somebody")
        agent = _Silent()

        async def ours() -> Timing:
            # A new session each round: a turn loads what was said before, and rounds are to be alike.
            entry = app.get_or_create_session(source, force_new=True)
            clock = time.perf_counter_ns
            taken = []
            for number in range(_TURNS):
                before = clock()
                await app.ask_async(text(number), source, entry=entry, agent=agent)
                taken.append(clock() - before)
            return timing(taken, sum(taken))

        seen = alternate(
            size.rounds,
            {
                OURS: lambda: asyncio.run(ours()),
                RAW: lambda: off_main(lambda: clocked(lambda number: _three(raw, next(turns), number), _TURNS)),
            },
        )
        yield row("a whole turn against three transactions", seen, "p50")
        raw.close()


def _three(raw: Raw, turn: int, number: int) -> None:
    words = text(number)
    raw.write((_ACCEPT, (turn, NOW, words)))
    raw.write(
        (_TAKE, ("somebody", NOW, NOW)),
        (_TURN, (turn, f"T{turn}", NOW)),
        (_CLAIM, (turn,)),
        (_ROW, (turn, words, NOW, turn)),
    )
    raw.write((_SETTLE, (NOW, turn)), (_END, (NOW, turn)), (_FREE, ()))
