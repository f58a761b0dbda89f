"""The journal of routes: which route went from one key to another, which was refused, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_hookspecs.ids import LineageId, SessionKey
    from hermes_hookspecs.operations import Claim
    from hermes_hookspecs.principal import Owner
    from hermes_hookspecs.source import KeyPolicy, SessionSource

__all__ = ["CLAIMED", "MOVED", "REFUSED", "RETURNED", "RouteMove", "claimed_for", "refused_to"]

CLAIMED = "claimed"
"""A message of another key took the route over (:class:`~hermes_hookspecs.operations.Claim`)."""
REFUSED = "refused"
"""A message of another key asked for the route and did not get it; it began a session of its own."""
MOVED = "moved"
"""A change of the key policy was applied to it."""
RETURNED = "returned"
"""That was undone."""


@attrs.frozen(kw_only=True)
class RouteMove:
    """One line of the journal. Lines are added, and go with their lineage, or when they are old; none is changed.

    Attributes:
        id: grows with every line. kind: one of the words above. at: UTC milliseconds.
        key: where the route stood. new_key: where it went, or which key asked for it.
        batch: of what was applied together; ``None`` for a claim.
        reason: in words, for people.
        key_version, policy: of the route before. owner, shared: of its lineage before.
    """

    id: int
    kind: str
    key: SessionKey
    new_key: SessionKey
    lineage_id: LineageId
    at: int
    batch: str | None
    reason: str
    key_version: int
    policy: KeyPolicy
    owner: Owner
    shared: bool


def claimed_for(recorded: str | None, scope_id: str | None) -> str:
    """Return why a claim was granted.

    :param recorded: scope of the route before. scope_id: of the message that took it over.
    """
    if recorded is not None:
        return f"recorded for {recorded!r}"
    if scope_id is not None:
        return f"recorded without a scope; first asked for by {scope_id!r}"
    return "an older key of the same place"


def refused_to(recorded: SessionSource, asking: SessionSource, claims: Iterable[Claim]) -> str:
    """Return why claims of one route were refused.

    :param recorded: source of the route. asking: of the message. claims: those that ask for this route.
    """
    was = "without a scope" if recorded.scope_id is None else f"for {recorded.scope_id!r}"
    if any(claim.scope_id == recorded.scope_id for claim in claims):  # then it was the person
        was = f"{was}, for {recorded.user_id!r}"
        asked = repr(asking.user_id) if asking.user_id is not None else "a message of nobody"
        if asking.scope_id is not None:
            asked = f"{asked} of {asking.scope_id!r}"
    else:
        asked = "a message without one" if asking.scope_id is None else repr(asking.scope_id)
    return f"recorded {was}, asked for by {asked}; it could be somebody else's"
