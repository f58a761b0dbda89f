"""What is at work in a command's session, in words that whoever asks may read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.leases import ELSEWHERE

if TYPE_CHECKING:
    from hermes_hookspecs.commands import CommandCall

__all__ = ["turn_words"]


def turn_words(call: CommandCall) -> str:
    """Return what runs in a command's session, ``""`` for nothing; in which process, only the operator is told."""
    if call.entry is None:
        return ""
    state = call.app.turn_state(call.entry.lineage_id)
    if call.principal.sees_all or not state:
        return state
    lease = call.app.store.lease(call.entry.lineage_id)
    holder = None if lease is None else lease.holder
    is_here = holder is not None and holder.session_key == call.entry.session_key
    return f"{state.partition(' ')[0]} {'here' if is_here else f'in {ELSEWHERE}'}"
