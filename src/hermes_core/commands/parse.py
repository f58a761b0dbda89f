"""Is it a command? Only a slash, a name and its arguments, at the very beginning of what is said to us."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["parse_command", "without_mentions"]

_NAME_LIMIT: Final = 32
_MENTION: Final = re.compile(r"\s*(?:<@[^<>\s]{1,128}>|@[^\s@/<>]{1,64}(?=\s))\s*")
"""``<@U0BOT>``, ``@_user_1 ``, ``@Bot ``: as platforms write a mention that their adapter left in the text."""
_MOST_MENTIONS: Final = 5


def parse_command(text: str) -> tuple[str, str] | None:
    """Return the name (lower case, without slash) and the arguments of a command, ``None`` for any other text.

    ``/usr/bin/env`` and ``/ hello`` are text; ``/New plan``, ``/new@our_bot plan`` and ``@bot /new`` are commands.
    """
    stripped = without_mentions(text)
    if not stripped.startswith("/"):
        return None
    head, *rest = [""] if stripped[1:2].isspace() else stripped[1:].split(maxsplit=1) or [""]
    name, _, bot = head.partition("@")
    name = name.lower()
    if not name or len(name) > _NAME_LIMIT or not name.replace("_", "").replace("-", "").isalnum():
        return None
    if not name[0].isalpha() or (bot and not bot.replace("_", "").isalnum()):
        return None
    return name, rest[0].strip() if rest else ""


def without_mentions(text: str) -> str:
    """Return a text without white space around it, and without the mentions that stand before a slash.

    Mentions before anything else are part of what is said, and stay.
    """
    stripped = text.strip()
    rest = stripped
    for _ in range(_MOST_MENTIONS):
        found = _MENTION.match(rest)
        if found is None:
            break
        rest = rest[found.end() :]
    return rest if rest.startswith("/") else stripped
