"""Is it a command? Only a slash, a name and its arguments, at the very beginning of what is said to us."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["bare", "parse_command", "without_mentions"]

_NAME_LIMIT: Final = 32
_MENTION: Final = re.compile(r"\s*(?:<@[^<>\s]{1,128}>|@[^\s@/<>]{1,64}(?=\s))\s*")
"""``<@U0BOT>``, ``@_user_1 ``, ``@Bot ``: as platforms write a mention that their adapter left in the text."""
_MOST_MENTIONS: Final = 5
_SLASHES: Final = ("/", "\uff0f")
"""The second one is the slash of a Chinese or Japanese keyboard in full width."""
_UNSEEN: Final = "\ufeff\u200b\u200c\u200d\u200e\u200f\u2060"
"""What is pasted or put in front by programs, and nobody sees: it hides no command."""


def parse_command(text: str) -> tuple[str, str] | None:
    """Return the name (lower case, without slash) and the arguments of a command, ``None`` for any other text.

    ``/usr/bin/env`` and ``/ hello`` are text; ``/New plan``, ``/new@our_bot plan`` and ``@bot /new`` are commands, and
    so is each of them in full width.
    """
    stripped = without_mentions(text)
    if not stripped.startswith(_SLASHES):
        return None
    head, *rest = [""] if stripped[1:2].isspace() else stripped[1:].split(maxsplit=1) or [""]
    name, _, bot = head.partition("@")
    name = _plain(name.rstrip(_UNSEEN)).lower()
    if not name or len(name) > _NAME_LIMIT or not name.replace("_", "").replace("-", "").isalnum():
        return None
    if not name[0].isalpha() or (bot and not bot.replace("_", "").isalnum()):
        return None
    return name, rest[0].strip() if rest else ""


def without_mentions(text: str) -> str:
    """Return a text without what is blank or unseen before it, and without mentions that stand before a slash.

    Mentions before anything else are part of what is said, and stay.
    """
    rest = stripped = bare(text)
    for _ in range(_MOST_MENTIONS):
        found = _MENTION.match(rest)
        if found is None:
            break
        rest = rest[found.end() :]
    return rest if rest.startswith(_SLASHES) else stripped


def bare(text: str) -> str:
    """Return a text without white space around it, and without characters in front that nobody sees."""
    return text.strip().lstrip(_UNSEEN).strip()


def _plain(name: str) -> str:
    """Return a name with letters of full width in their usual form."""
    if name.isascii():
        return name
    from unicodedata import normalize

    return normalize("NFKC", name)
