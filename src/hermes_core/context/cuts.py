"""Where a context may be cut: no call parted from its results, the last words of both sides stay. Pure.

A cut is a place in the rows of a context, oldest first: what stands before it goes into the summary, the row at it is
the first that stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.messages import ASSISTANT, KIND_NOTE, KIND_RECOVERY, KIND_SUMMARY, TOOL, USER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.messages import Message

__all__ = ["legal_cut", "place_of_tail"]

_NOT_SAID = frozenset({KIND_NOTE, KIND_RECOVERY, KIND_SUMMARY})


def place_of_tail(weights: Sequence[float], *, budget: float, most_rows: int) -> int:
    """Return the place from which on the rows weigh at most ``budget`` and are at most so many; at least one stays."""
    place, left = len(weights), budget
    while place > 0 and len(weights) - place < most_rows and weights[place - 1] <= left:
        place -= 1
        left -= weights[place]
    return max(min(place, len(weights) - 1), 0)


def legal_cut(rows: Sequence[Message], wanted: int, *, last_resort: bool = False) -> int | None:
    """Return the greatest legal cut that is not behind ``wanted``, ``None`` where there is none but the beginning.

    :param rows: of a context, without its summary, oldest first.
    :param last_resort: the last user row may go, too: for a context that cannot be sent otherwise. Who does that hands
        its text on in the summary.
    """
    place = min(wanted, len(rows) - 1, *_that_stay(rows, last_resort=last_resort))
    if place <= 0:
        return None
    earliest = _earliest_callers(rows)
    while place > 0 and earliest[place] < place:
        place = earliest[place]
    return place if place > 0 else None


def _that_stay(rows: Sequence[Message], *, last_resort: bool) -> list[int]:
    """Return the places of the last user row and of the last thing that was answered."""
    user = answer = step = None
    for place in range(len(rows) - 1, -1, -1):
        row = rows[place]
        if row.kind in _NOT_SAID:
            continue
        if row.role == USER and user is None:
            user = place
        elif row.role == ASSISTANT:
            step = place if step is None else step
            if answer is None and not row.kind and row.content.strip():
                answer = place
        if user is not None and answer is not None:
            break
    stays = [step if answer is None or last_resort else answer, None if last_resort else user]
    return [place for place in stays if place is not None]


def _earliest_callers(rows: Sequence[Message]) -> list[int]:
    """Return for each place the earliest row that a result at it or behind it belongs to, or the place itself.

    A result without a call belongs to the row before it: it never stands first.
    """
    callers: dict[str, int] = {}
    own: list[int] = []
    for place, row in enumerate(rows):
        if row.role == TOOL:
            own.append(callers.get(row.tool_call_id or "", max(place - 1, 0)))
            continue
        own.append(place)
        for call in row.tool_calls:
            callers[call.id] = place
    earliest = len(rows)
    for place in range(len(rows) - 1, -1, -1):
        earliest = min(earliest, own[place])
        own[place] = earliest
    return own
