"""Older keys whose route a message may take over, and what came of asking."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.operations import Claim
from hermes_hookspecs.sessions.moves import refused_to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hermes_hookspecs.ids import SessionKey
    from hermes_hookspecs.ports.policies import KeyBuilder
    from hermes_hookspecs.sessions import Route
    from hermes_hookspecs.source import KeyPolicy, SessionSource

    Legacy = Callable[[SessionSource, KeyPolicy], tuple[Claim, ...]]

__all__ = ["claims_of", "fitting", "refused"]


def claims_of(keys: KeyBuilder, legacy: Legacy, source: SessionSource, policy: KeyPolicy) -> tuple[Claim, ...]:
    """Return the claims of a message whose key has no route yet: the key builder's own, then those of plugins.

    :param legacy: asks the plugins.
    """
    older = keys.alternatives(source, policy)
    return (*(Claim(key=key, scope_id=source.scope_id) for key in older), *legacy(source, policy))


def fitting(route: Callable[[SessionKey], Route | None], claims: Iterable[Claim]) -> Claim | None:
    """Return the claim that a store would grant now, ``None`` where it would grant none.

    :param route: reads a route by its key.
    """
    return next((claim for claim in claims if _fits(route(claim.key), claim)), None)


def _fits(route: Route | None, claim: Claim) -> bool:
    return route is not None and route.lineage_id is not None and claim.fits(route.source)


def refused(
    route: Callable[[SessionKey], Route | None], claims: Sequence[Claim], source: SessionSource
) -> dict[SessionKey, str]:
    """Return the keys that are asked for in vain, each with why; parameters as in :func:`fitting`."""
    found = {}
    for key in dict.fromkeys(claim.key for claim in claims):
        old = route(key)
        if old is not None and old.lineage_id is not None:
            found[key] = refused_to(old.source, source, [claim for claim in claims if claim.key == key])
    return found
