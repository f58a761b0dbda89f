"""What the model sees beside the transcript."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.markers import hookspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.ids import LineageId, MessageId, SessionId
    from hermes_hookspecs.ports.services import ContextProvider
    from hermes_hookspecs.sessions import SessionEntry


@hookspec(kind="decision", on_error="skip")
def hermes_system_prompt_parts(entry: SessionEntry) -> Sequence[str] | None:
    """Return parts of the system text of a session that begins.

    Called once per session, at its first turn; the joined text is stored with the session and never made again, so
    the prompt's prefix is stable. All results are joined in order. A failure leaves that plugin's part out.

    .. versionadded:: 0.1
    """


@hookspec(kind="provider", on_error="skip", pending="context providers")
def hermes_context_providers() -> Sequence[ContextProvider] | None:
    """Return providers of labelled pieces (memory, retrieved passages) for each turn.

    Called once. What they hand in is stored exactly as sent, with the user row.

    .. versionadded:: 0.1
    """


@hookspec(kind="event", on_error="skip", pending="repair of the window")
def hermes_after_repair(
    lineage_id: LineageId, session_id: SessionId, kind: str, message_ids: Sequence[MessageId]
) -> None:
    """Tell that the outgoing copy of a window was repaired; the rows themselves were not touched.

    .. versionadded:: 0.1
    """
