"""Who is let in, as the configuration says: a platform's table, and above it the table of one chat.

::

    [platforms.feishu]
    dm_policy = "pairing"           # the default: strangers get a code, which an operator approves
    group_policy = "allowlist"      # the default: the groups of allow_chats, and people who are known everywhere
    allow_chats = ["oc_1"]
    admins = ["ou_9"]

    [platforms.feishu.chats.oc_2]
    group_policy = "open"
    require_mention = false
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import attrs

from hermes_core.config.faults import unknown_key
from hermes_core.config.overrides import ChatOverride
from hermes_core.config.rules import maybe_choice, maybe_switch, maybe_texts, rules_of
from hermes_core.config.sections import GROUP_POLICIES, PLATFORMS, PlatformSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_core.config.faults import Layer
    from hermes_core.config.rules import Value
    from hermes_core.config.sections import Settings

__all__ = ["AccessSettings", "ChatSettings", "ChatTables", "access_of", "admins_of", "quoted"]

_CHATS: Final = "chats"


@attrs.frozen(kw_only=True, eq=False, repr=False)
class ChatSettings:
    """``[platforms.<name>.chats.<id>]``: what differs in one chat; ``None`` follows the platform."""

    group_policy: str | None = maybe_choice(GROUP_POLICIES)
    require_mention: bool | None = maybe_switch()
    allow_users: tuple[str, ...] | None = maybe_texts()
    deny_users: tuple[str, ...] | None = maybe_texts()


@attrs.frozen(kw_only=True)
class AccessSettings:
    """What is in force for one message.

    Attributes:
        is_listed: the chat is one of ``allow_chats``. allow_users: the platform's and the chat's together; so are
            ``deny_users``, which win over everything.
    """

    dm_policy: str
    group_policy: str
    require_mention: bool
    bots: str
    is_listed: bool
    allow_users: frozenset[str]
    deny_users: frozenset[str]
    admins: frozenset[str]


def access_of(settings: Settings, platform: str, *chats: str | None, admits: bool = False) -> AccessSettings:
    """Return what is in force on a platform, in a chat.

    :param chats: the chat, then the one that it belongs to, where there is one; ids as the platform writes them.
    :param admits: who comes through this platform was let in by a secret already: policies that nobody set are open.
    """
    own = settings.platforms.get(platform) or PlatformSettings()
    values: dict[str, Value] = {}
    users: list[Value] = [own.allow_users]
    denied: list[Value] = [own.deny_users]
    places = [chat for chat in chats if chat]
    for chat in reversed(places):
        for table in settings.chat_overrides:
            if (table.platform, table.chat) == (platform, chat):
                values |= table.values
                users.append(table.values.get("allow_users"))
                denied.append(table.values.get("deny_users"))
    group, mention = values.get("group_policy", own.group_policy), values.get("require_mention", own.require_mention)
    return AccessSettings(
        dm_policy=own.dm_policy or ("open" if admits else "pairing"),
        group_policy=str(group or ("open" if admits else "allowlist")),
        require_mention=not admits if mention is None else bool(mention),
        bots=own.bots or ("all" if admits else "off"),
        is_listed=not frozenset(own.allow_chats or ()).isdisjoint(places),
        allow_users=_joined(users),
        deny_users=_joined(denied),
        admins=_joined([own.admins]),
    )


def admins_of(settings: Settings, platform: str) -> frozenset[str]:
    """Return the ids of those who have the role ``admin`` on a platform: its own list, and that of ``[commands]``."""
    own = settings.platforms.get(platform) or PlatformSettings()
    mark = f"{platform}:"
    everywhere = tuple(one.removeprefix(mark) for one in settings.commands.admins if one.startswith(mark))
    return _joined([own.admins, everywhere])


def _joined(lists: list[Value]) -> frozenset[str]:
    return frozenset(text for one in lists if isinstance(one, tuple) for text in one)


class ChatTables:
    """The tables of chats in all files, taken one file after another; a later one stands above, key by key."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], tuple[str, dict[str, Value], dict[str, str]]] = {}

    def take(self, layer: Layer, platform: str, table: Mapping[str, object]) -> dict[str, object]:
        """Take what is about access out of the chats of ``[platforms.<name>]``; return what is left of the table.

        :raises ConfigError: a value that breaks its rule. An unknown key is left to whoever takes the rest.
        """
        rest = dict(table)
        chats = rest.get(_CHATS)
        if not isinstance(chats, dict):
            return rest
        rules = rules_of(ChatSettings)
        left: dict[str, object] = {}
        for chat, keys in chats.items():
            if not isinstance(keys, dict):
                left[chat] = keys
                continue
            section = f"{PLATFORMS}.{platform}.{_CHATS}.{quoted(chat)}"
            own = {key: value for key, value in keys.items() if key in rules}
            others = {key: value for key, value in keys.items() if key not in rules}
            wrong = next((key for key, value in others.items() if not isinstance(value, dict)), None)
            if wrong is not None:
                raise unknown_key(layer, section, wrong, rules)
            if own:
                _, values, origins = self._found.setdefault((platform, chat), (section, {}, {}))
                values.update({key: layer.checked(section, key, rules[key], value) for key, value in own.items()})
                origins.update(dict.fromkeys(own, layer.origin))
            if others:
                left[chat] = others
        rest.pop(_CHATS)
        if left:
            rest[_CHATS] = left
        return rest

    def built(self) -> tuple[ChatOverride, ...]:
        """Return the overrides in the order of their names."""
        return tuple(
            ChatOverride(
                section=section,
                platform=platform,
                chat=chat,
                values=MappingProxyType(values),
                origins=MappingProxyType(origins),
            )
            for (platform, chat), (section, values, origins) in sorted(self._found.items())
        )


def quoted(name: str) -> str:
    """Return a key of TOML, in quotes where it needs some."""
    bare = name.isascii() and bool(name) and all(c.isalnum() or c in "_-" for c in name)
    return name if bare else '"{}"'.format(name.replace("\\", "\\\\").replace('"', '\\"'))
