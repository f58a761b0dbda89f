"""What a conversation remembers of undo and retry, as it is stored: one entry of state, gone with its lineage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.commands.taking_back import Memory, Undone

if TYPE_CHECKING:
    from typing import TypedDict

    from hermes_core.commands.taking_back import Plan, Span
    from hermes_hookspecs.ids import InboxId, LineageId
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.state import StateUpdate

    class StoredUndone(TypedDict):
        """One undo in JSON."""

        span: list[int]
        holes: list[list[int]]
        shown: list[int] | None
        replaced: list[list[int]]
        turns: int

    class Stored(TypedDict):
        """The entry's value in JSON; ``by`` is the inbox row of the command that wrote it."""

        undone: list[StoredUndone]
        replaced: list[list[int]]
        by: int | None
        start: int
        turns: int


__all__ = ["NAMESPACE", "done_by", "memory_of", "remembering"]

NAMESPACE = "builtin.undo"
_MOST = 100
"""Undos, and retries, that are remembered; older ones stay hidden for good."""


def memory_of(reader: StoreReader, lineage_id: LineageId, now: int) -> Memory:
    """Return what a conversation remembers, nothing where it was never asked to take anything back."""
    value = _read(reader, lineage_id, now)
    if value is None:
        return Memory()
    undone, replaced = value["undone"], value["replaced"]
    return Memory(
        undone=tuple(_undone(one) for one in undone),
        replaced=tuple(_span(one) for one in replaced),
    )


def done_by(reader: StoreReader, lineage_id: LineageId, control_id: InboxId, now: int) -> tuple[int, int] | None:
    """Return the first row, and the number of turns, that a command's row was about; ``None``: a later one came."""
    value = _read(reader, lineage_id, now)
    if value is None or value["by"] != control_id:
        return None
    return value["start"], value["turns"]


def remembering(lineage_id: LineageId, plan: Plan, control_id: InboxId | None) -> tuple[StateUpdate, ...]:
    """Return the write with which a conversation remembers a plan."""
    from json import dumps

    import attrs

    from hermes_hookspecs.state import StateUpdate

    memory = plan.memory
    value = {
        "undone": [attrs.asdict(one) for one in memory.undone[-_MOST:]],
        "replaced": memory.replaced[-_MOST:],
        "by": control_id,
        "start": plan.start,
        "turns": plan.turns,
    }
    return (StateUpdate(namespace=NAMESPACE, key=lineage_id, value=dumps(value), lineage_id=lineage_id),)


def _read(reader: StoreReader, lineage_id: LineageId, now: int) -> Stored | None:
    entry = reader.state(NAMESPACE, lineage_id, now=now)
    if entry is None:
        return None
    from json import loads

    value: Stored = loads(entry.value)  # written by remembering() alone
    return value


def _undone(one: StoredUndone) -> Undone:
    return Undone(
        span=_span(one["span"]),
        holes=tuple(_span(each) for each in one["holes"]),
        shown=None if one["shown"] is None else _span(one["shown"]),
        replaced=tuple(_span(each) for each in one["replaced"]),
        turns=one["turns"],
    )


def _span(pair: list[int]) -> Span:
    first, last = pair
    return first, last
