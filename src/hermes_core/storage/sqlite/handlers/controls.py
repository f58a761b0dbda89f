"""Control rows: the effect and the word that it ran, in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_core.storage.sqlite.handlers.registry import prepare
from hermes_core.storage.sqlite.queries.inbox import item
from hermes_core.storage.sqlite.rows import outcome_text
from hermes_hookspecs.errors import Conflict
from hermes_hookspecs.inbox import APPLIED, CONTROL, PENDING, SETTLED
from hermes_hookspecs.operations.outcomes import outcome_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.storage.sqlite.transaction import Transaction
    from hermes_hookspecs.inbox import ControlOutcome
    from hermes_hookspecs.operations import Control

__all__ = ["control"]

APPLY = "UPDATE inbox SET status = ?, settled_at = ?, outcome = ? WHERE id = ?"


def control(operation: Control) -> Callable[[Transaction], ControlOutcome]:
    """Work of :class:`~hermes_hookspecs.operations.Control`."""
    effect, inbox_id = operation.effect, operation.inbox_id
    run = None if effect is None else prepare(effect)

    def work(tx: Transaction) -> ControlOutcome:
        found = item(tx, inbox_id)
        if found is None or found.kind != CONTROL:
            raise Conflict(f"there is no command in row {inbox_id} of the inbox; nothing was done")
        if found.status in {APPLIED, SETTLED} and found.outcome is not None:
            return attrs.evolve(found.outcome, repeated=True)
        if found.status != PENDING:
            raise Conflict(f"the command in row {inbox_id} of the inbox is {found.status} by now; nothing was done")
        outcome = outcome_of(effect, None if run is None else run(tx))
        status, settled_at = (SETTLED, operation.now) if operation.settle else (APPLIED, None)
        tx.run(APPLY, (status, settled_at, outcome_text(outcome), inbox_id))
        return outcome

    return work
