"""The commands that change how a conversation goes on: undo, redo, retry, branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.commands.aside import aside
from hermes_core.commands.echoes import echoed
from hermes_core.commands.refusals import refused
from hermes_hookspecs.commands import Command, CommandReply, Saying
from hermes_hookspecs.errors import LeaseBusy, SessionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_hookspecs.commands import CommandCall
    from hermes_hookspecs.ports.conversations import TakenBack
    from hermes_hookspecs.sessions import SessionEntry

__all__ = ["REVISING_COMMANDS"]

_GROUP = "This conversation"
_MOST_TURNS = 1000


def _undo(call: CommandCall) -> CommandReply:
    """Hide the last turns."""
    turns = _count(call.arguments)
    if turns is None:
        text = f"/undo takes a number of turns from 1 to {_MOST_TURNS}, not {echoed(call.arguments)}."
        return CommandReply(text=text, failed=True)

    def change(entry: SessionEntry) -> TakenBack:
        return call.app.conversations.undo(entry.lineage_id, call.source, turns=turns, control_id=call.control_id)

    return _changed(call, change, "Taken back", "/redo brings it back.", wanted=turns)


def _redo(call: CommandCall) -> CommandReply:
    """Bring back what the last undo took."""

    def change(entry: SessionEntry) -> TakenBack:
        return call.app.conversations.redo(entry.lineage_id, call.source, control_id=call.control_id)

    return _changed(call, change, "Brought back", "/undo takes it back again.")


def _retry(call: CommandCall) -> CommandReply:
    """Say the last message again; the answer that it had is kept, and an undo brings it back."""

    def change(entry: SessionEntry) -> TakenBack:
        return call.app.conversations.retry(entry.lineage_id, call.source, control_id=call.control_id)

    return _changed(call, change, "Trying again", "/undo brings the earlier answer back.")


def _changed(
    call: CommandCall, change: Callable[[SessionEntry], TakenBack], what: str, how: str, *, wanted: int = 0
) -> CommandReply:
    if call.entry is None:
        return CommandReply(text="There is no session yet; send a message first.", failed=True)
    try:
        taken = change(call.entry)
    except (SessionError, LeaseBusy) as error:
        return refused(call, error)
    if taken.refusal:
        return CommandReply(text=taken.refusal, failed=True)
    turns = "" if taken.turns == 1 else f" {taken.turns} turns, from"
    about = f"{turns} “{taken.text}”" if taken.text else ""
    say = Saying(text=taken.again, attachments=taken.attachments) if taken.again or taken.attachments else None
    fewer = " Nothing before that can be taken back here." if taken.turns < wanted else ""
    return CommandReply(text=f"{what}{':' if about else ''}{about}.{fewer} {how}", say=say)


def _count(arguments: str) -> int | None:
    """Return how many turns are meant, ``None`` for what is no such number."""
    if not arguments:
        return 1
    if not (arguments.isascii() and arguments.isdigit()) or len(arguments) > len(str(_MOST_TURNS)):
        return None
    return int(arguments) if 1 <= int(arguments) <= _MOST_TURNS else None


def _branch(call: CommandCall) -> CommandReply:
    """Go on in a copy; the conversation that it was made of stays as it is."""
    if call.entry is None:
        return CommandReply(text="There is no session yet; send a message first.", failed=True)
    try:
        entry = call.app.conversations.branch(
            call.source, call.entry.lineage_id, title=call.arguments, control_id=call.control_id
        )
    except (SessionError, LeaseBusy) as error:
        return refused(call, error)
    made = call.app.store.lineage(entry.lineage_id, call.principal)
    origin = None if made is None else made.branched_from
    name = f"{entry.title!r} ({entry.session_id})" if entry.title else entry.session_id
    back = f" /resume {origin} goes back to where it came from." if origin else ""
    return CommandReply(text=f"You go on in {name}.{back}", entry=entry)


REVISING_COMMANDS = (
    Command(
        name="undo",
        summary="take the last turns back; nothing is lost",
        usage="[N]",
        run=aside(_undo),
        bypass=False,
        group=_GROUP,
    ),
    Command(name="redo", summary="bring back what was taken back", run=aside(_redo), bypass=False, group=_GROUP),
    Command(
        name="retry",
        summary="have the last message answered again; the old answer is kept",
        run=aside(_retry),
        bypass=False,
        group=_GROUP,
    ),
    Command(
        name="branch",
        summary="go on in a copy; this conversation stays as it is",
        usage="[NAME]",
        run=aside(_branch),
        bypass=False,
        group=_GROUP,
    ),
)
"""They wait for their place: what they are about is what was said before them."""
