"""The one encoding of opaque ids in keys and owners: injective, printable, and it can be taken back.

``%``, ``:``, ``=``, blanks, control characters and halves of surrogate pairs are percent-encoded as UTF-8; everything
else stands as it is. Ids are never folded or trimmed.
"""

from __future__ import annotations

__all__ = ["decode_text", "encode_text"]


def encode_text(value: str) -> str:
    """Return ``value`` with every character that has a meaning in a key percent-encoded as UTF-8."""
    if value.isascii() and value.isalnum():
        return value
    return "".join(
        c if _plain(c) else "".join(f"%{byte:02X}" for byte in c.encode("utf-8", "surrogatepass")) for c in value
    )


def decode_text(text: str) -> str:
    """Return the value that :func:`encode_text` made ``text`` from. :raises ValueError: it made no such text."""
    value = _decoded(text) if "%" in text else text
    if encode_text(value) != text:
        raise ValueError(f"{text!r} is not an encoded value")
    return value


def _plain(character: str) -> bool:
    code = ord(character)
    if code < 0x80:
        return 0x20 < code < 0x7F and character not in "%:="
    return not (code < 0xA0 or 0xD800 <= code < 0xE000 or character.isspace())


def _decoded(text: str) -> str:
    raw = bytearray()
    index = 0
    while index < len(text):
        if text[index] == "%":
            raw.append(int(text[index + 1 : index + 3], 16))
            index += 3
        else:
            raw += text[index].encode("utf-8", "surrogatepass")
            index += 1
    return raw.decode("utf-8", "surrogatepass")
