"""Messages of a fake Slack that grow before their readers' eyes, and what is refused while they do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_slack.testing.refusal import Refusal
from hermes_slack.testing.state import Post
from hermes_slack.wire import mappings, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_slack.testing.server import FakeSlackServer
    from hermes_slack.testing.state import App, Installation

__all__ = ["StreamMethods"]

_MOST_CHARACTERS = 12_000


class StreamMethods:
    """``chat.startStream``, ``chat.appendStream`` and ``chat.stopStream``."""

    def __init__(self, server: FakeSlackServer) -> None:
        self._server = server

    def start(self, _app: App, here: Installation, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Open a stream: always as a reply, and in channels for somebody."""
        channel, thread = str(arguments.get("channel", "")), str(arguments.get("thread_ts", ""))
        recipient = str(arguments.get("recipient_user_id", "")), str(arguments.get("recipient_team_id", ""))
        if channel in self._server.outside:
            raise Refusal("not_in_channel")
        if not thread:
            raise Refusal("invalid_thread_ts")
        if not channel.startswith("D"):
            if not recipient[0]:
                raise Refusal("missing_recipient_user_id")
            if not recipient[1]:
                raise Refusal("missing_recipient_team_id")
        post = Post(
            channel=channel,
            ts=self._server.ts(),
            text=self._text(arguments),
            user=here.user_id,
            token=here.token,
            bot_id=here.bot_id,
            thread_ts=thread,
            streaming=True,
            recipient=recipient if all(recipient) else None,
        )
        self._server.posts.append(post)
        return {"channel": channel, "ts": post.ts}

    def append(self, _app: App, here: Installation, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Let a stream say more."""
        post = self._found(here, arguments)
        post.text += self._text(arguments)
        post.appended += 1
        return {"channel": post.channel, "ts": post.ts}

    def stop(self, _app: App, here: Installation, arguments: Mapping[str, object]) -> Mapping[str, object]:
        """Close a stream."""
        post = self._found(here, arguments)
        post.text += self._text(arguments)
        post.streaming = False
        return {"channel": post.channel, "ts": post.ts, "message": post.shown(metadata=True)}

    def _text(self, arguments: Mapping[str, object]) -> str:
        chunks = (text(each, "text") for each in mappings(arguments, "chunks") if text(each, "type") == "markdown_text")
        said = text(arguments, "markdown_text") + "".join(chunks)
        if len(said) > _MOST_CHARACTERS:
            raise Refusal("msg_too_long")
        return said

    def _found(self, here: Installation, arguments: Mapping[str, object]) -> Post:
        for post in self._server.posts:
            if (post.channel, post.ts) == (arguments.get("channel"), arguments.get("ts")):
                if post.token != here.token:
                    raise Refusal("message_not_owned_by_app")
                if not post.streaming:
                    raise Refusal("message_not_in_streaming_state")
                return post
        raise Refusal("message_not_found")
