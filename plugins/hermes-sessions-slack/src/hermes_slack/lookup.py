"""Whether a message whose posting was cut off went out: Slack has no idempotency keys, but keeps what stands beside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.errors import RetryLater
from hermes_slack.wire import flag, mapping, mappings, text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from hermes_hookspecs.ports.platform import DeliveryPart
    from hermes_slack.workspaces import Workspace

__all__ = ["days_back", "find_posted", "metadata_of", "posted"]

_EVENT = "hermes_part"
_BACK_S = 2 * 86_400
_PAGES = 5
_PAGE = 200


def metadata_of(part: DeliveryPart) -> Mapping[str, object]:
    """Return what stands beside a message, seen by apps alone."""
    return {"event_type": _EVENT, "event_payload": {"id": part.key}}


async def find_posted(part: DeliveryPart, workspace: Workspace, channel: str, *, now: int) -> str | None:
    """Return the time of the message that holds a part, ``None`` where there is none.

    Two days back, a thousand messages at most: one that is not found there was not posted, or nobody says.

    :param now: UTC milliseconds.
    :raises PlatformError: Slack does not say.
    """
    target = part.target
    begins = None if target.chat_type == "dm" else target.prospective_thread_id
    thread = target.thread_id or begins
    async for message in posted(workspace, channel, thread, since=days_back(now)):
        beside = mapping(message, "metadata")
        is_it = text(beside, "event_type") == _EVENT
        if is_it and text(mapping(beside, "event_payload"), "id") == part.key:
            return text(message, "ts") or None
    return None


def days_back(now: int) -> str:
    """Return the time of the oldest message that is looked at. ``now``: UTC milliseconds."""
    return f"{now // 1000 - _BACK_S}.000000"


async def posted(
    workspace: Workspace, channel: str, thread: str | None, *, since: str
) -> AsyncIterator[Mapping[str, object]]:
    """Yield the messages of a thread, or of a channel, since a time of Slack's; with what stands beside them.

    :raises RetryLater: there are more than a thousand. :raises PlatformError: Slack does not say.
    """
    method = "conversations.replies" if thread else "conversations.history"
    cursor = ""
    for _ in range(_PAGES):
        answer = await workspace.api.read(
            method,
            channel=channel,
            ts=thread,
            oldest=since,
            limit=_PAGE,
            include_all_metadata="true",
            cursor=cursor or None,
        )
        for message in mappings(answer, "messages"):
            yield message
        cursor = text(mapping(answer, "response_metadata"), "next_cursor")
        if not cursor or not flag(answer, "has_more"):
            return
    raise RetryLater(f"more than {_PAGES * _PAGE} messages are newer than what is looked for")
