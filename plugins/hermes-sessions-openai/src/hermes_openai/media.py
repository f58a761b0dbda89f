"""Attachments as a model takes them: pictures, sounds and documents inside a message, beside its text.

What a file is its first bytes say, not its name: an endpoint refuses what is called otherwise, and a name comes from
outside. What no endpoint takes in this form is left to the text that stands for it.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hermes_hookspecs.messages import Attachment
    from hermes_hookspecs.ports.services import AttachmentReader

__all__ = ["Wire", "format_of", "has_media", "media_part", "media_parts", "text_only"]

Wire = dict[str, object]
"""A JSON object, its keys in the order in which they are sent."""

_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"ID3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"\x1aE\xdf\xa3", "audio/webm"),
)
_SOUNDS = {"audio/wav": "wav", "audio/mpeg": "mp3"}


def format_of(data: bytes) -> str:
    """Return the media type that the first bytes of a file say, ``""`` for one that is not known here."""
    for beginning, media_type in _BEGINNINGS:
        if data.startswith(beginning):
            return media_type
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12], "")
    if data[4:8] == b"ftyp":
        return "audio/mp4"
    return "audio/mpeg" if len(data) > 1 and data[0] == 0xFF and data[1] & 0xE6 == 0xE2 else ""


def media_parts(
    attachments: Sequence[Attachment], files: AttachmentReader, *, kinds: Sequence[str], most_bytes: int
) -> list[Wire]:
    """Return what is sent of a turn's attachments beside their text, in order. Blocks: reads and encodes bytes.

    :param kinds: that the model takes. most_bytes: of one; what is larger, or not there, is left out.
    """
    parts: list[Wire] = []
    for one in attachments:
        if one.kind not in kinds or one.sha256 is None:
            continue
        data = files.get(one.sha256)
        part = None if data is None or len(data) > most_bytes else media_part(one, data)
        if part is not None:
            parts.append(part)
    return parts


def media_part(attachment: Attachment, data: bytes) -> Wire | None:
    """Return one attachment as part of a message, ``None`` for what has no such form."""
    media_type = format_of(data)
    if attachment.kind == "image" and media_type.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": _url(media_type, data)}}
    if attachment.kind == "audio" and media_type in _SOUNDS:
        return {"type": "input_audio", "input_audio": {"data": _base64(data), "format": _SOUNDS[media_type]}}
    if attachment.kind == "document" and media_type == "application/pdf":
        name = "".join(c for c in attachment.name if c.isprintable())[:200] or "document.pdf"
        return {"type": "file", "file": {"filename": name, "file_data": _url(media_type, data)}}
    return None


def has_media(body: Mapping[str, object]) -> bool:
    """Return whether a request holds anything but text."""
    messages = body.get("messages")
    return isinstance(messages, list) and any(isinstance(one.get("content"), list) for one in messages)


def text_only(body: Mapping[str, object]) -> Wire:
    """Return a request in which texts alone stand where they stood beside something else."""
    messages = body.get("messages")
    plain = [_plain(one) for one in messages] if isinstance(messages, list) else messages
    return {name: plain if name == "messages" else value for name, value in body.items()}


def _plain(message: Wire) -> Wire:
    content = message.get("content")
    if not isinstance(content, list):
        return message
    texts = [str(part["text"]) for part in content if part.get("type") == "text"]
    return message | {"content": "\n".join(texts)}


def _url(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{_base64(data)}"


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")
