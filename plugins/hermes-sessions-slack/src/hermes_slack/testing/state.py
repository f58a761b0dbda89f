"""What a fake Slack knows: apps, where they are installed, what was posted, what waits to be acknowledged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aiohttp import web

    from hermes_slack.testing.uploads import Upload

__all__ = ["App", "Envelope", "Installation", "Post", "ResponseUrl"]


@attrs.define(kw_only=True)
class Installation:
    """An app in a workspace, or in a whole organisation. ``token``: of its bot."""

    token: str
    team_id: str
    user_id: str
    bot_id: str
    enterprise_id: str | None = None
    org_wide: bool = False
    revoked: bool = False


@attrs.define(kw_only=True)
class Envelope:
    """One event on its way. ``sent``: how often; ``acknowledged``: how often Slack was told."""

    id: str
    kind: str
    payload: Mapping[str, object]
    sent: int = 0
    acknowledged: int = 0


@attrs.define(kw_only=True)
class App:
    """One app.

    Attributes:
        sockets: open ones, oldest first. envelopes: everything that was to be delivered, by id.
        socket_mode: is it turned on. opened: sockets since the start.
        redelivers: what nobody acknowledged is sent again on the next socket.
    """

    app_id: str
    app_token: str
    signing_secret: str
    installations: list[Installation] = attrs.field(factory=list)
    sockets: list[web.WebSocketResponse] = attrs.field(factory=list)
    envelopes: dict[str, Envelope] = attrs.field(factory=dict)
    socket_mode: bool = True
    opened: int = 0
    redelivers: bool = True


@attrs.define(kw_only=True)
class Post:
    """A message as it stands in a channel.

    Attributes:
        token: of who posted it, ``""`` where nobody did by the Web API. streaming: it is a stream that is open.
        appended: how often it grew as one. recipient: to whom it was streamed.
    """

    channel: str
    ts: str
    text: str
    user: str
    token: str = ""
    bot_id: str = ""
    thread_ts: str | None = None
    metadata: Mapping[str, object] | None = None
    edits: int = 0
    streaming: bool = False
    appended: int = 0
    recipient: tuple[str, str] | None = None
    files: tuple[Upload, ...] = ()

    def shown(self, *, metadata: bool) -> dict[str, object]:
        """Return it as the Web API does."""
        found: dict[str, object] = {"type": "message", "user": self.user, "text": self.text, "ts": self.ts}
        if self.bot_id:
            found["bot_id"] = self.bot_id
        if self.thread_ts:
            found["thread_ts"] = self.thread_ts
        if metadata and self.metadata:
            found["metadata"] = dict(self.metadata)
        if self.files:
            found["files"] = [file.shown() for file in self.files]
        return found


@attrs.define(kw_only=True)
class ResponseUrl:
    """Where a command may be answered. ``texts``: what was said there; ``open``: it has not expired."""

    url: str
    texts: list[str] = attrs.field(factory=list)
    open: bool = True
