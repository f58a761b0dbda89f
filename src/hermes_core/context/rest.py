"""The rest after a compression that was of no use: kept in the store, ended by time or by growth."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.operations import PutState
from hermes_hookspecs.state import StateUpdate

if TYPE_CHECKING:
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.ports.policies import CompressionView
    from hermes_hookspecs.ports.store import Store, StoreReader

__all__ = ["Rest", "note_rest", "read_rest"]

NAMESPACE = "hermes.compression"
_FIRST_MS = 600_000
_MOST_DOUBLINGS = 6
_GROWTH = 1.2
_REMEMBERED_MS = 86_400_000
"""How long a rest that is over still makes the next one longer."""


@attrs.frozen(kw_only=True)
class Rest:
    """How often compressing a context was of no use, and until when it is left alone.

    Attributes:
        strikes: useless compressions in a row. until: UTC milliseconds. tokens: of the context then. reason: one line.
    """

    strikes: int
    until: int
    tokens: int
    reason: str

    def holds(self, tokens: int, now: int) -> bool:
        """Return whether a context of so many tokens is left alone; one that grew by a fifth is not."""
        return now < self.until and tokens < _GROWTH * self.tokens


def read_rest(reader: StoreReader, lineage_id: LineageId, now: int) -> Rest | None:
    """Return the last rest of a lineage that is remembered, over or not."""
    import json

    entry = reader.state(NAMESPACE, lineage_id, now=now)
    if entry is None:
        return None
    try:
        return Rest(**json.loads(entry.value))
    except (ValueError, TypeError):
        return None  # of another version: nothing that was counted then helps now


async def note_rest(store: Store, view: CompressionView, now: int, reason: str, *, strikes: int | None = None) -> Rest:
    """Write down that compressing a context was of no use: 10 minutes, then twice as long each time, at most 10 hours.

    :param strikes: count from here instead of from what is remembered.
    """
    import json

    lineage_id = view.session.lineage_id
    before = await asyncio.wrap_future(store.submit_read(lambda reader: read_rest(reader, lineage_id, now)))
    count = strikes if strikes is not None else 1 + (0 if before is None else before.strikes)
    until = now + _FIRST_MS * 2 ** min(count - 1, _MOST_DOUBLINGS)
    rest = Rest(strikes=count, until=until, tokens=view.tokens, reason=reason)
    update = StateUpdate(
        namespace=NAMESPACE,
        key=lineage_id,
        value=json.dumps(attrs.asdict(rest)),
        lineage_id=lineage_id,
        expires_at=until + _REMEMBERED_MS,
    )
    await store.perform(PutState(updates=(update,), now=now))
    return rest
