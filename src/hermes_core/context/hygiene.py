"""The built-in compression policy: what keeps a conversation of months affordable where nobody configured anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.context.cuts import legal_cut, place_of_tail
from hermes_core.context.tokens import row_tokens

if TYPE_CHECKING:
    from hermes_hookspecs.ids import MessageId
    from hermes_hookspecs.ports.policies import CompressionView

__all__ = ["LEAST_ROWS", "Hygiene"]

LEAST_ROWS = 4
"""A shorter context is never compressed."""
_ROUNDING = 1e-9


class Hygiene:
    """Compresses a context of at least 4 rows that fills the threshold of the window or has too many rows.

    :param threshold: share of the model's window from which on a context is compressed.
    :param most_rows: rows from which on it is, whatever the window; it ends the circle of *too big to be sent, so never
        measured, so never compressed*.
    :param keep: share that stays of what would fill the threshold, and of the rows.
    """

    name: str = "hygiene"

    def __init__(self, *, threshold: float = 0.85, most_rows: int = 5000, keep: float = 0.2) -> None:
        self._threshold = threshold
        self._most_rows = most_rows
        self._keep = keep

    def is_due(self, count: int, tokens: int, window_tokens: int | None) -> bool:
        """Return whether a context of ``count`` rows is to be compressed without being asked to."""
        if count < LEAST_ROWS:
            return False
        full = window_tokens is not None and tokens >= self._threshold * window_tokens - _ROUNDING
        return full or count >= self._most_rows

    def cut(self, view: CompressionView) -> MessageId | None:
        """Return the first row to keep, ``None`` to leave the context as it is."""
        rows = view.rows
        if len(rows) < LEAST_ROWS or not (view.forced or self.is_due(len(rows), view.tokens, view.window_tokens)):
            return None
        full = view.tokens if view.window_tokens is None else min(view.tokens, self._threshold * view.window_tokens)
        weights = [row_tokens(row) for row in rows]
        ratio = max(view.tokens, 1) / max(sum(weights), 1) if view.measured else 1.0
        most = max(int(self._keep * min(len(rows), self._most_rows)), 1)
        wanted = place_of_tail(weights, budget=self._keep * full / ratio, most_rows=most)
        place = legal_cut(rows, wanted)
        return None if place is None else rows[place].id
