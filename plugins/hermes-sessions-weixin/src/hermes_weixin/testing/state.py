"""What a fake iLink server knows: bots, what waits for them, what they sent, bytes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Bot", "SentMessage", "dicts_of", "text_of"]


@attrs.frozen(kw_only=True)
class SentMessage:
    """A message as it arrived at a person; ``token``: of the bot that sent it."""

    message_id: str
    token: str
    peer: str
    client_id: str
    item: Mapping[str, object]
    context_token: str

    @property
    def text(self) -> str:
        """Return its words, ``""`` for a file."""
        return text_of([dict(self.item)])

    @property
    def file_name(self) -> str:
        """Return the name of its document, ``""`` for anything else."""
        found = self.item.get("file_item")
        return str(found.get("file_name", "")) if isinstance(found, dict) else ""


@attrs.define
class Bot:
    """One bound bot.

    Attributes:
        waiting: messages that no poll has brought, oldest first. brought: number of each message → of the cursor that
            came with it. acknowledged: the largest cursor that a poll came back with. handed: by the
            last poll, with its cursor. tokens: context token → the person in whose message it came.
        window: peer → messages sent since their last one. since: peer → when that was (seconds, monotonic).
        stale: its token is refused.
    """

    token: str
    bot_id: str
    user_id: str
    waiting: list[object] = attrs.field(factory=list)
    brought: dict[str, int] = attrs.field(factory=dict)
    handed: list[tuple[int, dict[str, object]]] = attrs.field(factory=list)
    tokens: dict[str, str] = attrs.field(factory=dict)
    cursor: int = 0
    acknowledged: int = 0
    arrived: asyncio.Event = attrs.field(factory=asyncio.Event)
    polled: asyncio.Event = attrs.field(factory=asyncio.Event)
    window: dict[str, int] = attrs.field(factory=dict)
    since: dict[str, float] = attrs.field(factory=dict)
    stale: bool = False
    cured_by_start: bool = False
    polls: int = 0
    typing: list[tuple[str, int]] = attrs.field(factory=list)
    notified: list[str] = attrs.field(factory=list)


def dicts_of(found: object) -> list[dict[str, object]]:
    """Return the objects of a list that came from outside."""
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def text_of(items: object) -> str:
    """Return the words of the items of a message."""
    found = [item.get("text_item") for item in dicts_of(items)]
    return "".join(str(each.get("text", "")) for each in found if isinstance(each, dict))
