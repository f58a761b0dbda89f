"""The settings as a list for people: what is in force, and where it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from hermes_core.config.rules import rules_of
from hermes_core.config.sections import PLATFORMS, PLUGINS, SECTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from hermes_core.config.sections import Settings

__all__ = ["MASK", "Setting", "describe"]

MASK: Final = "********"
"""Stands for a value that is never shown; its length says nothing about the secret's."""

_SECRET_WORDS = ("token", "secret", "passw", "passphrase", "credential", "api_key", "apikey", "private_key")


@attrs.frozen(kw_only=True)
class Setting:
    """One effective value. ``value`` holds plain lists and dicts, ready for JSON; secrets are masked."""

    section: str
    key: str
    value: object
    origin: str


def describe(settings: Settings) -> list[Setting]:
    """Return every effective value with its origin, for ``hermes config show --origin``.

    :returns: the sections in their fixed order, then platforms and plugins by name; keys in the order of their source.
    """
    shown: list[Setting] = []
    for section in SECTIONS:
        shown += _section(settings, section, getattr(settings, section))
    for name, platform in settings.platforms.items():
        shown += [item for item in _section(settings, f"{PLATFORMS}.{name}", platform) if item.value is not None]
    for override in settings.reset_overrides:
        shown += [
            Setting(section=override.section, key=key, value=value, origin=override.origins[key].partition(" [")[0])
            for key, value in override.values.items()
        ]
    for chat in settings.chat_overrides:
        shown += [
            Setting(section=chat.section, key=key, value=_plain(value), origin=chat.origins[key])
            for key, value in chat.values.items()
        ]
    for name, table in settings.plugin_tables.items():
        shown += _table(settings, f"{PLUGINS}.{name}", table)
    return shown


def _section(settings: Settings, section: str, values: attrs.AttrsInstance) -> Iterator[Setting]:
    for key, rule in rules_of(type(values)).items():
        value: object = getattr(values, key)
        # A key that only an option sets is news only when it was set.
        if value is None and not rule.in_file:
            continue
        origin = settings.origins.get(f"{section}.{key}", "default")
        yield Setting(section=section, key=key, value=MASK if rule.secret else _plain(value), origin=origin)


def _table(settings: Settings, section: str, table: Mapping[str, object]) -> Iterator[Setting]:
    for key, value in table.items():
        origin = settings.origins.get(f"{section}.{key}", "default")
        yield Setting(section=section, key=key, value=_plain(value, key), origin=origin)


def _plain(value: object, key: str = "") -> object:
    """Return ``value`` without secrets; a plugin's table has no rules here, so the names of its keys decide."""
    from collections.abc import Mapping

    if any(word in key.lower() for word in _SECRET_WORDS):
        return MASK
    if isinstance(value, Mapping):
        return {name: _plain(item, str(name)) for name, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value
