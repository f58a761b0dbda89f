"""When the settings make other keys than the stored routes have: said once, with what keeps the routes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.routing.policy import policy_of
from hermes_hookspecs.errors import KeyBuildError
from hermes_hookspecs.operations import PutState
from hermes_hookspecs.state import StateUpdate

if TYPE_CHECKING:
    from hermes_core.config.sections import Settings
    from hermes_hookspecs.ports.policies import KeyBuilder
    from hermes_hookspecs.ports.store import Store

__all__ = ["note_policy"]

_NAMESPACE = "core"
_KEY = "key-policy"


def note_policy(store: Store, settings: Settings, keys: KeyBuilder, now: int) -> str | None:
    """Write down the key policy in force; return one line when it strands routes that another policy made.

    The line comes once per change: the store remembers the policy that it was told last.
    """
    wanted = _described(settings, keys)
    known = store.state(_NAMESPACE, _KEY, now=now)
    if known is not None and known.value == wanted:
        return None
    stranded, total = _stranded(store, settings, keys) if known is not None else (0, 0)
    store.apply(PutState(updates=(StateUpdate(namespace=_NAMESPACE, key=_KEY, value=wanted),), now=now))
    if not stranded:
        return None
    return (
        f"the routing settings changed: {stranded} of {total} routes are out of reach under them (their sessions are "
        "kept: `hermes routes rekey` shows which can move along, `hermes sessions list` shows them, /resume brings one "
        "back, the old settings bring all back)"
    )


def _stranded(store: Store, settings: Settings, keys: KeyBuilder) -> tuple[int, int]:
    """Return how many live routes would get another key today, and how many there are."""
    live = [route for route in store.routes() if route.lineage_id is not None]
    lost = 0
    for route in live:
        try:
            lost += keys.build(route.source, policy_of(settings, route.source.platform)) != route.key
        except KeyBuildError:
            lost += 1
    return lost, len(live)


def _described(settings: Settings, keys: KeyBuilder) -> str:
    """Return the policy in force as JSON text: key version, the general flags, those of platforms that differ."""
    import json

    def flags(platform: str) -> list[bool]:
        policy = policy_of(settings, platform)
        return [policy.group_sessions_per_user, policy.thread_sessions_per_user]

    general = flags("")
    differing = {name: flags(name) for name in sorted(settings.platforms) if flags(name) != general}
    return json.dumps({"version": keys.version, "general": general, "platforms": differing}, sort_keys=True)
