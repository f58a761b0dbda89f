"""What can be set in ``[plugins.reset-cron]``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_reset_cron.rules import Rule

__all__ = ["ResetCronConfig"]

MOST_RULES = 50
_KEYS = ("rules", "timezone")


@attrs.frozen(kw_only=True)
class ResetCronConfig:
    """When conversations end.

    Attributes:
        rules: each names one or more times (:mod:`hermes_reset_cron.rules`); the first that passes ends.
        timezone: IANA name of the zone of all rules; ``""`` takes the one that is in force for the conversation.
    """

    rules: tuple[Rule, ...] = ()
    timezone: str = ""

    @classmethod
    def of(cls, table: Mapping[str, object]) -> ResetCronConfig:
        """Return the settings of a table of the configuration.

        :raises ConfigError: an unknown key, a rule that cannot be read, or a zone that this host does not know.
        """
        for key in table:
            if key not in _KEYS:
                raise ConfigError(f"{key} is unknown; there are {', '.join(_KEYS)}", key=key)
        return cls(rules=_rules(table.get("rules", ())), timezone=_zone(table.get("timezone", "")))


def _rules(value: object) -> tuple[Rule, ...]:
    from hermes_reset_cron.rules import RuleError, read_rule

    if isinstance(value, str) or not isinstance(value, list | tuple):
        raise ConfigError(f'rules = {value!r} is no list; write ["weekdays at 18:00"]', key="rules")
    if len(value) > MOST_RULES:
        raise ConfigError(f"rules holds {len(value)} rules, at most {MOST_RULES} are allowed", key="rules")
    rules = []
    for text in value:
        if not isinstance(text, str):
            raise ConfigError(f"rules holds {text!r}, which is no text", key="rules")
        try:
            rules.append(read_rule(text))
        except RuleError as error:
            raise ConfigError(f"rules holds {text!r}: {error}", key="rules") from None
    return tuple(rules)


def _zone(value: object) -> str:
    from zoneinfo import ZoneInfo

    if not isinstance(value, str):
        raise ConfigError(f"timezone = {value!r} is no text", key="timezone")
    try:
        return ZoneInfo(value).key if value else ""
    except (KeyError, ValueError, OSError):
        raise ConfigError(
            f'timezone = {value!r} is no time zone known to this host; write an IANA name such as "Europe/Berlin"',
            key="timezone",
        ) from None
