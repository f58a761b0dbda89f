"""Platforms, delivery, handoff."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.markers import hookspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.ids import LineageId, SessionKey
    from hermes_hookspecs.inbox import MessageEvent
    from hermes_hookspecs.ports.platform import Platform
    from hermes_hookspecs.source import Entrance


@hookspec(kind="provider", on_error="skip")
def hermes_platforms() -> Sequence[Platform] | None:
    """Return chat platforms; each configured account gets an adapter. A failure leaves that platform out.

    Called once, when the gateway starts or is asked what is configured. Of two with one name the plugin asked first
    has it.

    .. versionadded:: 0.1
    """


@hookspec(kind="event", on_error="skip")
def hermes_after_message_refused(event: MessageEvent, reason: str) -> None:
    """Tell that access refused a message; its text is empty here, only identity and reason are kept.

    Not told of what members of a group say to each other (``require_mention``).

    .. versionadded:: 0.1
    """


@hookspec(kind="event", on_error="skip")
def hermes_after_inbox_overflow(session_key: SessionKey, waiting: int) -> None:
    """Tell that the queue of a key was full and a message was refused, visibly for its sender.

    .. versionadded:: 0.1
    """


@hookspec(kind="event", on_error="skip")
def hermes_after_delivery(lineage_id: LineageId | None, entrance: Entrance, status: str, attempts: int) -> None:
    """Tell that an answer was sent, deferred or failed for good (``sent``, ``deferred``, ``failed``).

    :param lineage_id: ``None`` for an answer to a message that no session took, as a command's reply.
    :param entrance: the account that sends. attempts: how often it was taken to be sent.

    .. versionadded:: 0.1
    """


@hookspec(kind="event", on_error="skip", pending="handoff")
def hermes_after_handoff(lineage_id: LineageId, origin: Entrance, target: Entrance, status: str) -> None:
    """Tell a transition: ``pending``, ``running``, ``completed``, ``failed`` or ``expired``.

    .. versionadded:: 0.1
    """
