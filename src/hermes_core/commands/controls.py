"""Slash commands whose sender does not wait: rows of the inbox, run by whoever serves the entrance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.commands.desk import find_command, run_command
from hermes_core.commands.parse import parse_command

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.hooks import Hooks
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.ports.app import App
    from hermes_hookspecs.sessions import SessionEntry

__all__ = ["ControlRunner"]


class ControlRunner:
    """Runs the commands of inbox rows on behalf of who typed them.

    :param entry_behind: returns the session that a row's own key leads to, ``None`` where it leads nowhere; blocks.
    """

    def __init__(self, app: App, hooks: Hooks, entry_behind: Callable[[InboxItem], SessionEntry | None]) -> None:
        self._app = app
        self._hooks = hooks
        self._entry_behind = entry_behind

    async def run(self, item: InboxItem) -> str:
        """Run a row's command and return its reply; its effect on the store happens once.

        :raises HermesError: of the command; it changed nothing.
        """
        from asyncio import to_thread

        entry = await to_thread(self._entry_behind, item)
        reply = await run_command(self._app, self._hooks, item.text, item.source, entry, control_id=item.id)
        return "" if reply is None else reply.text

    def waits_its_turn(self, item: InboxItem) -> bool:
        """Return whether the command has to wait behind older messages and a running turn."""
        parsed = parse_command(item.text)
        command = None if parsed is None else find_command(self._hooks, parsed[0], item.source.platform)
        return command is not None and not command.bypass

    def overtakes(self, item: InboxItem) -> bool:
        """Return whether the command goes before older ones that wait, or that do not end."""
        parsed = parse_command(item.text)
        command = None if parsed is None else find_command(self._hooks, parsed[0], item.source.platform)
        return command is not None and command.urgent
