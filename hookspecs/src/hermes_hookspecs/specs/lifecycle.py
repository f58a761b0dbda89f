"""What happens to sessions and turns, told after it is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.markers import hookspec

if TYPE_CHECKING:
    from hermes_hookspecs.ids import LineageId, SessionId
    from hermes_hookspecs.sessions import SessionEntry
    from hermes_hookspecs.turns import Lease, Turn


@hookspec(kind="event", on_error="skip")
def hermes_after_open(profile: str, home: str) -> None:
    """Tell that a profile is open, its plugins loaded and its store ready.

    .. versionadded:: 0.1
    """


@hookspec(kind="event", on_error="skip")
def hermes_before_close(profile: str) -> None:
    """Tell that a profile closes; the store still works.

    .. versionadded:: 0.1
    """


@hookspec(kind="event", on_error="skip")
def hermes_after_session_start(entry: SessionEntry) -> None:
    """Tell that a session was made; once per session, not per turn.

    .. versionadded:: 0.1
    """


@hookspec(kind="event", on_error="skip")
def hermes_after_session_end(lineage_id: LineageId, session_id: SessionId, reason: str) -> None:
    """Tell that a session ended: ``session_reset``, ``session_switch``, ``new_session``, ``compression``, ...

    .. versionadded:: 0.1
    """


@hookspec(kind="event", on_error="skip")
def hermes_after_title_change(lineage_id: LineageId, title: str | None, origin: str) -> None:
    """Tell that a lineage has another title; ``origin`` is ``user`` or ``auto``.

    .. versionadded:: 0.1
    """


@hookspec(kind="event", on_error="skip")
def hermes_after_turn_start(turn: Turn) -> None:
    """Tell that a turn holds its lease and its user rows are stored.

    Exactly one :func:`hermes_after_turn_finish` follows while the process lives; else recovery tells it.

    .. versionadded:: 0.1
    """


@hookspec(kind="event", on_error="skip")
def hermes_after_turn_finish(turn: Turn) -> None:
    """Tell how a turn ended: ``turn.outcome`` is ``done``, ``failed``, ``stopped`` or ``interrupted``.

    .. versionadded:: 0.1
    """


@hookspec(kind="event", on_error="skip")
def hermes_after_lease_contention(lease: Lease, waited_s: float) -> None:
    """Tell that somebody waits for a lineage that another one holds; once per waiter, after the notice time.

    .. versionadded:: 0.1
    """


@hookspec(kind="event", on_error="skip")
def hermes_before_erase(lineage_id: LineageId) -> None:
    """Tell that a lineage is about to be removed, so that what hangs on it elsewhere can go, too.

    Runs before the store removes it; a failure does not keep it.

    .. versionadded:: 0.1
    """
