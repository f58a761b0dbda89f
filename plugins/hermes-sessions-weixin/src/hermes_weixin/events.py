"""What comes, as the core takes it: identities, text, quotes, attachments.

A message is known by its ids. Some come again with another id and the same time of creation: sender, time and content
together are an identity, too. A text alone never is one: people say *continue* twice.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.messages import Attachment
from hermes_hookspecs.source import SessionSource
from hermes_weixin.media import reference_of
from hermes_weixin.wire import FILE, IMAGE, VIDEO, VOICE, texts_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_weixin.wire import InboundItem, InboundMessage, Quote

__all__ = ["event_of", "identities_of", "partial_text", "quote_text"]

_KINDS = {IMAGE: "image", VOICE: "audio", FILE: "document", VIDEO: "video"}
_NAMES = {IMAGE: "picture.jpg", VOICE: "voice.silk", VIDEO: "video.mp4"}
_MOST_QUOTED = 500


def event_of(message: InboundMessage, *, account_id: str, now: int, quoted: Callable[[str, str], str]) -> MessageEvent:
    """Return a message as an event.

    :param quoted: returns the text of an earlier message by peer and id, ``""`` where it is not known.
    """
    source = SessionSource(
        platform="weixin",
        account_id=account_id,
        chat_type="group" if message.group else "dm",
        chat_id=message.group or message.sender or None,
        user_id=message.sender or None,
        message_id=message.id or None,
    )
    quotes = [quote_text(item.quote, message.sender, quoted) for item in message.items if item.quote is not None]
    attachments = tuple(filter(None, map(_attachment, message.items)))
    words = texts_of(message.items)
    if not words and not attachments and not message.error and message.items:
        words = "[a message of a kind that cannot be read here]"
    return MessageEvent(
        source=source,
        text="\n\n".join([*(f"> {line}" for line in "\n".join(quotes).splitlines() if line), words])
        if quotes
        else words,
        identities=identities_of(message),
        attachments=attachments,
        received_at=message.created_ms or now,
        error=message.error or ("" if message.items else "a message without content"),
        addressed=not message.group,
    )


def identities_of(message: InboundMessage) -> tuple[str, ...]:
    """Return what a message is known by: its ids, and its sender, time and content. The context token is no part."""
    found = [f"id:{message.id}"] if message.id else []
    found += [f"item:{item.id}" for item in message.items if item.id and item.id != message.id]
    if message.client_id and message.sender:
        found.append(f"client:{message.sender}:{message.client_id}")
    if message.created_ms or not found:
        found.append(f"content:{_fingerprint(message)}")
    return tuple(dict.fromkeys(found))


def _fingerprint(message: InboundMessage) -> str:
    content = [
        (item.type, item.text, item.name, item.medium.param or item.medium.url if item.medium else "")
        for item in message.items
    ]
    # the sequence number is new when a message comes again; it counts where nothing else tells two apart
    when = message.created_ms or message.sequence
    text = json.dumps([message.sender, message.group, when, content, message.error], ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _attachment(item: InboundItem) -> Attachment | None:
    kind = _KINDS.get(item.type)
    if kind is None or item.medium is None or (item.type == VOICE and item.text):
        return None  # of a voice that the server wrote down, the words are what counts
    return Attachment(
        kind=kind,
        name=item.name or _NAMES.get(item.type, ""),
        size=item.size,
        reference=reference_of(item.medium),
    )


# --- quotes


def quote_text(quote: Quote, peer: str, quoted: Callable[[str, str], str]) -> str:
    """Return what a message answers, shortened; where nobody knows it, that it answers something."""
    whole = (quoted(peer, quote.svr_id) if quote.svr_id else "") or quote.text
    text = partial_text(whole, quote) if quote.start or quote.end else whole
    text = " ".join(text.split())
    if not text:
        return "[an earlier message that is not known here]"
    return text if len(text) <= _MOST_QUOTED else f"{text[:_MOST_QUOTED]}…"


def partial_text(whole: str, quote: Quote) -> str:
    """Return the quoted part of a text; all of it where the part cannot be found.

    The end is counted from the beginning of the text, or from behind the start of the part: the checksum decides, and
    without one the first reading that there is.
    """
    begin = _occurrence(whole, quote.start, quote.start_index, 0)
    if begin < 0 or not quote.end:
        return whole
    behind = begin + len(quote.start)
    ends = [_occurrence(whole, quote.end, quote.end_index, 0), _occurrence(whole, quote.end, quote.end_index, behind)]
    readings = [whole[begin : end + len(quote.end)] for end in ends if end >= begin]
    if quote.md5:
        readings = [each for each in readings if _checksum(each) == quote.md5]
    return readings[0] if readings else whole


def _checksum(text: str) -> str:
    return hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def _occurrence(text: str, part: str, index: int, start: int) -> int:
    """Return where a part stands for the ``index``-th time (from 0, without overlaps), -1 where it does not."""
    if not part:
        return -1
    at = text.find(part, start)
    for _ in range(index):
        if at < 0:
            return -1
        at = text.find(part, at + len(part))
    return at
