"""Whether the last message of a conversation got its answer, and what to do where it did not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_cli.safe_text import safe_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.turns import Turn

__all__ = ["RUNNING", "send_again", "state_word"]

RUNNING = "running in "
"""How ``App.turn_state`` begins where a living process is at work."""


def state_word(state: str) -> str:
    """Return what ``App.turn_state`` says in one word: ``running``, ``interrupted``, ``""``."""
    return state.partition(" ")[0]


def send_again(turns: Sequence[Turn], state: str) -> str:
    """Return one line for people when nobody answers, or will answer, the last message; ``""`` otherwise.

    :param turns: of the conversation, oldest first.
    :param state: what ``App.turn_state`` says: a turn of a living process is still to come to its end.
    """
    if not turns or state.startswith(RUNNING):
        return ""
    from hermes_hookspecs.turns import ACTIVE, DONE, FAILED, INTERRUPTED, STOPPED  # a list needs none of them

    ends = {FAILED: "failed", STOPPED: "was stopped", INTERRUPTED: "was interrupted", ACTIVE: "was interrupted"}
    last = turns[-1]
    if last.outcome == DONE:
        return ""
    reason = f" ({safe_line(last.reason)})" if last.reason else ""
    end = ends.get(last.outcome, last.outcome)
    return f"The last turn {end}{reason}; send the message again to have it answered."
