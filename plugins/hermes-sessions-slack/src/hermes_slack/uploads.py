"""Files that go out: uploaded aside first, then shared in their channel, which is the one step that people see.

Slack keeps nothing of ours beside a file that is shared. Whether one whose sharing was cut off stands there is told by
the file itself: by its id, in the process that uploaded it; elsewhere by name and size, among what we posted behind the
message that it answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING

import aiohttp

from hermes_hookspecs.errors import Rejected, RetryLater
from hermes_slack.files import is_slacks
from hermes_slack.lookup import days_back, posted
from hermes_slack.wire import mapping, mappings, text

if TYPE_CHECKING:
    from hermes_hookspecs.files import OutgoingFile
    from hermes_hookspecs.ports.platform import DeliveryPart
    from hermes_slack.config import SlackConfig
    from hermes_slack.workspaces import Workspace

__all__ = ["Uploads"]

_UPLOAD_S = 40.0
_MOST_KNOWN = 1000


class Uploads:
    """Shares files, and looks for those that it may have shared. For one event loop."""

    def __init__(self, config: SlackConfig) -> None:
        self._config = config
        self._known: dict[str, str] = {}

    async def share(
        self,
        part: DeliveryPart,
        file: OutgoingFile,
        session: aiohttp.ClientSession,
        workspace: Workspace,
        *,
        channel: str,
        thread: str | None,
    ) -> str | None:
        """Upload a file and share it; return the time of its message, ``None`` where Slack does not say.

        :raises RetryLater: not now; ``maybe_sent`` only where sharing it was cut off.
        :raises Rejected: it is not taken.
        """
        file_id = await self._uploaded(file, session, workspace)
        while len(self._known) >= _MOST_KNOWN:
            del self._known[next(iter(self._known))]
        self._known[part.key] = file_id
        answer = await workspace.api.call(
            "files.completeUploadExternal",
            files=[{"id": file_id, "title": file.name}],
            channel_id=channel,
            thread_ts=thread,
        )
        self._known.pop(part.key, None)
        return next(filter(None, (_shared_at(one, channel) for one in mappings(answer, "files"))), None)

    async def find(
        self,
        part: DeliveryPart,
        file: OutgoingFile,
        workspace: Workspace,
        *,
        channel: str,
        thread: str | None,
        now: int,
    ) -> str | None:
        """Return the time of the message with the file of a part, ``None`` where there is none.

        :param now: UTC milliseconds. :raises PlatformError: Slack does not say.
        """
        since = part.target.message_id or days_back(now)
        async for message in posted(workspace, channel, thread, since=since):
            if text(message, "user") == workspace.user_id and self._holds(message, part.key, file):
                return text(message, "ts") or None
        return None

    def _holds(self, message: Mapping[str, object], key: str, file: OutgoingFile) -> bool:
        known = self._known.get(key)
        for each in mappings(message, "files"):
            if known is not None:
                if text(each, "id") == known:
                    return True
            elif (text(each, "title"), each.get("size")) == (file.name, file.size):
                return True
        return False

    async def _uploaded(self, file: OutgoingFile, session: aiohttp.ClientSession, workspace: Workspace) -> str:
        """Bring the bytes to Slack; return the id under which they wait to be shared, which nobody sees yet."""
        ticket = await workspace.api.read("files.getUploadURLExternal", filename=file.name, length=file.size)
        url, file_id = text(ticket, "upload_url"), text(ticket, "file_id")
        if not url or not file_id:
            raise RetryLater("files.getUploadURLExternal names no place to upload to")
        if not is_slacks(url, self._config):
            raise Rejected("files.getUploadURLExternal leads to a host that is not among media_hosts")
        try:
            async with (
                asyncio.timeout(_UPLOAD_S),
                session.post(url, data=BytesIO(file.data), allow_redirects=False) as answer,
            ):
                status = answer.status
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise RetryLater(f"the file was not uploaded: {type(error).__name__}") from error
        if status == 429 or status >= 500:
            raise RetryLater(f"the file was not uploaded: HTTP {status}")
        if status != 200:
            raise Rejected(f"the file was not uploaded: HTTP {status}")
        return file_id


def _shared_at(file: Mapping[str, object], channel: str) -> str | None:
    """Return when a file was shared in a channel, as far as it says."""
    shares = mapping(file, "shares")
    for kind in ("public", "private"):
        for share in mappings(mapping(shares, kind), channel):
            if text(share, "ts"):
                return text(share, "ts")
    return None
