"""An answer that grows as Slack's own streams do: in threads, for who asked, where the app may.

A stream only ever grows, and while it is open its message cannot be edited; Slack ends it by itself after some five
minutes. So a text that changes in its beginning, and a stream that is over or of which nobody knows how far it is, goes
on by edits. A stream is opened without a text: one of which it is not known whether it was opened shows nothing.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.errors import PlatformError, RetryLater
from hermes_slack.failures import Refused
from hermes_slack.mrkdwn import escaped
from hermes_slack.wire import text

if TYPE_CHECKING:
    from hermes_hookspecs.ports.platform import DeliveryPart
    from hermes_slack.workspaces import Workspace

__all__ = ["Streaming"]

_OF_THIS_ONE = frozenset({"user_not_found", "channel_not_found", "not_in_channel", "is_archived", "thread_not_found"})
"""Refusals that say nothing about other places: with Slack Connect, people of others cannot be streamed to."""
_MOST = 1000


@attrs.define(kw_only=True)
class _Open:
    """One open stream. ``text``: what was said in it so far, as Markdown."""

    thread: str
    text: str = ""


class Streaming:
    """The open streams of one account. For one event loop."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str, str], _Open] = {}
        self._refused: set[tuple[str, bool]] = set()

    async def begin(self, part: DeliveryPart, workspace: Workspace, channel: str, thread: str | None) -> str | None:
        """Open a stream without text; return the time of its message, ``None`` where there can be none.

        :raises RetryLater: it is not known whether it was opened.
        """
        is_direct = part.target.chat_type == "dm"
        people = (None, None) if is_direct else (part.target.user_id, workspace.team_id)
        if not thread or (workspace.scope_id, is_direct) in self._refused or not (is_direct or all(people)):
            return None
        try:
            answer = await workspace.api.call(
                "chat.startStream",
                channel=channel,
                thread_ts=thread,
                recipient_user_id=people[0],
                recipient_team_id=people[1],
            )
        except RetryLater as error:
            if error.maybe_sent:
                raise
            return None  # there are fewer streams a minute than posts
        except Refused as error:
            if error.code not in _OF_THIS_ONE:
                self._refused.add((workspace.scope_id, is_direct))
            return None
        ts = text(answer, "ts")
        if not ts:
            raise RetryLater("chat.startStream does not say which message it made", maybe_sent=True)
        if len(self._open) >= _MOST:
            self._open.clear()  # they go on by edits
        self._open[workspace.scope_id, channel, ts] = _Open(thread=thread)
        return ts

    async def grow(self, part: DeliveryPart, workspace: Workspace, channel: str, ts: str) -> bool:
        """Let a stream say a longer text; return whether it does: else its message has to be edited.

        :raises RetryLater: Slack wants a pause.
        """
        found = self._open.get((workspace.scope_id, channel, ts))
        if found is None:
            return False
        if not part.text.startswith(found.text):
            return False
        more = escaped(part.text[len(found.text) :])
        if not more:
            return True
        try:
            await workspace.api.call("chat.appendStream", channel=channel, ts=ts, markdown_text=more)
        except RetryLater as error:
            if not error.maybe_sent:
                raise
            return False
        except Refused:
            return False
        found.text = part.text
        return True

    async def end(self, workspace: Workspace, channel: str, ts: str, *, known: bool = True) -> None:
        """End a stream, so that its message can be edited; one that is over is let be.

        :param known: it was opened here; else somebody else may have.
        """
        if self._open.pop((workspace.scope_id, channel, ts), None) is None and known:
            return
        with suppress(PlatformError):  # the edit that follows says whether it is still open
            await workspace.api.call("chat.stopStream", channel=channel, ts=ts)

    async def end_in(self, workspace: Workspace, channel: str, thread: str) -> None:
        """End what is open in a thread: nothing more is written there."""
        there = [
            ts
            for (scope_id, place, ts), found in self._open.items()
            if (scope_id, place, found.thread) == (workspace.scope_id, channel, thread)
        ]
        for ts in there:
            await self.end(workspace, channel, ts)
