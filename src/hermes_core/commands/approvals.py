"""The commands by which a person answers a request: approve, deny."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.approvals import APPROVED
from hermes_hookspecs.commands import Command, CommandReply
from hermes_hookspecs.errors import AmbiguousReference, ApprovalNotFound
from hermes_hookspecs.markers import hookimpl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.approvals import Approval
    from hermes_hookspecs.commands import CommandCall

__all__ = ["ApprovalCommandsPlugin"]

_SHOWN = 80


async def _approve(call: CommandCall) -> CommandReply:
    """Allow a call that waits for it."""
    return await _answer(call, approve=True)


async def _deny(call: CommandCall) -> CommandReply:
    """Refuse a call that waits for it."""
    return await _answer(call, approve=False)


async def _answer(call: CommandCall, *, approve: bool) -> CommandReply:
    from asyncio import to_thread

    return await to_thread(_answered, call, approve=approve)


def _answered(call: CommandCall, *, approve: bool) -> CommandReply:
    oversight = call.app.oversight
    try:
        answered = oversight.answer(call.arguments, call.source, approve=approve, control_id=call.control_id)
    except AmbiguousReference:
        lines = [_line(one) for one in oversight.approvals(call.source)]
        heading = f"Several calls wait; /{call.name} ID answers one of them:"
        return CommandReply(text="\n".join([heading, *lines]), failed=True)
    except ApprovalNotFound as error:
        return CommandReply(text=f"{str(error).capitalize()}.", failed=True)
    word = "Approved" if answered.status == APPROVED else "Denied"
    return CommandReply(text=f"{word}: {answered.tool_name} ({answered.id}).")


def _line(approval: Approval) -> str:
    arguments = " ".join(approval.arguments.split())
    shown = arguments if len(arguments) <= _SHOWN else f"{arguments[: _SHOWN - 1]}…"
    return f"{approval.id}  {approval.tool_name}  {shown}"


class ApprovalCommandsPlugin:
    """Brings the two commands; a plugin's command of the same name wins."""

    @hookimpl
    def hermes_commands(self) -> Sequence[Command] | None:
        return (
            Command(name="approve", summary="allow a call that waits for you", usage="[ID]", run=_approve, urgent=True),
            Command(name="deny", summary="refuse a call that waits for you", usage="[ID]", run=_deny, urgent=True),
        )
