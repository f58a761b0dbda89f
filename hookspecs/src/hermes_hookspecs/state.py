"""What plugins remember: namespaced keys with JSON values, compared and set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from hermes_hookspecs.ids import LineageId

__all__ = ["ABSENT", "CONVERSATION", "Change", "StateEntry", "StateUpdate"]

ABSENT = 0
"""Expected version of an entry that must not exist yet."""
CONVERSATION = "conversation"
"""Namespace of what holds for one conversation alone, such as another model. Its entries name their lineage, and go in
the transaction in which a reset lets go of it; what a lineage has under other namespaces stays until it is deleted."""


@attrs.frozen(kw_only=True)
class StateEntry:
    """One stored value. ``version`` begins at 1 and grows with every write; ``value`` is JSON text."""

    namespace: str
    key: str
    value: str
    version: int
    updated_at: int
    person: str | None = None
    lineage_id: LineageId | None = None
    expires_at: int | None = None


@attrs.frozen(kw_only=True)
class StateUpdate:
    """One write.

    Attributes:
        namespace: the plugin's name. value: JSON text; ``None`` removes the entry.
        expected_version: the write is refused unless the entry has it (:data:`ABSENT`: unless there is none);
            ``None`` writes always.
        person, lineage_id: whose it is, so that erase reaches it; gone with the lineage.
        expires_at: UTC milliseconds from which reads do not see it any more.
    """

    namespace: str
    key: str
    value: str | None
    expected_version: int | None = None
    person: str | None = None
    lineage_id: LineageId | None = None
    expires_at: int | None = None


@attrs.frozen(kw_only=True)
class Change:
    """One entry of the change feed, from which derived data is made.

    Attributes:
        kind: ``insert``, ``change``, ``hide``, ``show``, ``delete`` (of a message) or ``lineage`` (title, flags,
            owner; ``delete-lineage`` when it is gone).
        session_id: of the message; once its lineage is gone, of the lineage's tip. ``None`` for changes of a lineage.
        message_id: ``None`` for changes of a lineage.
    """

    kind: str
    lineage_id: LineageId
    session_id: str | None
    message_id: int | None
    at: int
