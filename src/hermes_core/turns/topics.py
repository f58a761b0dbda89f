"""What processes wake each other for, beside the lineages themselves."""

from __future__ import annotations

__all__ = ["WORK"]

WORK = "work"
"""Something may be there for whoever serves an entrance: a message, a command, a dead turn."""
