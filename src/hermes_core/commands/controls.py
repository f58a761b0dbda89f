"""Slash commands whose sender does not wait: rows of the inbox, run by whoever serves the entrance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.commands import STEERED

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.commands.desk import CommandBook
    from hermes_hookspecs.commands import Command, Saying
    from hermes_hookspecs.inbox import InboxItem, MessageEvent
    from hermes_hookspecs.ports.app import App
    from hermes_hookspecs.sessions import SessionEntry

__all__ = ["ControlRunner"]


class ControlRunner:
    """Runs the commands of inbox rows on behalf of who typed them.

    :param entry_behind: returns the session that a row's own key leads to, ``None`` where it leads nowhere; blocks.
    """

    def __init__(self, app: App, book: CommandBook, entry_behind: Callable[[InboxItem], SessionEntry | None]) -> None:
        self._app = app
        self._book = book
        self._entry_behind = entry_behind

    async def run(self, item: InboxItem) -> str:
        """Run a row's command and return its reply; its effect on the store happens once.

        :raises HermesError: of the command; it changed nothing.
        """
        from asyncio import to_thread

        entry = await to_thread(self._entry_behind, item)
        reply = await self._book.run(self._app, item.text, item.source, entry, control_id=item.id)
        if reply is None:
            return ""
        if reply.say is not None:
            await self._app.accept([_said(item, reply.say)])
        return reply.text

    def waits_its_turn(self, item: InboxItem) -> bool:
        """Return whether the command has to wait behind older messages and a running turn."""
        command = self._command(item)
        return command is not None and not command.bypass

    def overtakes(self, item: InboxItem) -> bool:
        """Return whether the command goes before older ones that wait, or that do not end."""
        command = self._command(item)
        return command is not None and command.urgent

    def _command(self, item: InboxItem) -> Command | None:
        return self._book.find(item.text, item.source.platform)[0]


def _said(item: InboxItem, say: Saying) -> MessageEvent:
    """Return what a command's sender says by it; however often the command is run, it is said once."""
    from hermes_hookspecs.inbox import MessageEvent

    mark = STEERED if say.steers else "said"
    return MessageEvent(
        source=item.source,
        text=say.text,
        identities=(f"{mark}:{item.id}",),
        attachments=say.attachments,
        received_at=item.accepted_at,
    )
