"""Through which door each message of a conversation came."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli.safe_text import safe_line

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_hookspecs.ids import TurnId
    from hermes_hookspecs.turns import Turn

__all__ = ["Entrances"]


class Entrances:
    """Names the entrance of rows by their turn: platform, account or terminal, and the person."""

    def __init__(self, turns: Iterable[Turn]) -> None:
        self._turns = {turn.id: turn for turn in turns}

    def name(self, turn_id: TurnId | None) -> str:
        """Return ``feishu/second, Ming``; ``copied`` for a row without a turn: of a branch, or of another store."""
        turn = self._turns.get(turn_id) if turn_id is not None else None
        if turn is None:
            return "copied"
        who = turn.user_name or turn.user_id
        return safe_line(f"{turn.entrance}, {who}" if who else str(turn.entrance))
