"""Which reset settings are in force for one route, and where each of them came from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.ports.policies import ResetSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_core.config.overrides import ResetOverride
    from hermes_core.config.sections import Settings
    from hermes_hookspecs.source import SessionSource

__all__ = ["NO_POLICY", "EffectiveReset", "any_policy", "effective"]

NO_POLICY = "none"
"""Mode of conversations that never end by themselves."""


@attrs.frozen(kw_only=True)
class EffectiveReset:
    """What is in force for one route.

    Attributes:
        settings: for the policy. notify: whether its end is told, exclusions counted in.
        origins: key → where its value came from, in the order in which people are shown them.
    """

    settings: ResetSettings
    notify: bool
    origins: Mapping[str, str]


def any_policy(settings: Settings) -> bool:
    """Return whether any conversation can end by itself; most profiles have none."""
    modes = [settings.session_reset.mode, *(each.values.get("mode", NO_POLICY) for each in settings.reset_overrides)]
    return any(mode != NO_POLICY for mode in modes)


def effective(settings: Settings, source: SessionSource, *, shared: bool) -> EffectiveReset:
    """Return what is in force for a route from ``source``.

    :param shared: several people write there; then no person's own settings count.
    """
    general = settings.session_reset
    mode, idle_minutes, at_hour = general.mode, general.idle_minutes, general.at_hour
    timezone, notify, most_hours = general.timezone, general.notify, general.bg_process_max_age_hours
    keys = ("mode", "idle_minutes", "at_hour", "timezone", "notify", "bg_process_max_age_hours")
    origins = {key: settings.origins.get(f"session_reset.{key}", "default") for key in keys}
    for override in settings.reset_overrides:
        if not _fits(override, source, shared=shared):
            continue
        values = override.values
        # The loader has checked each value by the rule of its key, so the casts below change nothing.
        mode, timezone = str(values.get("mode", mode)), str(values.get("timezone", timezone))
        idle_minutes = _whole(values.get("idle_minutes"), idle_minutes)
        at_hour = _whole(values.get("at_hour"), at_hour)
        notify = bool(values.get("notify", notify))
        hours = values.get("bg_process_max_age_hours", most_hours)
        most_hours = hours if isinstance(hours, float) else most_hours
        origins.update(override.origins)
    if notify and source.platform in general.notify_exclude_platforms:
        notify = False
        origins["notify"] = f"notify_exclude_platforms, {settings.origins['session_reset.notify_exclude_platforms']}"
    chosen = ResetSettings(
        mode=mode,
        idle_minutes=idle_minutes,
        at_hour=at_hour,
        timezone=timezone,
        bg_process_max_age_hours=most_hours,
    )
    return EffectiveReset(settings=chosen, notify=notify, origins=origins)


def _whole(value: object, otherwise: int) -> int:
    return value if isinstance(value, int) else otherwise


def _fits(override: ResetOverride, source: SessionSource, *, shared: bool) -> bool:
    if override.platform is not None and override.platform != source.platform:
        return False
    if override.place == "chat_types":
        return override.name == source.chat_type
    if override.place == "chats":
        return override.name == source.chat_id
    if override.place == "users":
        return not shared and override.name in (source.user_id_alt, source.user_id)
    return True
