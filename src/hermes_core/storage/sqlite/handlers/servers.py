"""Who serves which entrance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.storage.sqlite.rows import entrance_text, holder_text, process_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.storage.sqlite.transaction import Transaction
    from hermes_hookspecs.operations import LeaveEntrances, ServeEntrances

__all__ = ["leave_entrances", "serve_entrances"]

SERVE = """
    INSERT INTO entrance_servers (process, entrance, holder, beats, since) VALUES (?, ?, ?, 1, ?)
    ON CONFLICT (process, entrance) DO UPDATE SET beats = beats + 1, holder = excluded.holder
"""
LEAVE = "DELETE FROM entrance_servers WHERE process = ?"


def serve_entrances(operation: ServeEntrances) -> Callable[[Transaction], None]:
    """Work of :class:`~hermes_hookspecs.operations.ServeEntrances`."""
    process, holder = process_text(operation.holder), holder_text(operation.holder)
    entrances = [entrance_text(entrance) for entrance in dict.fromkeys(operation.entrances)]

    def work(tx: Transaction) -> None:
        tx.run_many(SERVE, [(process, entrance, holder, operation.now) for entrance in entrances])

    return work


def leave_entrances(operation: LeaveEntrances) -> Callable[[Transaction], None]:
    """Work of :class:`~hermes_hookspecs.operations.LeaveEntrances`."""
    processes = [process_text(holder) for holder in operation.holders]

    def work(tx: Transaction) -> None:
        tx.run_many(LEAVE, [(process,) for process in processes])

    return work
