"""Tokens and money."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_hookspecs.turns import ACTIVE

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.storage.sqlite.transaction import Transaction
    from hermes_hookspecs.operations import RecordUsage
    from hermes_hookspecs.turns import Usage

__all__ = ["add_usage", "record_usage"]

INSERT = """
    INSERT INTO usage (turn_id, at, late, model, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
        estimated_cost_usd)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
# Tokens: what was reported. A cost is unknown as soon as one report had none; the first report finds nothing.
ADD = """
    UPDATE sessions SET
        input_tokens = coalesce(input_tokens + ?1, input_tokens, ?1),
        output_tokens = coalesce(output_tokens + ?2, output_tokens, ?2),
        cache_read_tokens = coalesce(cache_read_tokens + ?3, cache_read_tokens, ?3),
        cache_write_tokens = coalesce(cache_write_tokens + ?4, cache_write_tokens, ?4),
        estimated_cost_usd = iif(
            coalesce(input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, estimated_cost_usd) IS NULL,
            ?5, estimated_cost_usd + ?5
        )
    WHERE id = ?6
"""
TURN = "SELECT session_id, outcome FROM turns WHERE id = ?"


def add_usage(tx: Transaction, turn_id: str, session_id: str, usage: Usage, now: int, *, late: bool) -> None:
    """Store usage of a turn and add it to its session's counters."""
    numbers = (
        usage.input_tokens,
        usage.output_tokens,
        usage.cache_read_tokens,
        usage.cache_write_tokens,
        usage.estimated_cost_usd,
    )
    tx.run(INSERT, (turn_id, now, late, usage.model, *numbers))
    tx.run(ADD, (*numbers, session_id))


def record_usage(operation: RecordUsage) -> Callable[[Transaction], None]:
    """Work of :class:`~hermes_hookspecs.operations.RecordUsage`."""

    def work(tx: Transaction) -> None:
        found = tx.one(TURN, (operation.turn_id,))
        if found is not None:
            session_id, outcome = cast("tuple[str, str]", found)  # columns of TURN
            add_usage(tx, operation.turn_id, session_id, operation.usage, operation.now, late=outcome != ACTIVE)

    return work
