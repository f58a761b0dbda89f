"""What travels: headers, requests, and what an update holds.

Ids are 64-bit numbers on the wire and texts here. Nothing that the server sends is trusted to be there, or to be of
the type that it should be; what is missing is empty.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Mapping, Sequence

import attrs

__all__ = [
    "CHANNEL_VERSION",
    "FILE",
    "IMAGE",
    "TEXT",
    "VIDEO",
    "VOICE",
    "InboundItem",
    "InboundMessage",
    "Medium",
    "Quote",
    "Updates",
    "base_info",
    "client_version",
    "get_headers",
    "post_headers",
    "read_message",
    "read_updates",
    "texts_of",
]

CHANNEL_VERSION = "2.4.9"
"""Of the published client whose protocol this is."""

TEXT, IMAGE, VOICE, FILE, VIDEO = 1, 2, 3, 4, 5
_USER = 1
_LARGEST_WAIT_MS = 120_000


def client_version(version: str) -> str:
    """Return ``major.minor.patch`` as the header has it: ``2.4.9`` is ``132105``."""
    numbers = [int(part) if part.isdigit() else 0 for part in version.split(".")[:3]]
    major, minor, patch = (*numbers, 0, 0, 0)[:3]
    return str(major << 16 | (minor & 0xFF) << 8 | patch & 0xFF)


def get_headers(version: str) -> dict[str, str]:
    """Return the headers of a request without credentials."""
    return {"iLink-App-Id": "bot", "iLink-App-ClientVersion": client_version(version)}


def post_headers(version: str, token: str = "") -> dict[str, str]:
    """Return the headers of every other request; the ``X-WECHAT-UIN`` is new each time."""
    uin = base64.b64encode(str(secrets.randbits(32)).encode("ascii")).decode("ascii")
    headers = {
        **get_headers(version),
        "Content-Type": "application/json",
        "AuthorizationType": "ilink_bot_token",
        "X-WECHAT-UIN": uin,
    }
    if token:
        headers["Authorization"] = f"Bearer {token}"
    return headers


def base_info(version: str, agent: str) -> dict[str, str]:
    """Return what every body but the first one carries."""
    return {"channel_version": version, "bot_agent": agent}


@attrs.frozen(kw_only=True)
class Medium:
    """Where the bytes of an attachment are. ``url`` is preferred to ``param``; without a key they are plain."""

    param: str = ""
    url: str = ""
    aes_key: str = attrs.field(default="", repr=False)
    hex_key: str = attrs.field(default="", repr=False)


@attrs.frozen(kw_only=True)
class Quote:
    """What a message answers. New clients send the id alone, and maybe which part of it."""

    svr_id: str = ""
    text: str = ""
    start: str = ""
    end: str = ""
    start_index: int = 0
    end_index: int = 0
    md5: str = ""


@attrs.frozen(kw_only=True)
class InboundItem:
    """One piece of a message. ``text`` of a voice is the server's transcript."""

    type: int
    id: str = ""
    text: str = ""
    name: str = ""
    size: int | None = None
    medium: Medium | None = None
    quote: Quote | None = None


@attrs.frozen(kw_only=True)
class InboundMessage:
    """A message, or what could be read of it.

    Attributes:
        group: id of the room, ``""`` for a direct chat. from_user: is the sender a person, and not a bot.
        error: why it cannot be read, ``""`` for one that can.
    """

    id: str = ""
    client_id: str = ""
    sender: str = ""
    group: str = ""
    context_token: str = attrs.field(default="", repr=False)
    created_ms: int = 0
    sequence: str = ""
    from_user: bool = True
    items: tuple[InboundItem, ...] = ()
    error: str = ""


@attrs.frozen(kw_only=True)
class Updates:
    """The answer to a poll: ``wait_ms`` is ``None`` where the server does not say how long the next one may take."""

    messages: tuple[InboundMessage, ...] = ()
    cursor: str = ""
    wait_ms: int | None = None


