"""Where keys lead: read from the store, as it is now."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_hookspecs.ids import InboxId, LineageId, SessionKey
    from hermes_hookspecs.operations import Claim
    from hermes_hookspecs.ports.store import Store

__all__ = ["key_behind", "leads_to", "may_claim"]


def leads_to(store: Store, key: SessionKey) -> LineageId | None:
    """Return the lineage that a key leads to, ``None`` where it leads nowhere."""
    route = store.route(key)
    return None if route is None else route.lineage_id


def key_behind(store: Store, control_id: InboxId | None, otherwise: Callable[[], SessionKey]) -> SessionKey:
    """Return the key that a command is about: its row's own, which today's settings may build otherwise.

    :param otherwise: builds the key of a command that has no row.
    """
    item = None if control_id is None else store.inbox_item(control_id)
    return otherwise() if item is None else item.session_key


def may_claim(store: Store, claims: Sequence[Claim]) -> bool:
    """Return whether the next message with these claims takes an older route over: a command speaks of that session."""
    from hermes_core.routing.claims import fitting

    return fitting(store.route, claims) is not None
