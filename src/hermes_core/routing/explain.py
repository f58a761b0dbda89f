"""Why a message lands where it lands: ``hermes routes explain``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.routing.claims import claims_of, fitting, refused
from hermes_core.routing.policy import policy_of
from hermes_hookspecs.ports.app import RouteExplanation
from hermes_hookspecs.principal import operator, owner_of

if TYPE_CHECKING:
    from hermes_core.config.sections import Settings
    from hermes_core.routing.claims import Legacy
    from hermes_hookspecs.ports.policies import KeyBuilder
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.sessions import Route
    from hermes_hookspecs.source import KeyParts, SessionSource

__all__ = ["explain"]


def explain(
    store: Store, settings: Settings, keys: KeyBuilder, source: SessionSource, *, legacy: Legacy
) -> RouteExplanation:
    """Return the key of ``source``, how it came about, and where it leads; changes nothing.

    :param legacy: asks the plugins for older keys.
    :raises KeyBuildError: the source would be refused.
    """
    policy = policy_of(settings, source.platform)
    parts = keys.parts(source, policy)
    key = keys.build(source, policy)
    route = store.route(key)
    claims = () if route is not None else claims_of(keys, legacy, source, policy)
    lineage_id = None if route is None else route.lineage_id
    lineage = None if lineage_id is None else store.lineage(lineage_id, operator())
    lines = [("key", str(key)), *_in_key(parts), *_flags(settings, source.platform), ("shared", _shared(parts))]
    if parts.note:
        lines.append(("note", parts.note))
    owner = owner_of(source, shared=parts.shared)
    lines += [("owner", f"{owner.kind} {owner.id}"), ("route", _where(route))]
    granted = fitting(store.route, claims)
    if granted is not None:
        lines.append(("would claim", granted.key))
    else:
        lines += [("not its own", f"{key}: {why}") for key, why in refused(store.route, claims, source).items()]
    if lineage is not None:
        lines += [("session", lineage.tip), ("lineage", lineage.id), ("title", lineage.title or "none")]
    return RouteExplanation(
        key=key, lines=tuple(lines), lineage=lineage, session_id=None if lineage is None else lineage.tip
    )


def _in_key(parts: KeyParts) -> list[tuple[str, str]]:
    named = (
        ("profile", parts.profile),
        ("platform", parts.platform),
        ("chat type", parts.chat_type),
        ("account", parts.account_id),
        ("scope", parts.scope_id),
        ("chat", parts.chat_id),
        ("thread", parts.thread_id),
        ("user", parts.user_id),
    )
    return [(f"  {name}", value) for name, value in named if value is not None]


def _flags(settings: Settings, platform: str) -> list[tuple[str, str]]:
    policy = policy_of(settings, platform)
    rows: list[tuple[str, str]] = []
    for name, value in (
        ("group_sessions_per_user", policy.group_sessions_per_user),
        ("thread_sessions_per_user", policy.thread_sessions_per_user),
    ):
        own = settings.origins.get(f"platforms.{platform}.{name}")
        origin = own if own is not None else settings.origins.get(f"routing.{name}", "default")
        rows.append((name, f"{str(value).lower()} ({origin})"))
    return rows


def _shared(parts: KeyParts) -> str:
    return "yes: everybody there writes into one session" if parts.shared else "no"


def _where(route: Route | None) -> str:
    if route is None:
        return "none yet; the next message makes a session"
    if route.lineage_id is None:
        title = f", to be called {route.pending_title!r}" if route.pending_title else ""
        return f"let go; the next message makes a session{title}"
    return f"leads to {route.lineage_id}"
