"""What differs from ``[session_reset]``: on a platform, for a kind of chat, in one chat, for one person.

The most general table first; each key of a later one that fits stands above those before it::

    [session_reset.chat_types.group]            # groups of every platform
    [platforms.slack.session_reset]             # all of Slack
    [platforms.slack.chat_types.dm.session_reset]
    [platforms.slack.chats.C0123.session_reset]
    [platforms.slack.users.U0456.session_reset] # sessions that nobody shares with this person

Only files have them: a chat's id has no place in the name of an environment variable.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from hermes_core.config.access import quoted
from hermes_core.config.faults import unknown_key
from hermes_core.config.overrides import ResetOverride
from hermes_core.config.rules import rules_of
from hermes_core.config.sections import PLATFORMS, SessionResetSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_core.config.faults import Layer
    from hermes_core.config.rules import Rule, Value

__all__ = ["RESET_KEYS", "ResetTables"]

SECTION: Final = "session_reset"
RESET_KEYS: Final = ("mode", "idle_minutes", "at_hour", "timezone", "notify", "bg_process_max_age_hours")
"""What can differ from place to place; the other keys of the section are of the profile."""

_PLACES: Final = ("chat_types", "chats", "users")
"""Tables of a platform that hold one table a place, from general to special."""


class ResetTables:
    """The tables of all files, taken one file after another; a later file stands above an earlier one, key by key."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], tuple[str, dict[str, Value], dict[str, str]]] = {}

    def take_general(self, layer: Layer, table: Mapping[str, object]) -> dict[str, object]:
        """Take the chat types out of the table ``[session_reset]``; return what is left of it.

        :raises ConfigError: an unknown key, or a value that breaks its rule.
        """
        rest = dict(table)
        section = f"{SECTION}.{_PLACES[0]}"
        for name, keys in _tables(layer, section, rest.pop(_PLACES[0], {})).items():
            self._take(layer, f"{section}.{quoted(name)}", ("", _PLACES[0], name), keys)
        return rest

    def take_platform(self, layer: Layer, platform: str, table: Mapping[str, object]) -> dict[str, object]:
        """Take what is about resets out of the table ``[platforms.<name>]``; return what is left of it.

        :raises ConfigError: an unknown key, or a value that breaks its rule.
        """
        rest, above = dict(table), f"{PLATFORMS}.{platform}"
        own = rest.pop(SECTION, None)
        if own is not None:
            self._take(layer, f"{above}.{SECTION}", (platform, "", ""), own)
        for place in _PLACES:
            for name, keys in _tables(layer, f"{above}.{place}", rest.pop(place, {})).items():
                section = f"{above}.{place}.{quoted(name)}"
                for key, value in _tables(layer, f"{above}.{place}", keys, name).items():
                    if key != SECTION:
                        raise unknown_key(layer, section, key, (SECTION,))
                    self._take(layer, f"{section}.{SECTION}", (platform, place, name), value)
        return rest

    def built(self) -> tuple[ResetOverride, ...]:
        """Return the overrides, the most general first."""
        order = ("", *_PLACES)
        places = sorted(self._found, key=lambda place: (bool(place[0]), order.index(place[1])))
        return tuple(
            ResetOverride(
                section=section,
                platform=platform or None,
                place=place,
                name=name,
                values=MappingProxyType(values),
                origins=MappingProxyType(origins),
            )
            for platform, place, name in places
            for section, values, origins in (self._found[platform, place, name],)
        )

    def _take(self, layer: Layer, section: str, place: tuple[str, str, str], table: object) -> None:
        _, values, origins = self._found.setdefault(place, (section, {}, {}))
        rules = _rules()
        for key, value in _tables(layer, section, table).items():
            if key not in rules:
                raise unknown_key(layer, section, key, rules)
            values[key] = layer.checked(section, key, rules[key], value)
            origins[key] = f"{layer.origin} [{section}]"


def _rules() -> dict[str, Rule]:
    return {key: rule for key, rule in rules_of(SessionResetSettings).items() if key in RESET_KEYS}


def _tables(layer: Layer, section: str, value: object, name: str = "") -> Mapping[str, object]:
    """Return ``value`` as a table. :raises ConfigError: it is none."""
    if not isinstance(value, dict):
        above, _, own = section.rpartition(".")
        raise layer.fault(section if name else above, name or own, f"{name or own} is no table")
    return value
