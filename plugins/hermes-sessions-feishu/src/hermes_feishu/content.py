"""The content of a message as text and attachments, whatever type it is of.

A type that nobody knows gives a placeholder, never an error: the person who wrote it expects an answer.
"""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING

import attrs

from hermes_feishu.client import mapping_of, text_of
from hermes_feishu.posts import card_text, post_media, post_text
from hermes_hookspecs.encoding import decode_text, encode_text
from hermes_hookspecs.messages import Attachment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["CARD", "FORWARDED", "Content", "Resource", "read_content", "resource_of"]

CARD, FORWARDED = "interactive", "merge_forward"
"""Types whose event may not say what is in them."""

_IMAGE, _FILE = "image", "file"
_OLD_CLIENT = "请升级至最新版本客户端"
"""What a card says to clients that cannot show it, and to us."""


@attrs.frozen(kw_only=True)
class Content:
    """What a message says.

    Attributes:
        text: placeholders of mentions are still in it. is_stub: the platform has more than the event said.
        error: why it cannot be read, ``""`` where it can.
    """

    text: str = ""
    attachments: tuple[Attachment, ...] = ()
    is_stub: bool = False
    error: str = ""


@attrs.frozen(kw_only=True)
class Resource:
    """Where the bytes of an attachment are. ``type``: as the API calls it, ``image`` or ``file``."""

    message_id: str
    key: str
    type: str


def resource_of(reference: str) -> Resource:
    """Return what the reference of an attachment stands for. :raises ValueError: nothing."""
    message_id, key, kind = map(decode_text, reference.split(":"))
    if not message_id or not key or kind not in (_IMAGE, _FILE):
        raise ValueError(f"{reference!r} is no reference")
    return Resource(message_id=message_id, key=key, type=kind)


def read_content(kind: str, raw: object, message_id: str) -> Content:
    """Return what a message says.

    :param kind: its type. raw: its content, which is JSON in a text. message_id: for references to attachments.
    """
    try:
        content = mapping_of(json.loads(raw)) if isinstance(raw, str) else mapping_of(raw)
    except (ValueError, RecursionError):
        if kind == FORWARDED:  # a fixed text stands there
            return Content(text="[forwarded messages]", is_stub=True)
        return Content(error=f"the content of a message of type {kind!r} is no JSON")
    read = _READERS.get(kind)
    if read is not None:
        return read(content, message_id)
    words = text_of(content.get("text")) or text_of(content.get("title")) or text_of(content.get("topic"))
    return Content(text=f"[a message of type {kind or 'unknown'}]" + (f" {words}" if words else ""))


# --- text


def _text(content: Mapping[str, object], _: str) -> Content:
    words = content.get("text")
    if not isinstance(words, str):
        return Content(error="a text message without text")
    return Content(text=words)


def _post(content: Mapping[str, object], message_id: str) -> Content:
    media = tuple(
        _attachment(kind, message_id, key, _IMAGE if kind == "image" else _FILE) for kind, key in post_media(content)
    )
    return Content(text=post_text(content), attachments=media)


def _card(content: Mapping[str, object], _: str) -> Content:
    words = card_text(content)
    is_stub = not words or _OLD_CLIENT in words
    return Content(text="[card]" if is_stub else words, is_stub=is_stub)


def _forwarded(_: Mapping[str, object], __: str) -> Content:
    return Content(text="[forwarded messages]", is_stub=True)


# --- media


def _attachment(
    kind: str, message_id: str, key: str, type_: str, *, name: str = "", media_type: str = ""
) -> Attachment:
    reference = ":".join(map(encode_text, (message_id, key, type_)))
    return Attachment(kind=kind, name=name, media_type=media_type, reference=reference)


def _media(
    kind: str, key_name: str, type_: str, media_type: str = ""
) -> Callable[[Mapping[str, object], str], Content]:
    """Return a reader of messages that are one attachment."""

    def read(content: Mapping[str, object], message_id: str) -> Content:
        key = text_of(content.get(key_name))
        if not key:
            return Content(text=f"[{kind} without content]")
        name = text_of(content.get("file_name"))
        guessed = media_type or _guessed(name)
        found = _attachment(kind, message_id, key, type_, name=name, media_type=guessed)
        return Content(attachments=(found,))

    return read


def _file(content: Mapping[str, object], message_id: str) -> Content:
    kind = _guessed(text_of(content.get("file_name"))).partition("/")[0]
    kind = kind if kind in ("image", "audio", "video") else "document"
    return _media(kind, "file_key", _FILE)(content, message_id)


def _sticker(content: Mapping[str, object], message_id: str) -> Content:
    return attrs.evolve(_media("image", "file_key", _FILE)(content, message_id), text="[sticker]")


def _guessed(name: str) -> str:
    from mimetypes import guess_type

    return guess_type(name, strict=False)[0] or "" if name else ""


# --- what else there is


def _shared_chat(content: Mapping[str, object], _: str) -> Content:
    return Content(text=f"[shared chat {text_of(content.get('chat_id'))}]")


def _shared_user(content: Mapping[str, object], _: str) -> Content:
    return Content(text=f"[shared contact {text_of(content.get('user_id'))}]")


def _location(content: Mapping[str, object], _: str) -> Content:
    place = ", ".join(str(content[key]) for key in ("latitude", "longitude") if content.get(key))
    return Content(text=f"[location {text_of(content.get('name'))} ({place})]")


def _system(content: Mapping[str, object], _: str) -> Content:
    words = text_of(content.get("template"))
    for key, value in content.items():
        if isinstance(value, list):
            words = words.replace("{" + key + "}", ", ".join(str(one) for one in value if one))
    return Content(text=f"[{words}]" if words else "[system message]")


def _todo(content: Mapping[str, object], _: str) -> Content:
    return Content(text=f"[task] {post_text(mapping_of(content.get('summary')))}".rstrip())


def _vote(content: Mapping[str, object], _: str) -> Content:
    options = content.get("options")
    words = ", ".join(str(one) for one in options) if isinstance(options, list) else ""
    return Content(text=f"[poll] {text_of(content.get('topic'))}" + (f": {words}" if words else ""))


def _dated(what: str, key: str) -> Callable[[Mapping[str, object], str], Content]:
    def read(content: Mapping[str, object], _: str) -> Content:
        times = [str(content[one]) for one in ("start_time", "end_time") if content.get(one)]
        return Content(text=f"[{what}] {text_of(content.get(key))} {' - '.join(times)}".rstrip())

    return read


_READERS: Mapping[str, Callable[[Mapping[str, object], str], Content]] = MappingProxyType(
    {
        "text": _text,
        "post": _post,
        CARD: _card,
        FORWARDED: _forwarded,
        "image": _media("image", "image_key", _IMAGE),
        "file": _file,
        "folder": _file,
        "audio": _media("audio", "file_key", _FILE, "audio/ogg"),
        "media": _media("video", "file_key", _FILE, "video/mp4"),
        "sticker": _sticker,
        "share_chat": _shared_chat,
        "share_user": _shared_user,
        "location": _location,
        "system": _system,
        "todo": _todo,
        "vote": _vote,
        "video_chat": _dated("video call", "topic"),
        "share_calendar_event": _dated("calendar event", "summary"),
        "general_calendar": _dated("calendar event", "summary"),
        "calendar": _dated("calendar event", "summary"),
    }
)
