"""What is remembered of an answer that is shown while it is written: plugins' state under :data:`NAMESPACE`.

One entry a delivery key. It is stored before the first text leaves, with the idempotency key of that message, and gets
the platform's message id before the first edit. Whoever delivers the answer, in whatever process, finds the entry and
edits that message; the transaction that marks the answer's first part as sent takes the entry away.

An entry, and no row of the outbox: a turn ends in many ways, some of which answer nothing, and a row that waits for an
answer would hold up everything behind it at its address until each of these ways had settled it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import attrs

from hermes_hookspecs.state import ABSENT, StateUpdate

if TYPE_CHECKING:
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.ports.store import StoreReader

__all__ = ["NAMESPACE", "ShownDraft", "forget", "opened", "read_draft", "shown"]

NAMESPACE: Final = "streaming"
KEPT_MS: Final = 7 * 86_400_000
"""How long the entry of an answer is kept that never came."""


@attrs.frozen(kw_only=True)
class ShownDraft:
    """One entry.

    Attributes:
        part_key: of the message that was, or may have been, sent. message_id: the platform's, ``None`` while nobody
            knows whether it was. version: of the entry.
    """

    part_key: str
    message_id: str | None
    version: int


def read_draft(reader: StoreReader, delivery_key: str, now: int) -> ShownDraft | None:
    """Return what is remembered of an answer, ``None`` where nothing of it was ever shown."""
    entry = reader.state(NAMESPACE, delivery_key, now=now)
    if entry is None:
        return None
    try:
        held = json.loads(entry.value)
        message_id = held["message_id"]
        return ShownDraft(
            part_key=str(held["part_key"]),
            message_id=None if message_id is None else str(message_id),
            version=entry.version,
        )
    except (ValueError, TypeError, KeyError):
        return None


def opened(delivery_key: str, part_key: str, lineage_id: LineageId, now: int) -> StateUpdate:
    """Return what is to be stored before the first text leaves; refused where there is an entry."""
    return _update(delivery_key, part_key, None, lineage_id, now, expected=ABSENT)


def shown(delivery_key: str, part_key: str, message_id: str, lineage_id: LineageId | None, now: int) -> StateUpdate:
    """Return what is to be stored before the first edit."""
    return _update(delivery_key, part_key, message_id, lineage_id, now, expected=None)


def forget(delivery_key: str) -> StateUpdate:
    """Return what takes an entry away."""
    return StateUpdate(namespace=NAMESPACE, key=delivery_key, value=None)


def _update(
    delivery_key: str,
    part_key: str,
    message_id: str | None,
    lineage_id: LineageId | None,
    now: int,
    *,
    expected: int | None,
) -> StateUpdate:
    return StateUpdate(
        namespace=NAMESPACE,
        key=delivery_key,
        value=json.dumps({"part_key": part_key, "message_id": message_id}),
        expected_version=expected,
        lineage_id=lineage_id,
        expires_at=now + KEPT_MS,
    )
