"""The base of all operations."""

from __future__ import annotations

from typing import ClassVar, Generic, TypeVar

__all__ = ["ACTIVITY_RESOLUTION_MS", "Operation"]

T_co = TypeVar("T_co", covariant=True)

ACTIVITY_RESOLUTION_MS = 1000
"""A touch within this time of the last activity writes nothing, so that a routing hit is a read."""


class Operation(Generic[T_co]):
    """Base of all operations; ``T_co`` is what ``Store.apply`` returns for it.

    :cvar is_kept: whether a power cut behind the answer must not undo it. False where nothing outside the store hangs
        on it: a store may answer once every process sees it. What is committed behind it is never kept without it.
    """

    __slots__ = ()

    is_kept: ClassVar[bool] = True
