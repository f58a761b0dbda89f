"""Reset, compression, background activity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.markers import hookspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.ids import LineageId, SessionId
    from hermes_hookspecs.ports.policies import Activity, CompressionPolicy, ResetPolicy


@hookspec(kind="provider", on_error="raise")
def hermes_reset_policies() -> Sequence[ResetPolicy] | None:
    """Return reset policies; ``[session_reset] mode`` picks one by name.

    Called once when the profile opens. All results are joined; the same name twice is an error. Fails closed: where
    a policy cannot be had nothing is reset.

    .. versionadded:: 0.1
    """


@hookspec(kind="provider", on_error="skip")
def hermes_compression_policies() -> Sequence[CompressionPolicy] | None:
    """Return compression policies; they are asked in order, the first cut is taken. ``hygiene`` is built in.

    Called once, before the first turn; the policies themselves are asked before each turn loads its context, and when a
    person wants a compression. ``hygiene`` is asked last. A policy that raises is logged and passed over.

    .. versionadded:: 0.1
    """


@hookspec(kind="decision", on_error="raise")
def hermes_background_activity(lineage_id: LineageId) -> Sequence[Activity] | None:
    """Return what runs for a lineage while nobody talks. All results are joined.

    Fails closed: an exception counts as activity, and nothing is reset.

    .. versionadded:: 0.1
    """


@hookspec(kind="event", on_error="skip")
def hermes_after_reset(lineage_id: LineageId, session_id: SessionId, reason: str, automatic: bool) -> None:
    """Tell that a route let go of its lineage; no history was lost.

    .. versionadded:: 0.1
    """


@hookspec(kind="event", on_error="skip")
def hermes_after_compression(lineage_id: LineageId, parent_id: SessionId, child_id: SessionId) -> None:
    """Tell that a session goes on in a child with a summary, or, uncompressed, with more of what was said.

    Runs after commit, at most once. All are called.

    .. versionadded:: 0.1
    """
