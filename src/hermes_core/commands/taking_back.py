"""Which rows an undo, a redo or a retry is about. Pure: rows and memory in, a plan and the new memory out.

The memory of a conversation has two parts. *undone*: what each undo took, the newest last; it counts as long as nothing
stands behind it. *replaced*: what retries have hidden; it comes back when the turn in its place is taken back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.messages import KIND_SUMMARY, USER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.messages import Message

    Span = tuple[int, int]

__all__ = ["Memory", "Plan", "Undone", "plan_redo", "plan_retry", "plan_undo", "turn_starts"]


@attrs.frozen(kw_only=True)
class Undone:
    """What one undo took: the rows of ``span`` but for ``holes``, which were hidden before.

    Attributes:
        shown: what came back in its place, ``None`` for nothing. replaced: what retries had hidden there. turns: count.
    """

    span: Span
    holes: tuple[Span, ...] = ()
    shown: Span | None = None
    replaced: tuple[Span, ...] = ()
    turns: int = 1


@attrs.frozen(kw_only=True)
class Memory:
    """What is known of rows that are hidden."""

    undone: tuple[Undone, ...] = ()
    replaced: tuple[Span, ...] = ()


@attrs.frozen(kw_only=True)
class Plan:
    """What is to be changed: rows of ``span`` are hidden, or with ``show`` shown; those of ``swap`` the other way.

    Attributes:
        start: the first row of the first turn that it is about.
    """

    span: Span
    swap: tuple[Span, ...]
    show: bool
    turns: int
    start: int
    memory: Memory


def turn_starts(rows: Sequence[Message]) -> list[int]:
    """Return the places at which turns begin among rows that are shown: a person's message behind another turn's row.

    A message that was put into a running turn, and a retry after a crash, begin none.
    """
    starts = []
    before: Message | None = None
    for place, row in enumerate(rows):
        if row.kind == KIND_SUMMARY:
            continue
        if row.role == USER and not row.kind and (before is None or _is_elsewhere(before, row)):
            starts.append(place)
        before = row
    return starts


def _is_elsewhere(before: Message, row: Message) -> bool:
    """Return whether a row is of another turn than the one before it; without turns, whether the role changes."""
    return before.role != USER if before.turn_id is None and row.turn_id is None else before.turn_id != row.turn_id


def plan_undo(rows: Sequence[Message], memory: Memory, turns: int) -> Plan | None:
    """Return how the last turns are taken back, ``None`` where there are none.

    :param rows: of the context, hidden ones too, oldest first.
    """
    shown = _shown(rows)
    starts, replaced = turn_starts(shown), list(memory.replaced)
    first: int | None = None
    back: Span | None = None
    count, removed = 0, []
    while count < turns and (back is not None or starts):
        if back is not None:
            edge = back[0]
        else:
            place = starts.pop()
            first = edge = shown[place].id
        before = max((row.id for row in shown if row.id < (first or 0)), default=0)
        back = next((span for span in reversed(replaced) if before < span[0] and span[1] < edge), None)
        if back is not None:
            replaced.remove(back)
            removed.append(back)
        count += 1
    if first is None:
        return None
    span = (first, shown[-1].id)
    taken = Undone(span=span, holes=_hidden_in(rows, span), shown=back, replaced=tuple(reversed(removed)), turns=count)
    undone = (*_still_undone(shown, memory), taken)
    swap = () if back is None else (back,)
    kept = Memory(undone=undone, replaced=tuple(replaced))
    return Plan(span=span, swap=swap, show=False, turns=count, start=first, memory=kept)


def plan_redo(rows: Sequence[Message], memory: Memory) -> Plan | None:
    """Return how the last undo is taken back, ``None`` where there was none or something was said since."""
    undone = _still_undone(_shown(rows), memory)
    if not undone:
        return None
    *others, last = undone
    swap = (*last.holes, *(() if last.shown is None else (last.shown,)))
    replaced = tuple(sorted((*memory.replaced, *last.replaced)))
    kept = Memory(undone=tuple(others), replaced=replaced)
    return Plan(span=last.span, swap=swap, show=True, turns=last.turns, start=last.span[0], memory=kept)


def plan_retry(rows: Sequence[Message], memory: Memory) -> Plan | None:
    """Return how the last turn makes room for another try, ``None`` where there is none."""
    shown = _shown(rows)
    starts = turn_starts(shown)
    if not starts:
        return None
    span = (shown[starts[-1]].id, shown[-1].id)
    kept = Memory(replaced=(*memory.replaced, span))
    return Plan(span=span, swap=(), show=False, turns=1, start=span[0], memory=kept)


def _shown(rows: Sequence[Message]) -> list[Message]:
    return [row for row in rows if not row.hidden and row.kind != KIND_SUMMARY]


def _still_undone(shown: Sequence[Message], memory: Memory) -> tuple[Undone, ...]:
    """Return what can be brought back: nothing stands behind it."""
    last = shown[-1].id if shown else 0
    return memory.undone if memory.undone and last < memory.undone[-1].span[0] else ()


def _hidden_in(rows: Sequence[Message], span: Span) -> tuple[Span, ...]:
    """Return the rows of a span that are hidden, as spans."""
    holes: list[Span] = []
    is_open = False
    for row in rows:
        if not span[0] <= row.id <= span[1]:
            continue
        if row.hidden and is_open:
            holes[-1] = (holes[-1][0], row.id)
        elif row.hidden:
            holes.append((row.id, row.id))
        is_open = row.hidden
    return tuple(holes)
