"""What an app offers around contexts: the bytes of attachments, and what a model would be sent now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from hermes_hookspecs.context import WindowReport
    from hermes_hookspecs.ids import SessionId
    from hermes_hookspecs.ports.services import AttachmentStore

__all__ = ["Contexts"]


class Contexts(Protocol):
    """Contexts of an open profile."""

    @property
    def attachments(self) -> AttachmentStore:
        """Return where bytes of attachments are kept: they are put there before a message names them."""
        ...

    def context_report(self, session_id: SessionId) -> WindowReport:
        """Return what a model would be sent now in a session: parts, tokens, what was left out and repaired. Blocks.

        :raises SessionNotFound: no such session.
        """
        ...
