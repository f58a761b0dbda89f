"""Direct chats with us, told apart from those of other people.

A command can be given in any direct chat, and its payload looks the same in all of them. In one of two other people,
what the one said there and was answered is not the other's to see: it is a room with two people, not a chat with us.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.errors import PlatformError, RetryLater

if TYPE_CHECKING:
    from hermes_slack.workspaces import Workspace

__all__ = ["Directs"]

_TIMEOUT_S = 1.0
_MOST = 5000


class Directs:
    """The direct chats of one account's workspaces. For one event loop."""

    def __init__(self) -> None:
        self._ours: dict[tuple[str, str], bool] = {}

    def heard_from(self, workspace: Workspace, channel: str) -> None:
        """Note that a message came from a channel: Slack tells us those of our own direct chats alone."""
        self._keep(workspace, channel, True)

    async def has(self, workspace: Workspace, channel: str) -> bool:
        """Return whether a direct chat is with us; where Slack does not say so in time, it is not."""
        known = self._ours.get((workspace.scope_id, channel))
        if known is not None:
            return known
        try:
            await workspace.api.read("conversations.history", timeout_s=_TIMEOUT_S, channel=channel, limit=1)
        except RetryLater:
            return False
        except PlatformError:
            self._keep(workspace, channel, False)
            return False
        self._keep(workspace, channel, True)
        return True

    def _keep(self, workspace: Workspace, channel: str, is_ours: bool) -> None:
        if len(self._ours) >= _MOST:
            self._ours.clear()
        self._ours[workspace.scope_id, channel] = is_ours
