"""Telling plugins what repair changed in what is sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.context.repair import new_repairs

if TYPE_CHECKING:
    from hermes_core.context.window import Window
    from hermes_core.hooks import Hooks
    from hermes_hookspecs.sessions import Session

__all__ = ["tell_repairs"]


def tell_repairs(hooks: Hooks, session: Session, window: Window) -> None:
    """Fire an event for each repair that the turn before did not make; returns at once.

    :param window: of a turn that begins, its own user rows last.
    """
    for repair in new_repairs(window.rows, window.repairs):
        hooks.fire(
            "hermes_after_repair",
            lineage_id=session.lineage_id,
            session_id=session.id,
            kind=repair.kind,
            message_ids=repair.message_ids,
        )
