"""What became of each plugin: the rows of ``hermes plugins list``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import attrs

if TYPE_CHECKING:
    import hermes_hookspecs.ports.app as contract

__all__ = ["BUILT_IN", "LoadReport", "PluginRow", "Stage", "contract_row"]

Stage = Literal["loaded", "blocked", "incompatible", "failed", "unregistered"]

BUILT_IN = "(built in)"
"""Stands where a plugin of the core has no distribution of its own."""


# Nobody compares rows, and comparison is a third of what such a class costs at every start.
@attrs.frozen(kw_only=True, eq=False)
class PluginRow:
    """One plugin, whatever became of it.

    ``failed_at``: ``discover``, ``import``, ``create`` or ``register``, empty unless ``stage`` is *failed*.
    ``reason``: one line for people, empty when loaded. ``import_ms``: how long its import took. ``hooks``: names of
    the hooks it implements, sorted. ``failures``: exceptions of its hooks so far. ``quarantined``: its *skip* hooks
    are left out. ``error``: what was raised, for programs.
    """

    name: str
    distribution: str
    version: str
    stage: Stage
    failed_at: str = ""
    reason: str = ""
    import_ms: float = 0.0
    hooks: tuple[str, ...] = ()
    failures: int = 0
    quarantined: bool = False
    error: Exception | None = attrs.field(default=None, repr=False)


@attrs.frozen(kw_only=True, eq=False)
class LoadReport:
    """The outcome of one load: ``rows`` in the order in which hooks are called, user plugins by name, then built-ins.

    ``notices``: lines about settings that name a plugin which is not installed.
    """

    rows: tuple[PluginRow, ...]
    notices: tuple[str, ...] = ()

    def of(self, stage: Stage) -> tuple[PluginRow, ...]:
        """Return the rows of one stage, in the same order."""
        return tuple(row for row in self.rows if row.stage == stage)


def contract_row(row: PluginRow) -> contract.PluginRow:
    """Return a row as front ends know it: the stage says where a failed plugin failed."""
    from hermes_hookspecs.ports.app import PluginRow as Shown

    return Shown(
        name=row.name,
        distribution=row.distribution,
        version=row.version,
        stage=f"failed at {row.failed_at}" if row.stage == "failed" else row.stage,
        reason=row.reason,
        import_ms=row.import_ms or None,
        hooks=row.hooks,
        failures=row.failures,
        quarantined=row.quarantined,
    )
