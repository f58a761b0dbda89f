"""Is it a command? Only a slash, a name and its arguments, at the very beginning of a message."""

from __future__ import annotations

__all__ = ["parse_command"]

_NAME_LIMIT = 32


def parse_command(text: str) -> tuple[str, str] | None:
    """Return the name (lower case, without slash) and the arguments of a command, ``None`` for any other text.

    ``/usr/bin/env`` and ``/ hello`` are text; ``/New plan`` and ``/new@our_bot plan`` are commands.
    """
    stripped = text.strip()
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
