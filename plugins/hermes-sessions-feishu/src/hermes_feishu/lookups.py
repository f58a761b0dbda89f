"""What an event does not say, asked of the API: a message as it is kept, the messages it forwards, the mode of a chat.

An event waits for these: they end within two seconds, and what they do not answer is done without.
"""

from __future__ import annotations

import asyncio
from logging import getLogger
from typing import TYPE_CHECKING
from urllib.parse import quote

import attrs

from hermes_feishu.client import mapping_of, text_of
from hermes_feishu.content import FORWARDED, read_content
from hermes_feishu.mentions import Mention, mentions_of, with_names
from hermes_feishu.recent import Recent
from hermes_hookspecs.errors import PlatformError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_feishu.client import FeishuClient
    from hermes_hookspecs.clock import Clock

__all__ = ["KeptMessage", "Lookups", "forwarded_text", "path_part"]

_log = getLogger(__name__)

_LIMIT_S = 2.0
_CHATS = 1000
_KNOWN_S, _UNKNOWN_S = 3600.0, 60.0
_MOST_FORWARDED = 100
_DEEPEST = 8


@attrs.frozen(kw_only=True)
class KeptMessage:
    """A message as the API gives it. ``above``: the one that forwards it, ``""`` for the one that was asked for."""

    message_id: str
    type: str
    content: object = attrs.field(repr=False)
    sender: str = ""
    thread_id: str = ""
    above: str = ""
    mentions: tuple[Mention, ...] = ()


class Lookups:
    """Asks, and remembers of chats what does not change. For one event loop."""

    def __init__(self, client: FeishuClient, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._topics: Recent[tuple[bool, float]] = Recent(_CHATS)

    async def message(self, message_id: str) -> Sequence[KeptMessage]:
        """Return a message, and behind it those that it forwards; empty where that cannot be had."""
        try:
            async with asyncio.timeout(_LIMIT_S):
                answer = await self._client.get(
                    "looking at a message", f"/open-apis/im/v1/messages/{path_part(message_id)}"
                )
        except (PlatformError, TimeoutError) as error:
            _log.info("a message is taken as its event says, since it cannot be looked at: %s", error)
            return ()
        items = answer.data.get("items")
        return tuple(_kept(mapping_of(one)) for one in items) if isinstance(items, list) else ()

    async def is_topic_chat(self, chat_id: str) -> bool:
        """Return whether each message of a group stands in a topic."""
        known = self._topics.get(chat_id)
        now = self._clock.monotonic()
        if known is not None and now < known[1]:
            return known[0]
        try:
            async with asyncio.timeout(_LIMIT_S):
                answer = await self._client.get("looking at a chat", f"/open-apis/im/v1/chats/{path_part(chat_id)}")
        except (PlatformError, TimeoutError) as error:
            _log.info("a group is taken for one without topics, since it cannot be looked at: %s", error)
            self._topics.put(chat_id, (False, now + _UNKNOWN_S))
            return False
        is_topic = answer.data.get("chat_mode") == "topic" or answer.data.get("group_message_type") == "thread"
        self._topics.put(chat_id, (is_topic, now + _KNOWN_S))
        return is_topic

    async def last_of_thread(self, thread_id: str) -> str:
        """Return the id of the newest message of a topic, which can be answered; ``""`` where there is none.

        :raises PlatformError: the platform does not say.
        """
        answer = await self._client.get(
            "looking for a topic",
            "/open-apis/im/v1/messages",
            params={
                "container_id_type": "thread",
                "container_id": thread_id,
                "sort_type": "ByCreateTimeDesc",
                "page_size": "10",
            },
        )
        items = answer.data.get("items")
        kept = [mapping_of(one) for one in items] if isinstance(items, list) else []
        return next((text_of(one.get("message_id")) for one in kept if not one.get("deleted")), "")


def forwarded_text(kept: Sequence[KeptMessage], our_id: str) -> str:
    """Return what a message forwards, in order, what is forwarded in it indented; ``""`` where that is nothing."""
    head, *rest = kept or (None,)
    if head is None or not rest:
        return ""
    lines = ["[forwarded messages]", *_lines(head.message_id, rest, our_id, 0), "[end of forwarded messages]"]
    return "\n".join(lines)


def _lines(above: str, kept: Sequence[KeptMessage], our_id: str, depth: int) -> Sequence[str]:
    lines: list[str] = []
    if depth > _DEEPEST:
        return lines
    for one in [each for each in kept if each.above == above][:_MOST_FORWARDED]:
        content = read_content(one.type, one.content, one.message_id)
        words = with_names(content.text, one.mentions, our_id) if one.type != FORWARDED else "[forwarded messages]"
        shown = " ".join(
            filter(None, [words, *(f"[{each.kind} {each.name}".rstrip() + "]" for each in content.attachments)])
        )
        margin = "  " * depth
        lines.append(f"{margin}{one.sender or 'somebody'}: " + shown.replace("\n", f"\n{margin}  "))
        if one.type == FORWARDED:
            lines += _lines(one.message_id, kept, our_id, depth + 1)
    return lines


def _kept(item: object) -> KeptMessage:
    one = mapping_of(item)
    return KeptMessage(
        message_id=text_of(one.get("message_id")),
        type=text_of(one.get("msg_type")),
        content=mapping_of(one.get("body")).get("content"),
        sender=text_of(mapping_of(one.get("sender")).get("id")),
        thread_id=text_of(one.get("thread_id")),
        above=text_of(one.get("upper_message_id")),
        mentions=mentions_of(one.get("mentions")),
    )


def path_part(value: str) -> str:
    """Return an id as a part of a path; ids come from outside."""
    return quote(value, safe="")
