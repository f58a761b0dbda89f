"""Our bot ``helpdesk`` is called ``desk`` now; its conversations go on where they were: a legacy claim."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.ids import SessionKey
from hermes_hookspecs.markers import hookimpl
from hermes_hookspecs.operations import Claim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs import KeyPolicy, SessionSource

OLD, NEW = "helpdesk", "desk"


class RenamedAccountPlugin:
    """Offers the key that a direct message had under the old name."""

    @hookimpl
    def hermes_legacy_claims(self, source: SessionSource, policy: KeyPolicy) -> Sequence[Claim] | None:
        chat = source.chat_id
        if source.account_id != NEW or source.chat_type != "dm" or source.thread_id or source.scope_id:
            return None
        # A key is claimed only where it can be spelled exactly: a wrong claim joins two people.
        if not chat or not (chat.isascii() and chat.replace("_", "").isalnum()):
            return None
        key = f"agent:{source.profile}:{source.platform}:dm:account={OLD}:chat={chat}"
        return (Claim(key=SessionKey(key)),)
