"""The sharing policy of each platform, from the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.source import KeyPolicy

if TYPE_CHECKING:
    from hermes_core.config.sections import Settings

__all__ = ["key_profile", "policy_of"]


def policy_of(settings: Settings, platform: str) -> KeyPolicy:
    """Return what ``[routing]`` says, with what ``[platforms.<platform>]`` puts above it."""
    effective = settings.routing_of(platform)
    return KeyPolicy(
        group_sessions_per_user=effective.group_sessions_per_user,
        thread_sessions_per_user=effective.thread_sessions_per_user,
    )


def key_profile(profile: str) -> str:
    """Return the namespace of a profile in keys: ``main`` for the home's own, and nobody else's is called so."""
    if profile == "default":
        return "main"
    return "main~" if profile == "main" else profile
