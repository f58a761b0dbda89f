"""Writes of plugins' state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.operations.operation import Operation

if TYPE_CHECKING:
    from hermes_hookspecs.state import (
        StateEntry,  # noqa: F401 - named in a subscript, which linters do not read
        StateUpdate,
    )

__all__ = [
    "PutState",
]


@attrs.frozen(kw_only=True)
class PutState(Operation["tuple[StateEntry | None, ...]"]):
    """Write state of plugins; all or nothing. Returns the entries as they stand now, ``None`` for removed ones.

    :raises Conflict: an expected version did not fit; nothing was written.
    """

    updates: tuple[StateUpdate, ...]
    now: int
