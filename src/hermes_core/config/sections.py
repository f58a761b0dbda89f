"""The settings: one frozen class a section, each key with its default and its rule in one place.

Durations end in ``_s`` (seconds), ``_minutes`` or ``_hours``. Lists keep the order of their source.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import attrs

from hermes_core.config.rules import choice, maybe_switch, name, number, only_names, switch, texts, whole, zone

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

__all__ = [
    "PLATFORMS",
    "PLUGINS",
    "SECTIONS",
    "AgentSettings",
    "DisplaySettings",
    "GatewaySettings",
    "InboxSettings",
    "PlatformSettings",
    "PluginSettings",
    "RoutingSettings",
    "SessionResetSettings",
    "Settings",
    "StorageSettings",
    "TurnSettings",
]

PLATFORMS: Final = "platforms"
"""Section that holds one table a platform, whatever its name."""

PLUGINS: Final = "plugins"
"""Section that holds one table a plugin beside its own keys."""

# Every class here is made when a program starts, and comparison and repr would be half of what that costs.
# Nobody compares sections; a repr is not wanted, since a section may hold a secret one day.


@attrs.frozen(kw_only=True, eq=False, repr=False)
class StorageSettings:
    """``[storage]``: where sessions live. ``durability = "normal"`` answers before the disk has the data."""

    backend: str = name("sqlite", ("sqlite", "memory"))
    durability: str = choice("full", ("full", "normal"))
    busy_timeout_s: float = number(20.0, 0.1, 600)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class RoutingSettings:
    """``[routing]``: whether members of a group, or of a thread, have sessions of their own."""

    group_sessions_per_user: bool = switch(default=True)
    thread_sessions_per_user: bool = switch(default=False)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PlatformSettings:
    """``[platforms.<name>]``: what differs on one platform; ``None`` follows ``[routing]``."""

    group_sessions_per_user: bool | None = maybe_switch()
    thread_sessions_per_user: bool | None = maybe_switch()


@attrs.frozen(kw_only=True, eq=False, repr=False)
class AgentSettings:
    """``[agent]``: who answers. An empty ``runner`` is chosen from what is installed."""

    runner: str = name("", option="--agent")
    inactivity_timeout_s: float = number(1800.0, 1, 604800)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class TurnSettings:
    """``[turns]``: the lease of a turn and how long others wait for it.

    ``lease_wait_s`` is at least ``lease_ttl_s``, ``lease_renew_s`` below it.
    """

    lease_ttl_s: float = number(30.0, 5, 600)
    lease_renew_s: float = number(10.0, 0.5, 300)
    busy_notice_s: float = number(30.0, 0, 86400)
    lease_wait_s: float = number(1800.0, 0.001, 604800, env=("HERMES_TURN_LEASE_TIMEOUT",))


@attrs.frozen(kw_only=True, eq=False, repr=False)
class InboxSettings:
    """``[inbox]``: how many messages may wait for one lineage."""

    max_waiting: int = whole(100, 1, 100_000)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class GatewaySettings:
    """``[gateway]``: how often an interrupted turn is tried again by itself."""

    recovery_attempts: int = whole(2, 0, 10)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class SessionResetSettings:
    """``[session_reset]``: when a route lets go of its lineage. ``at_hour`` is 0..23 in ``timezone``."""

    mode: str = name("none", ("none", "idle", "daily", "both"))
    idle_minutes: int = whole(1440, 1, 525_600)
    at_hour: int = whole(4, 0, 23)
    timezone: str = zone()
    notify: bool = switch(default=True)
    notify_exclude_platforms: tuple[str, ...] = texts(("api_server", "webhook"))
    bg_process_max_age_hours: float = number(24.0, 0, 8760)
    reset_triggers: tuple[str, ...] = texts(("/new", "/reset"))
    cleanup_timeout_s: float = number(30.0, 0, 600)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class DisplaySettings:
    """``[display]``: what a resumed session shows of its past; lengths in characters."""

    resume_display: str = choice("full", ("full", "minimal"))
    resume_exchanges: int = whole(10, 0, 1000)
    resume_max_user_chars: int = whole(300, 1, 100_000)
    resume_max_assistant_chars: int = whole(200, 1, 100_000)
    resume_max_assistant_lines: int = whole(3, 1, 1000)
    resume_skip_tool_only: bool = switch(default=True)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PluginSettings:
    """``[plugins]``: which plugins run. Names are those of entry points, or of distributions.

    ``enable``: these and no others, all when empty. ``disable``: never these. ``only``: set by ``HERMES_PLUGINS`` or
    ``--no-plugins``, replaces both lists, and an empty one means none. ``strict``: a broken plugin ends the program.
    ``quarantine_after``: failures in a row until a plugin is left out.
    """

    enable: tuple[str, ...] = texts(())
    disable: tuple[str, ...] = texts(())
    only: tuple[str, ...] | None = only_names("HERMES_PLUGINS", "--no-plugins")
    strict: bool = switch(default=False)
    quarantine_after: int = whole(5, 1, 1000)


SECTIONS: Final[Mapping[str, type[attrs.AttrsInstance]]] = MappingProxyType(
    {
        "storage": StorageSettings,
        "routing": RoutingSettings,
        "agent": AgentSettings,
        "turns": TurnSettings,
        "inbox": InboxSettings,
        "gateway": GatewaySettings,
        "session_reset": SessionResetSettings,
        "display": DisplaySettings,
        PLUGINS: PluginSettings,
    }
)
"""Section name → its class, in the order in which they are shown; ``platforms`` is beside them."""


@attrs.frozen(kw_only=True, eq=False, repr=False)
class Settings:
    """Everything that configures a program, with the origin of each value.

    ``home``: absolute. ``folder``: the profile's folder, or ``PATH.d`` of a database given by path. ``platforms`` and
    ``plugin_tables``: name → what its table holds, deep-frozen (tables as mappings, lists as tuples).
    ``origins``: dotted key → file, ``environment NAME``, ``option --name`` or ``default``.
    ``notices``: lines for people about what was ignored.
    """

    home: Path
    profile: str
    folder: Path
    db_path: Path
    storage: StorageSettings
    routing: RoutingSettings
    agent: AgentSettings
    turns: TurnSettings
    inbox: InboxSettings
    gateway: GatewaySettings
    session_reset: SessionResetSettings
    display: DisplaySettings
    plugins: PluginSettings
    platforms: Mapping[str, PlatformSettings]
    plugin_tables: Mapping[str, Mapping[str, object]]
    origins: Mapping[str, str]
    notices: tuple[str, ...] = ()

    def routing_of(self, platform: str) -> RoutingSettings:
        """Return the routing settings in force on ``platform``: its own where it has some, else ``[routing]``'s."""
        own = self.platforms.get(platform)
        if own is None:
            return self.routing
        group, thread = own.group_sessions_per_user, own.thread_sessions_per_user
        return RoutingSettings(
            group_sessions_per_user=self.routing.group_sessions_per_user if group is None else group,
            thread_sessions_per_user=self.routing.thread_sessions_per_user if thread is None else thread,
        )

    @property
    def cache_folder(self) -> Path:
        """Return where quick facts about the installation are kept."""
        return self.home / "cache"

    @property
    def names_plugins(self) -> bool:
        """Return whether any setting names a plugin, which might not be installed."""
        return bool(self.plugin_tables or self.plugins.enable or self.plugins.disable or self.plugins.only)

    def plugin_table(self, name: str) -> Mapping[str, object]:
        """Return the table ``[plugins.<name>]``, empty when there is none."""
        return self.plugin_tables.get(name, MappingProxyType({}))
