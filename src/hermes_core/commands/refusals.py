"""What a command replies where its change is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.leases import busy_words
from hermes_hookspecs.commands import CommandReply
from hermes_hookspecs.errors import LeaseBusy

if TYPE_CHECKING:
    from hermes_hookspecs.commands import CommandCall
    from hermes_hookspecs.errors import HermesError

__all__ = ["refused"]


def refused(call: CommandCall, error: HermesError) -> CommandReply:
    """Return the reply to a command whose change was refused.

    :raises LeaseBusy: somebody is at work in the session, and nobody waits for the reply: the row of the command waits.
    """
    if isinstance(error, LeaseBusy) and call.control_id is not None:
        raise error
    shown = busy_words(error) if isinstance(error, LeaseBusy) and not call.principal.sees_all else str(error)
    return CommandReply(text=shown, failed=True)
