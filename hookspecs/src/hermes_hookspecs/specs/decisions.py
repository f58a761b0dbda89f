"""Answers of decision hooks."""

from __future__ import annotations

import attrs

__all__ = ["AccessDecision", "Allow", "Ignore", "Refuse"]


@attrs.frozen(kw_only=True)
class Allow:
    """The message comes in. ``roles`` are added to its principal."""

    roles: frozenset[str] = frozenset()


@attrs.frozen(kw_only=True)
class Refuse:
    """The sender is told ``reply``; only identity and ``reason`` are kept."""

    reason: str
    reply: str


@attrs.frozen(kw_only=True)
class Ignore:
    """Nobody is told; the refusal is counted with its ``reason``."""

    reason: str


AccessDecision = Allow | Refuse | Ignore
