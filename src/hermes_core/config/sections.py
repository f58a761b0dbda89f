"""The settings: one frozen class a section, each key with its default and its rule in one place.

Durations end in ``_s`` (seconds), ``_minutes`` or ``_hours``. Lists keep the order of their source.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import attrs

from hermes_core.config.rules import (
    choice,
    maybe_choice,
    maybe_switch,
    maybe_texts,
    name,
    number,
    only_names,
    switch,
    texts,
    whole,
    zone,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from hermes_core.config.overrides import ChatOverride, ResetOverride

__all__ = [
    "ATTACHMENT_KINDS",
    "BOT_POLICIES",
    "BUSY_POLICIES",
    "DM_POLICIES",
    "GROUP_POLICIES",
    "PLATFORMS",
    "PLUGINS",
    "SECTIONS",
    "AgentSettings",
    "AttachmentSettings",
    "CommandSettings",
    "CompressionSettings",
    "DisplaySettings",
    "GatewaySettings",
    "InboxSettings",
    "OutboxSettings",
    "PlatformSettings",
    "PluginSettings",
    "RoutingSettings",
    "SessionResetSettings",
    "Settings",
    "StorageSettings",
    "TurnSettings",
]

_NAME = r"[^\W\d_][\w-]{0,31}"
_COMMAND, _COMMAND_LIKE = rf"/?{_NAME}", 'names of commands, as in "new"'

PLATFORMS: Final = "platforms"
"""Section that holds one table a platform, whatever its name."""

BUSY_POLICIES: Final = ("queue", "merge", "interrupt", "steer", "reject")
"""What becomes of a message that comes while a turn of its session runs."""

DM_POLICIES: Final = ("pairing", "allowlist", "open", "off")
"""Whose direct messages are taken."""

GROUP_POLICIES: Final = ("allowlist", "known", "open", "off")
"""Whose messages are taken in groups, channels and their threads."""

BOT_POLICIES: Final = ("off", "mentions", "all")
"""Which messages of other bots are taken, where their sender is let in."""

ATTACHMENT_KINDS: Final = ("image", "audio", "video", "document")
"""What may come with a message."""

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
    """``[routing]``: whether members of a group, or of a thread, have sessions of their own.

    ``journal_keep_days``: how long it is known what became of a route; what is older cannot be undone.
    """

    group_sessions_per_user: bool = switch(default=True)
    thread_sessions_per_user: bool = switch(default=False)
    journal_keep_days: float = number(365.0, 0.01, 36500)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class PlatformSettings:
    """``[platforms.<name>]``: what differs on one platform, and who is let in there (:mod:`hermes_core.config.access`).

    ``None`` follows the general setting, or the default that is explained there. ``streaming``: an answer is shown as
    it is written, where the platform can edit.
    """

    group_sessions_per_user: bool | None = maybe_switch()
    thread_sessions_per_user: bool | None = maybe_switch()
    busy: str | None = maybe_choice(BUSY_POLICIES)
    dm_policy: str | None = maybe_choice(DM_POLICIES)
    group_policy: str | None = maybe_choice(GROUP_POLICIES)
    require_mention: bool | None = maybe_switch()
    bots: str | None = maybe_choice(BOT_POLICIES)
    allow_users: tuple[str, ...] | None = maybe_texts()
    deny_users: tuple[str, ...] | None = maybe_texts()
    allow_chats: tuple[str, ...] | None = maybe_texts()
    admins: tuple[str, ...] | None = maybe_texts()
    admin_only: tuple[str, ...] | None = maybe_texts(form=_COMMAND, like=_COMMAND_LIKE)
    streaming: bool | None = maybe_switch()


@attrs.frozen(kw_only=True, eq=False, repr=False)
class AgentSettings:
    """``[agent]``: who answers. An empty ``runner``: the first agent that is ready, else ``recall``.

    ``approval_timeout_s``: for how long a request for approval is open; without an answer it is refused.
    """

    runner: str = name("", option="--agent")
    inactivity_timeout_s: float = number(1800.0, 1, 604800)
    approval_timeout_s: float = number(900.0, 1, 604800)
    audit_keep_days: float = number(90.0, 0.01, 36500)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class TurnSettings:
    """``[turns]``: the lease of a turn and how long others wait for it.

    ``lease_wait_s`` is at least ``lease_ttl_s``, ``lease_renew_s`` below it. ``parallel``: turns that one process
    runs at a time for entrances that it serves. ``drain_s``: how long they may go on when it is asked to leave.
    """

    lease_ttl_s: float = number(30.0, 5, 600)
    lease_renew_s: float = number(10.0, 0.5, 300)
    busy_notice_s: float = number(30.0, 0, 86400)
    lease_wait_s: float = number(1800.0, 0.001, 604800, env=("HERMES_TURN_LEASE_TIMEOUT",))
    parallel: int = whole(8, 1, 1000)
    drain_s: float = number(20.0, 0, 3600)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class InboxSettings:
    """``[inbox]``: messages that wait.

    ``max_waiting``: most for one session key. ``busy``: what becomes of a message that comes while a turn runs.
    ``batch_window_s``: texts of one sender that follow each other closer than this are answered together.
    ``keep_days``: how long an answered message is known, so that a redelivery is no new one.
    """

    max_waiting: int = whole(100, 1, 100_000)
    busy: str = choice("queue", BUSY_POLICIES)
    batch_window_s: float = number(0.6, 0, 60)
    keep_days: float = number(30.0, 0.01, 36500)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class OutboxSettings:
    """``[outbox]``: answers on their way.

    ``attempts``: failures after which a delivery is given up; while its account is out of reach, not within a day.
    ``retry_first_s``, ``retry_most_s``: the back-off, which doubles; a platform's own hint wins. ``send_timeout_s``:
    for one part. ``keep_days``: how long what ended is kept. ``max_files``: that one answer brings along;
    ``max_file_bytes``: of each; nothing can be sent but text where either is 0.
    """

    attempts: int = whole(12, 1, 1000)
    retry_first_s: float = number(1.0, 0.001, 3600)
    retry_most_s: float = number(900.0, 0.001, 86400)
    send_timeout_s: float = number(60.0, 0.1, 3600)
    keep_days: float = number(30.0, 0.01, 36500)
    max_files: int = whole(10, 0, 1000)
    max_file_bytes: int = whole(32 * 1024 * 1024, 0, 1024**3)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class CompressionSettings:
    """``[compression]``: when the head of a context becomes a summary by itself.

    ``threshold``: share of the model's window. ``keep``: share of that which stays. ``context_tokens``: what the model
    can read; 0 leaves it to the agent. ``hygiene_hard_message_limit``: rows from which on a context is compressed
    whatever the window.
    """

    enabled: bool = switch(default=True)
    threshold: float = number(0.85, 0.05, 1)
    keep: float = number(0.2, 0.01, 0.8)
    context_tokens: int = whole(0, 0, 100_000_000)
    hygiene_hard_message_limit: int = whole(5000, 4, 1_000_000)
    summary_timeout_s: float = number(120.0, 0.1, 3600)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class AttachmentSettings:
    """``[attachments]``: pictures, sounds and documents that come with a message.

    ``kinds``: which are taken. ``max_bytes``: of one; ``max_message_bytes``: of all of a message together.
    ``fetch_attempts``: tries after which a message is answered without; ``fetch_timeout_s``: for one try;
    ``fetch_retry_s``: wait before the second one, doubled with each; a platform's own hint wins.
    """

    kinds: tuple[str, ...] = texts(ATTACHMENT_KINDS, choices=ATTACHMENT_KINDS)
    max_bytes: int = whole(32 * 1024 * 1024, 1, 1024**3)
    max_message_bytes: int = whole(64 * 1024 * 1024, 1, 1024**3)
    fetch_attempts: int = whole(3, 1, 100)
    fetch_timeout_s: float = number(60.0, 0.01, 3600)
    fetch_retry_s: float = number(2.0, 0, 600)


@attrs.frozen(kw_only=True, eq=False, repr=False)
class GatewaySettings:
    """``[gateway]``: the process that runs chat platforms.

    ``recovery_attempts``: how often an interrupted turn is tried again by itself. ``command_timeout_s``: how long a
    command may run. ``watchdog_s``: silence after which a connection that used to say something is made anew.
    ``retry_first_s``, ``retry_most_s``: the back-off of an adapter that failed. ``stream_interval_s``: between two
    edits of an answer that is being written. ``health_port``: of the health endpoint on this host, 0 for none.
    """

    recovery_attempts: int = whole(2, 0, 10)
    command_timeout_s: float = number(180.0, 0.1, 86_400)
    watchdog_s: float = number(180.0, 0.05, 86_400)
    retry_first_s: float = number(1.0, 0.001, 3600)
    retry_most_s: float = number(300.0, 0.001, 86_400)
    stream_interval_s: float = number(1.5, 0.01, 60)
    health_port: int = whole(0, 0, 65_535)
    log: str = choice("text", ("text", "json"))


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
    reset_triggers: tuple[str, ...] = texts(
        ("/new", "/reset"),
        form=rf"/{_NAME}|[^/\s].*",
        like='a slash and one word, as in "/new", or a message without a slash',
    )
    cleanup_timeout_s: float = number(30.0, 0, 600)
    carry_over: str = choice("never", ("never", "automatic", "always"))


@attrs.frozen(kw_only=True, eq=False, repr=False)
class CommandSettings:
    """``[commands]``: who may use which. ``admins``: ``platform:user id``; ``admin_only``: names of commands."""

    admins: tuple[str, ...] = texts((), form=r"[^\s:]+:.+", like='platform:user id, as in "feishu:ou_9"')
    admin_only: tuple[str, ...] = texts((), form=_COMMAND, like=_COMMAND_LIKE)


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
        "outbox": OutboxSettings,
        "compression": CompressionSettings,
        "attachments": AttachmentSettings,
        "gateway": GatewaySettings,
        "session_reset": SessionResetSettings,
        "commands": CommandSettings,
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
    ``notices``: lines for people about what was ignored. ``reset_overrides``: the most general first.
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
    outbox: OutboxSettings
    compression: CompressionSettings
    attachments: AttachmentSettings
    gateway: GatewaySettings
    session_reset: SessionResetSettings
    commands: CommandSettings
    display: DisplaySettings
    plugins: PluginSettings
    platforms: Mapping[str, PlatformSettings]
    plugin_tables: Mapping[str, Mapping[str, object]]
    origins: Mapping[str, str]
    notices: tuple[str, ...] = ()
    reset_overrides: tuple[ResetOverride, ...] = ()
    chat_overrides: tuple[ChatOverride, ...] = ()

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

    def busy_policy_of(self, platform: str) -> str:
        """Return what becomes of a message that comes on ``platform`` while a turn runs."""
        own = self.platforms.get(platform)
        return self.inbox.busy if own is None or own.busy is None else own.busy

    def stream_interval_of(self, platform: str) -> float | None:
        """Return the seconds between two edits of an answer that is being written; ``None`` where none is shown."""
        own = self.platforms.get(platform)
        return None if own is not None and own.streaming is False else self.gateway.stream_interval_s

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
