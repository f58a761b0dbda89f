"""The base of all operations."""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["ACTIVITY_RESOLUTION_MS", "Operation"]

T_co = TypeVar("T_co", covariant=True)

ACTIVITY_RESOLUTION_MS = 1000
"""A touch within this time of the last activity writes nothing, so that a routing hit is a read."""


class Operation(Generic[T_co]):
    """Base of all operations; ``T_co`` is what ``Store.apply`` returns for it."""

    __slots__ = ()