def read_updates(body: Mapping[str, object]) -> Updates:
    """Return what a poll brought."""
    found = body.get("msgs")
    entries = found if isinstance(found, list) else []
    wait_ms = _number(body.get("longpolling_timeout_ms"))
    return Updates(
        messages=tuple(map(read_message, entries)),
        cursor=_text(body.get("get_updates_buf")),
        wait_ms=min(wait_ms, _LARGEST_WAIT_MS) if wait_ms is not None and wait_ms > 0 else None,
    )


def read_message(entry: object) -> InboundMessage:
    """Return one message, or one with an ``error`` where it cannot be read."""
    if not isinstance(entry, Mapping):
        return InboundMessage(error=f"a message is {type(entry).__name__}, not an object")
    found = entry.get("item_list")
    items = tuple(_item(each) for each in found if isinstance(each, Mapping)) if isinstance(found, list) else ()
    sender = _text(entry.get("from_user_id"))
    kind = _number(entry.get("message_type"))
    return InboundMessage(
        id=_id(entry.get("message_id")),
        client_id=_text(entry.get("client_id")),
        sender=sender,
        group=next(filter(None, (_text(entry.get(key)) for key in ("group_id", "room_id", "chat_room_id"))), ""),
        context_token=_text(entry.get("context_token")),
        created_ms=_number(entry.get("create_time_ms")) or 0,
        sequence=_id(entry.get("seq")),
        from_user=kind in (None, 0, _USER),
        items=items,
        error="" if sender else "a message without a sender",
    )


def _item(entry: Mapping[str, object]) -> InboundItem:
    kind = _number(entry.get("type")) or 0
    payload = _payload(entry, kind)
    size = _number(payload.get("len") or payload.get("video_size") or payload.get("mid_size"))
    return InboundItem(
        type=kind,
        id=_id(entry.get("msg_id")),
        text=_text(payload.get("text")),
        name=_text(payload.get("file_name")),
        size=size if size is not None and size >= 0 else None,
        medium=_medium(payload) if kind in (IMAGE, VOICE, FILE, VIDEO) else None,
        quote=_quote(entry.get("ref_msg")),
    )


def _payload(entry: Mapping[str, object], kind: int) -> Mapping[str, object]:
    names = {TEXT: "text_item", IMAGE: "image_item", VOICE: "voice_item", FILE: "file_item", VIDEO: "video_item"}
    found = entry.get(names.get(kind, ""))
    return found if isinstance(found, Mapping) else {}


def _medium(payload: Mapping[str, object]) -> Medium:
    media = payload.get("media")
    media = media if isinstance(media, Mapping) else {}
    return Medium(
        param=_text(media.get("encrypt_query_param")),
        url=_text(media.get("full_url")),
        aes_key=_text(media.get("aes_key")),
        hex_key=_text(payload.get("aeskey")),
    )


def _quote(entry: object) -> Quote | None:
    if not isinstance(entry, Mapping):
        return None
    inner = entry.get("message_item")
    text = _item(inner).text if isinstance(inner, Mapping) else ""
    partial = entry.get("partial_text")
    part: Mapping[str, object] = partial if isinstance(partial, Mapping) else {}
    return Quote(
        svr_id=_id(entry.get("svr_id")),
        text=text or _text(entry.get("title")),
        start=_text(part.get("start")),
        end=_text(part.get("end")),
        start_index=max(0, _number(part.get("startindex")) or 0),
        end_index=max(0, _number(part.get("endindex")) or 0),
        md5=_text(part.get("quotemd5")).lower(),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _id(value: object) -> str:
    """Return an id as text: a number beyond 2^53 must not become a float on its way."""
    if isinstance(value, bool):
        return ""
    if isinstance(value, int):
        return str(value) if value else ""
    return value if isinstance(value, str) else ""


def _number(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    return None


def texts_of(items: Sequence[InboundItem]) -> str:
    """Return the words of a message, one item a line, transcripts of voices among them."""
    return "\n".join(item.text for item in items if item.text and item.type in (TEXT, VOICE))
