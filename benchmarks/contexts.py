"""Resuming behind many compressions: what a turn reads does not grow with what was said before the last of them."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

from benchmarks.measuring import OURS, RAW, Bounds, alternate, clocked, row
from benchmarks.stage import ALL, NOW, answer, begin_turn, enter, finish, open_store, text, wanted
from hermes_core.context.compression import load_context
from hermes_core.context.window import make_window
from hermes_hookspecs.ids import LineageId, SessionId
from hermes_hookspecs.messages import ASSISTANT, KIND_SUMMARY, SYSTEM, TOOL, MessageDraft, ToolCall
from hermes_hookspecs.operations import Append, Compress

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.measuring import Row, Size
    from benchmarks.peer import Peer
    from hermes_core.storage.sqlite.store import SqliteStore
    from hermes_hookspecs.turns import Fence

__all__ = ["run"]

_COMPRESSIONS, _TURNS_BETWEEN, _KEPT_TURNS = 50, 50, 10
_CALLS = 3
"""Parallel calls of a turn, which so has eight rows: 50 times 50 turns are 20 000."""
_SUMMARY = "## Goals\n" + "\n".join(f"- {text(number)}" for number in range(20))


def run(size: Size, _peer: Peer | None) -> Iterator[Row]:
    """Yield what a turn of a long lineage loads, against one of the same size that is all there is."""
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(folder, "normal")
        for _ in range(_COMPRESSIONS):
            _talk(store, "long", _TURNS_BETWEEN)
            _compress(store, "long")
        _talk(store, "short", 1)
        _compress(store, "short")
        _talk(store, "short", _KEPT_TURNS)
        seen = alternate(
            size.rounds,
            {
                OURS: lambda: clocked(lambda _: _resume(store, "long"), 40),
                RAW: lambda: clocked(lambda _: _resume(store, "short"), 40),
            },
        )
        yield row(
            "resume of a tip behind 20k messages and 50 compressions, against one behind 8 and 1",
            seen,
            "p50",
            Bounds(1.5, 1.2),
            unit="ms",
        )
        whole = alternate(
            size.rounds,
            {
                OURS: lambda: clocked(lambda _: _resume(store, "long"), 5),
                RAW: lambda: clocked(lambda _: store.messages(LineageId("Llong"), ALL), 1),
            },
        )
        yield row("the same, against loading all of it", whole, "p50", unit="ms")
        store.close()


def _resume(store: SqliteStore, name: str) -> None:
    """Do what the next turn of a conversation does before its agent begins."""
    route = store.route(wanted(name).key)
    lineage = None if route is None else store.lineage(route.lineage_id, ALL)
    tip = None if lineage is None else store.session(lineage.tip, ALL)
    if tip is None or len(make_window(tip, load_context(store, tip).rows).messages) < _KEPT_TURNS:
        raise ValueError("the tip has no context")


def _talk(store: SqliteStore, name: str, turns: int) -> None:
    enter(store, name)
    lineage = store.lineage(LineageId(f"L{name}"), ALL)
    first = 0 if lineage is None else lineage.turn_count
    for turn in range(first, first + turns):
        fence = begin_turn(store, name, turn)
        calls = tuple(ToolCall(id=f"c{number}", name="look", arguments="{}") for number in range(_CALLS))
        asked = MessageDraft(role=ASSISTANT, content="", tool_calls=calls, timestamp=NOW)
        results = [
            MessageDraft(role=TOOL, content=text(turn), tool_call_id=call.id, tool_name="look", timestamp=NOW)
            for call in calls
        ]
        drafts = (asked, *results, answer(text(turn)), answer(text(turn + 1)), answer(text(turn + 2)))
        store.apply(Append(fence=fence, drafts=drafts, now=NOW))
        finish(store, fence)


def _compress(store: SqliteStore, name: str) -> None:
    """Compress in a turn of its own; the last turns stay."""
    lineage = store.lineage(LineageId(f"L{name}"), ALL)
    if lineage is None:
        raise ValueError(name)
    fence: Fence = begin_turn(store, name, lineage.turn_count)
    rows = store.last_messages(lineage.id, ALL, count=8 * _KEPT_TURNS)
    operation = Compress(
        fence=fence,
        expected=lineage.tip,
        session_id=SessionId(f"{lineage.tip}x"),
        kept_from=next(one.id for one in rows if one.role == "user"),
        now=NOW,
        summary=MessageDraft(role=SYSTEM, content=_SUMMARY, kind=KIND_SUMMARY, timestamp=NOW),
        finish=True,
    )
    store.apply(operation)
