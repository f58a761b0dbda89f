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


@hookspec(kind="provider", on_error="skip")
def hermes_context_providers() -> Sequence[ContextProvider] | None:
    """Return providers of labelled pieces (memory, retrieved passages) for each turn.

    Called once, before the first turn. All results are joined; the providers themselves are asked before each turn
    begins, all at once. What they hand in goes before the message in order of priority, as far as the token budget
    goes, and is stored exactly as sent, with the user row: the order of plugins changes nothing. A failure is logged
    and the others are there.

    .. versionadded:: 0.1
    """


@hookspec(kind="event", on_error="skip")
def hermes_after_repair(
    lineage_id: LineageId, session_id: SessionId, kind: str, message_ids: Sequence[MessageId]
) -> None:
    """Tell that the outgoing copy of a window was repaired; the rows themselves were not touched.

    Told once per repair, when the first turn begins whose window needs it; later turns repeat it in silence.

    :param kind: a key of :data:`~hermes_hookspecs.context.REPAIR_REASONS`, which says why.
    :param message_ids: the rows it is about, oldest first.

    .. versionadded:: 0.1
    """
