"""Writes of the inbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.operations.operation import Operation

if TYPE_CHECKING:
    from hermes_hookspecs.ids import InboxId
    from hermes_hookspecs.inbox import (
        AcceptResult,  # noqa: F401 - named in a subscript, which linters do not read
        InboxDraft,
    )
    from hermes_hookspecs.state import StateUpdate

__all__ = [
    "Accept",
    "Withdraw",
]


@attrs.frozen(kw_only=True)
class Accept(Operation["tuple[AcceptResult, ...]"]):
    """Store a batch and the adapter's state in one transaction; results in order of ``drafts``.

    A draft with a known identity is a duplicate, also of an earlier draft of the same batch. Rows of a key whose
    route leads to a lineage get it at once. A full queue refuses the single draft, visibly.

    Attributes:
        max_waiting: most pending rows of one key. state: cursor and other state of the adapter.
    """

    drafts: tuple[InboxDraft, ...]
    now: int
    max_waiting: int = 100
    state: tuple[StateUpdate, ...] = ()


@attrs.frozen(kw_only=True)
class Withdraw(Operation[int]):
    """Take back pending rows whose entrance leaves; return how many were still pending."""

    ids: tuple[InboxId, ...]
    now: int
