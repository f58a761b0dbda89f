"""What processes wake each other for, beside the lineages themselves."""

from __future__ import annotations

__all__ = ["JOBS", "WORK"]

JOBS = "jobs"
"""Somebody may want a background job to end."""
WORK = "work"
"""Something may be there for whoever serves an entrance: a message, a command, a dead turn."""
