"""What a fake iLink server knows: bots, what waits for them, what they sent, bytes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Bot", "SentMessage"]


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
        found = self.item.get("text_item")
        return str(found.get("text", "")) if isinstance(found, dict) else ""


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
