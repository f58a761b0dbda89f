"""What the next session begins with: which conversation a route has let go of, until somebody speaks there again.

Only the name is kept. The summary is made when the next session is, so that no reset ever waits for one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_hookspecs.ids import LineageId, SessionKey
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.state import StateUpdate

__all__ = ["ALWAYS", "NAMESPACE", "NEVER", "carried_from", "carrying", "forgetting"]

NAMESPACE = "builtin.carry"
NEVER, ALWAYS = "never", "always"
"""Values of ``[session_reset] carry_over``; between them stands ``automatic``: only where a policy ends something."""
_KEPT_MS = 30 * 86_400_000


def carrying(key: SessionKey, lineage_id: LineageId, now: int) -> tuple[StateUpdate, ...]:
    """Return the write that remembers what the next session under a key begins with."""
    from json import dumps

    from hermes_hookspecs.state import StateUpdate

    value, until = dumps(lineage_id), now + _KEPT_MS
    return (StateUpdate(namespace=NAMESPACE, key=key, value=value, lineage_id=lineage_id, expires_at=until),)


def forgetting(key: SessionKey) -> tuple[StateUpdate, ...]:
    """Return the write after which the next session under a key begins with nothing."""
    from hermes_hookspecs.state import StateUpdate

    return (StateUpdate(namespace=NAMESPACE, key=key, value=None),)


def carried_from(reader: StoreReader, key: SessionKey, now: int) -> LineageId | None:
    """Return the conversation that the next session under a key begins with a summary of."""
    entry = reader.state(NAMESPACE, key, now=now)
    if entry is None:
        return None
    from json import loads

    from hermes_hookspecs.ids import LineageId

    return LineageId(loads(entry.value))
