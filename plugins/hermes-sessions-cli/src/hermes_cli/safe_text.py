"""Text from outside, made harmless where it is printed.

Titles, messages, names and error texts may hold terminal escapes, bidirectional overrides or halves of surrogate
pairs. What is printed goes through here; what is stored and exported keeps every character.
"""

from __future__ import annotations

import re

__all__ = ["SafeStream", "safe_json", "safe_line", "safe_text"]

# C0 without tab and line feed, DEL, C1, marks and overrides of direction, surrogates, interlinear annotation.
# Joiners (U+200C, U+200D) and variation selectors stay: emoji and several scripts are written with them.
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u206f\ud800-\udfff\ufff9-\ufffb]"
)


def _shown(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code < 0x20:
        return chr(0x2400 + code)  # the picture of the control character: ESC becomes one visible sign
    if code == 0x7F:
        return "\u2421"
    if 0xD800 <= code < 0xE000:
        return "\ufffd"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def safe_text(text: str) -> str:
    """Return ``text`` with every character that commands a terminal replaced by a visible sign.

    Line feeds and tabs stay, ``CR LF`` becomes a line feed. The result can always be encoded as UTF-8.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    return _UNSAFE.sub(_shown, text)


def safe_line(text: str) -> str:
    """Return :func:`safe_text` on one line: runs of blanks of every kind become one blank."""
    return safe_text(" ".join(text.split()))


def safe_json(text: str) -> str:
    r"""Return JSON text in which the same characters are ``\uXXXX``: nothing is lost, nothing commands a terminal."""
    return _UNSAFE.sub(lambda found: f"\\u{ord(found.group()):04x}" if found.group() != "\n" else "\n", text)


class SafeStream:
    """Text that arrives in pieces: a ``CR`` at the end of a piece waits for the ``LF`` that may follow."""

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """Return what of ``piece``, and of what was held back, can be printed now."""
        text = self._held + piece
        self._held = "\r" if text.endswith("\r") else ""
        return safe_text(text[:-1] if self._held else text)

    def end(self) -> str:
        """Return what was held back; the next piece begins anew."""
        held, self._held = self._held, ""
        return safe_text(held)
