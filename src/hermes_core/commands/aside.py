"""Commands whose body blocks: it runs on a thread, and the loop does not wait for whoever has the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hermes_hookspecs.commands import CommandCall, CommandReply

__all__ = ["aside"]


def aside(body: Callable[[CommandCall], CommandReply]) -> Callable[[CommandCall], Awaitable[CommandReply]]:
    """Return what a :class:`~hermes_hookspecs.commands.Command` runs, from a function that may block."""

    async def run(call: CommandCall) -> CommandReply:
        from asyncio import to_thread

        return await to_thread(body, call)

    return run
