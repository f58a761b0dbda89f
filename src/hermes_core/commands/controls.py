"""Slash commands whose sender does not wait: rows of the inbox, run by whoever serves the entrance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.commands.desk import find_command, run_command
from hermes_core.commands.parse import parse_command

if TYPE_CHECKING:
    from hermes_core.hooks import Hooks
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.ports.app import App
    from hermes_hookspecs.sessions import SessionEntry

__all__ = ["ControlRunner"]


class ControlRunner:
    """Runs the commands of inbox rows on behalf of who typed them."""

    def __init__(self, app: App, hooks: Hooks) -> None:
        self._app = app
        self._hooks = hooks

    async def run(self, item: InboxItem) -> str:
        """Run a row's command and return its reply; its effect on the store happens once.

        :raises HermesError: of the command; it changed nothing.
        """
        from asyncio import to_thread

        entry = await to_thread(self._entry, item)
        reply = await run_command(self._app, self._hooks, item.text, item.source, entry, control_id=item.id)
        return "" if reply is None else reply.text

    def waits_its_turn(self, item: InboxItem) -> bool:
        """Return whether the command has to wait behind older messages and a running turn."""
        parsed = parse_command(item.text)
        command = None if parsed is None else find_command(self._hooks, parsed[0], item.source.platform)
        return command is not None and not command.bypass

    def _entry(self, item: InboxItem) -> SessionEntry | None:
        """Return the session that the row's key leads to now; a command makes none."""
        route = self._app.store.route(item.session_key)
        if route is None or route.lineage_id is None:
            return None
        return self._app.get_or_create_session(item.source, touch_activity=False)
