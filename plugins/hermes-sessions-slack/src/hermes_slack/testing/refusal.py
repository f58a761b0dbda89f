"""How a method of a fake Slack says no."""

from __future__ import annotations

__all__ = ["Refusal"]


class Refusal(Exception):
    """An answer with ``ok: false``; its text is Slack's word for it."""
