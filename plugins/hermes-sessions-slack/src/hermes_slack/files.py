"""Files that come with messages: what they are, and their bytes, which only Slack's own hosts are asked for."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import aiohttp

from hermes_hookspecs.errors import Rejected, RetryLater
from hermes_hookspecs.messages import Attachment
from hermes_slack.wire import mapping, mappings, text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from hermes_slack.config import SlackConfig
    from hermes_slack.workspaces import Workspace

__all__ = ["attachments_of", "bytes_of", "is_slacks"]

_PIECE = 1 << 16
_SLOWEST_S = 300.0


def attachments_of(message: Mapping[str, object]) -> tuple[Attachment, ...]:
    """Return the files of a message; those that were deleted or that Slack hides are left out."""
    return tuple(
        _attachment(each)
        for each in mappings(message, "files")
        if text(each, "id") and text(each, "mode") not in ("tombstone", "hidden_by_limit")
    )


def _attachment(entry: Mapping[str, object]) -> Attachment:
    media_type = text(entry, "mimetype")
    kind = media_type.partition("/")[0]
    size = entry.get("size")
    # of a file that came by Slack Connect the event holds a stub alone: files.info has the rest
    is_stub = text(entry, "file_access") == "check_file_info"
    url = "" if is_stub else text(entry, "url_private_download") or text(entry, "url_private")
    return Attachment(
        kind=kind if kind in ("image", "audio", "video") else "document",
        name=text(entry, "name") or text(entry, "title"),
        media_type=media_type,
        size=size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
        reference=json.dumps({"id": text(entry, "id"), "url": url}),
    )


async def bytes_of(
    attachment: Attachment, session: aiohttp.ClientSession, config: SlackConfig, workspace: Workspace
) -> AsyncIterator[bytes]:
    """Yield the bytes of a file.

    :raises RetryLater: not now. :raises Rejected: it is gone, too large, not for us, or not at Slack.
    """
    url = await _address(attachment.reference, workspace)
    if not is_slacks(url, config):
        raise Rejected(f"the file is at {urlsplit(url).hostname or 'no host'}, which is not among media_hosts")
    most, got = config.max_media_bytes, 0
    headers = {"Authorization": f"Bearer {workspace.token}"}
    try:
        async with (
            asyncio.timeout(_SLOWEST_S),
            session.get(url, headers=headers, allow_redirects=False) as answer,
        ):
            _look_at(answer, attachment)
            async for piece in answer.content.iter_chunked(_PIECE):
                got += len(piece)
                if got > most:
                    raise Rejected(f"the file is larger than max_media_bytes = {most}")
                yield piece
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        raise RetryLater(f"the file cannot be fetched: {type(error).__name__}") from error


def _look_at(answer: aiohttp.ClientResponse, attachment: Attachment) -> None:
    if answer.status == 429 or answer.status >= 500:
        raise RetryLater(f"the file cannot be fetched: HTTP {answer.status}")
    # who may not read it is led to a page for logging in
    is_page = answer.content_type == "text/html" and attachment.media_type != "text/html"
    if answer.status != 200 or is_page:
        raise Rejected(f"the file is not for us (HTTP {answer.status}): it is gone, or the app lacks files:read")


async def _address(reference: str, workspace: Workspace) -> str:
    try:
        found = json.loads(reference)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not text(found, "id"):
        raise Rejected("nothing is known of this file")
    if text(found, "url"):
        return text(found, "url")
    entry = mapping(await workspace.api.read("files.info", file=text(found, "id")), "file")
    url = text(entry, "url_private_download") or text(entry, "url_private")
    if not url:
        raise Rejected("files.info names no address of the file")
    return url


def is_slacks(url: str, config: SlackConfig) -> bool:
    """Return whether an address is at the Web API, or by https at one of ``media_hosts``."""
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname or ""
    except ValueError:
        return False
    if parts.username or parts.password:
        return False
    api = urlsplit(config.base_url)
    if (parts.scheme, host, port) == (api.scheme, api.hostname, api.port):
        return True
    if parts.scheme != "https" or port not in (None, 443):
        return False
    return any(host == name or (name.startswith(".") and host.endswith(name)) for name in config.media_hosts)
