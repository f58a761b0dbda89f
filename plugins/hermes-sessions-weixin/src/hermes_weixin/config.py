"""What can be set in ``[plugins.weixin]``."""

from __future__ import annotations

import re
from collections.abc import Mapping

import attrs

from hermes_hookspecs.errors import ConfigError
from hermes_weixin.wire import CHANNEL_VERSION

__all__ = ["WeixinConfig"]

_AGENT = re.compile(r"[A-Za-z0-9_.-]{1,32}/[A-Za-z0-9_.+-]{1,32}(?: \([ -~]{1,64}\))?")
_ALIAS = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")


@attrs.frozen(kw_only=True)
class WeixinConfig:
    """Which accounts run, and how the bot channel is spoken to.

    Attributes:
        accounts: aliases of the accounts that the gateway runs; each is logged in with ``hermes weixin login``.
        base_url: where logins begin. cdn_url: where bytes are. media_hosts: further hosts that bytes may come from; a
            name that begins with a dot stands for all below it.
        channel_version: of the client whose protocol is spoken. bot_agent: how we call ourselves there.
        quota: messages that may be sent for each one that came. window_hours: how long after it.
        peer_pause_s, bot_pause_s: least seconds between two messages to one person, and of the bot.
        chunk_characters: of one message; the client cuts longer ones silently. file_from_parts: an answer of so many
            messages, or of more than the quota has left, goes as a file.
        max_media_bytes: of what comes. max_file_bytes: of a file that goes out, 0 for none.
        quote_days: how long a message can be quoted.
        leave_s: longest wait, when leaving, for the poll that is under way: what it brings would be lost. The server
            answers one that has nothing to bring after about 35 seconds.
    """

    accounts: tuple[str, ...] = ()
    base_url: str = "https://ilinkai.weixin.qq.com"
    cdn_url: str = "https://novac2c.cdn.weixin.qq.com/c2c"
    media_hosts: tuple[str, ...] = (".weixin.qq.com", ".wechat.com", ".qq.com")
    channel_version: str = CHANNEL_VERSION
    bot_agent: str = "HermesSessions/0.1.0"
    quota: int = 9
    window_hours: float = 24.0
    peer_pause_s: float = 1.5
    bot_pause_s: float = 0.5
    chunk_characters: int = 1800
    file_from_parts: int = 6
    max_media_bytes: int = 100 * 1024 * 1024
    max_file_bytes: int = 30_000_000
    quote_days: float = 30.0
    leave_s: float = 38.0

    @classmethod
    def of(cls, table: Mapping[str, object]) -> WeixinConfig:
        """Return the settings of a table of the configuration.

        :raises ConfigError: an unknown key, another type, or a value out of range; it names the key.
        """
        known = [field.name for field in attrs.fields(cls)]
        values: dict[str, object] = {}
        for key, value in table.items():
            if key not in known:
                raise ConfigError(f"{key} is unknown; there are {', '.join(known)}", key=key)
            if key in ("accounts", "media_hosts"):
                values[key] = _names(key, value)
            elif key in ("base_url", "cdn_url"):
                values[key] = _address(key, value)
            elif key in _BOUNDS:
                values[key] = _number(key, value, *_BOUNDS[key])
            else:
                values[key] = _text(key, value)
        # every value was compared with the type of its field
        return cls(**values)  # type: ignore[arg-type]


_BOUNDS: Mapping[str, tuple[float, float, bool]] = {
    "quota": (1, 1000, True),
    "window_hours": (0.1, 8760, False),
    "peer_pause_s": (0, 60, False),
    "bot_pause_s": (0, 60, False),
    "chunk_characters": (100, 4000, True),
    "file_from_parts": (2, 1000, True),
    "max_media_bytes": (1, 2**32, True),
    "max_file_bytes": (0, 2**30, True),
    "quote_days": (0.01, 3650, False),
    "leave_s": (0, 120, False),
}
"""Lowest and highest value, and whether it is a whole number."""


def _names(key: str, value: object) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, tuple | list):
        raise ConfigError(f'{key} = {value!r} is no list; write {key} = ["default"]', key=key)
    names = tuple(str(name) for name in value)
    if key == "accounts":
        for name in names:
            if not _ALIAS.fullmatch(name):
                raise ConfigError(f"{key}: {name!r} is no alias: lower-case letters, digits, . _ -", key=key)
    if len(set(names)) != len(names):
        raise ConfigError(f"{key} names one twice", key=key)
    return names


def _address(key: str, value: object) -> str:
    if not isinstance(value, str) or not value.startswith(("http://", "https://")) or "@" in value or "?" in value:
        raise ConfigError(f"{key} = {value!r} is no address: https://host", key=key)
    return value.rstrip("/")


def _text(key: str, value: object) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{key} = {value!r} is no text", key=key)
    if key == "bot_agent" and (not _AGENT.fullmatch(value) or len(value) > 256):
        raise ConfigError(f"{key} = {value!r} is no Name/Version", key=key)
    if key == "channel_version" and not re.fullmatch(r"\d{1,3}\.\d{1,3}\.\d{1,3}", value):
        raise ConfigError(f"{key} = {value!r} is no version such as {CHANNEL_VERSION}", key=key)
    return value


def _number(key: str, value: object, low: float, high: float, whole: bool) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or (whole and not isinstance(value, int)):
        raise ConfigError(f"{key} = {value!r} is no {'whole ' if whole else ''}number", key=key)
    if not low <= value <= high:
        raise ConfigError(f"{key} = {value} is not between {low:g} and {high:g}", key=key)
    return value
