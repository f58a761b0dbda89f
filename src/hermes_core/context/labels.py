"""Names from outside on their way into a prompt: one line, without the brackets that would end them."""

from __future__ import annotations

__all__ = ["label_of"]

_BRACKETS = {ord("["): "(", ord("]"): ")"}


def label_of(name: str | None) -> str:
    """Return a name on one line, without the brackets that end it, at most 80 characters."""
    printable = "".join(c if c.isprintable() else " " for c in name or "")
    return " ".join(printable.translate(_BRACKETS).split())[:80]
