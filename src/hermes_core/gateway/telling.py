"""What happens to answers and turns, counted: the listener of a gateway."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.markers import hookimpl

if TYPE_CHECKING:
    from hermes_core.gateway.board import Board
    from hermes_hookspecs.source import Entrance
    from hermes_hookspecs.turns import Turn

__all__ = ["Counting"]


class Counting:
    """A plugin that is there as long as a gateway runs."""

    def __init__(self, board: Board) -> None:
        self._board = board

    @hookimpl
    def hermes_after_delivery(self, entrance: Entrance, status: str) -> None:
        board = self._board.known(entrance)
        if board is not None:
            board.count(status)

    @hookimpl
    def hermes_after_turn_finish(self, turn: Turn) -> None:
        self._board.turns[turn.outcome] += 1
