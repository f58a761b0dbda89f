"""Slash commands whose sender does not wait: rows of the inbox, run by whoever serves the entrance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.commands import STEERED
from hermes_hookspecs.inbox import APPLIED, PENDING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hermes_core.commands.desk import CommandBook
    from hermes_hookspecs.commands import Command, CommandReply, Saying
    from hermes_hookspecs.ids import InboxId
    from hermes_hookspecs.inbox import AcceptResult, InboxItem, MessageEvent
    from hermes_hookspecs.ports.app import App
    from hermes_hookspecs.sessions import SessionEntry

__all__ = ["ControlRunner"]

_MOST = 1000
_NOT_SAID = "A later command has let go of the conversation; nobody will answer it."


class ControlRunner:
    """Runs the commands of inbox rows on behalf of who typed them.

    :param entry_behind: returns the session that a row's own key leads to, ``None`` where it leads nowhere; blocks.
    :param say: stores what a command says in its sender's name; it is no command, whatever it looks like.
    """

    def __init__(
        self,
        app: App,
        book: CommandBook,
        entry_behind: Callable[[InboxItem], SessionEntry | None],
        say: Callable[[MessageEvent], Awaitable[AcceptResult]],
    ) -> None:
        self._app = app
        self._book = book
        self._entry_behind = entry_behind
        self._say = say

    async def run(self, item: InboxItem) -> str:
        """Run a row's command and return its reply; its effect on the store happens once.

        :raises HermesError: of the command; it changed nothing.
        """
        from asyncio import to_thread

        entry = await to_thread(self._entry_behind, item)
        reply = await self._book.run(self._app, item.text, item.source, entry, control_id=item.id)
        if reply is not None and reply.failed and await to_thread(self._was_run, item):
            # another process was quicker, and what was refused here is what it did: a taken title, say
            reply = await self._book.run(self._app, item.text, item.source, entry, control_id=item.id)
        if reply is None:
            return ""
        if reply.say is not None:
            said = await self._say(_said(item, reply.say))
            if said.id is not None and await to_thread(self._take_back, item, entry, reply, said.id):
                return f"{reply.text}\n{_NOT_SAID}"
        return reply.text

    def _was_run(self, item: InboxItem) -> bool:
        """Return whether the command of a row has had its effect."""
        now = self._app.store.inbox_item(item.id)
        return now is not None and now.outcome is not None

    def _take_back(self, item: InboxItem, entry: SessionEntry | None, reply: CommandReply, said: InboxId) -> bool:
        """Take back what a command has said, where one that was typed behind it ends its conversation.

        What is said has a younger row than that command, which therefore would not settle it: it would begin the next
        conversation. It cannot have been taken yet: nothing begins behind a command that is not done.
        """
        from hermes_hookspecs.operations import Withdraw

        store = self._app.store
        waiting = store.controls_of_key(item.session_key, limit=_MOST)
        is_left = any(item.id < one.id < said and self._lets_go(one) for one in waiting)
        if not is_left and entry is not None and reply.entry is None and not reply.released:
            route = store.route(item.session_key)
            is_left = route is None or route.lineage_id != entry.lineage_id
        if not is_left or self._is_done(item):  # in this order: what another process has run behind it is no reason
            return False
        store.apply(Withdraw(ids=(said,), now=self._app.clock.now()))
        return True

    def _is_done(self, item: InboxItem) -> bool:
        """Return whether another process has run the command of a row, and goes on behind it."""
        now = self._app.store.inbox_item(item.id)
        return now is None or now.status not in (PENDING, APPLIED)

    def _lets_go(self, item: InboxItem) -> bool:
        command = self._command(item)
        return command is not None and (command.resets or command.name == "resume")

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
