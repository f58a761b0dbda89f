"""What can be set in ``[plugins.slack]``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["CHANNEL", "HTTP", "SOCKET", "THREAD", "SlackConfig"]

SOCKET, HTTP = "socket", "http"
"""Ways in: Socket Mode, the Events API."""
THREAD, CHANNEL = "thread", "channel"
"""What a message at the top of a channel begins: a thread of its own, or nothing (the channel is one session)."""

_ALIAS = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_HOST = re.compile(r"\.?[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?")
_LISTEN = re.compile(r"(\[[0-9a-f:.]+\]|[A-Za-z0-9.-]+):(\d{1,5})")
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_COMMAND = re.compile(r"[a-z][a-z0-9_-]{0,31}")


@attrs.frozen(kw_only=True)
class SlackConfig:
    """Which accounts run, how Slack is spoken to, and what is a session in a channel.

    Attributes:
        accounts: aliases of the accounts that the gateway runs; their tokens stand in the environment, see
            :mod:`hermes_slack.credentials`.
        mode: ``socket`` (Socket Mode) or ``http`` (Events API). listen: host and port of the Events API's server,
            shared by the accounts; each has the path ``/slack/<alias>``.
        base_url: of the Web API. media_hosts: where bytes may come from; a name that begins with a dot stands for all
            below it.
        replies: ``thread``: a message at the top of a channel is answered in a thread, which is a session of its own;
            ``channel``: it is answered in the channel, whose top is one session (or one for each person).
        free_channels: ids of channels in which everything is meant for us.
        thread_replies: in a thread that we write in, everything is meant for us; else only a mention is.
        bang_commands: ``!new`` is ``/new``: Slack takes no slash commands in threads.
        slash_commands: names of commands whose text is the message itself (``/hermes what is new?``); any other one is
            taken with its name.
        thread_context: messages of a thread that are shown to an agent which has not seen them; 0 for none.
        thread_days: how long a thread that we write in is known as ours.
        names: ask what the people are called who talk to us.
        assistant_status: show that an answer is being written, in threads. assistant_streams: let it grow there as
            Slack's own streams do, where the app may; else by edits.
        chunk_characters: of one message. posts_per_minute: to one channel. max_media_bytes: of what comes.
        max_file_bytes: of a file that goes out, 0 for none; it has to be uploaded within 40 s.
        ping_s: between two pings on the socket; silence_s: after which it is given up.
        leave_s: longest wait, when leaving, for the batch in hand. most_waiting: events in memory behind which none is
            taken any more: Slack brings them again.
    """

    accounts: tuple[str, ...] = ()
    mode: str = SOCKET
    listen: str = "127.0.0.1:8766"
    base_url: str = "https://slack.com/api"
    media_hosts: tuple[str, ...] = (".slack.com", ".slack-files.com")
    replies: str = THREAD
    free_channels: tuple[str, ...] = ()
    thread_replies: bool = True
    bang_commands: bool = True
    slash_commands: tuple[str, ...] = ("hermes",)
    thread_context: int = 20
    thread_days: float = 30.0
    names: bool = True
    assistant_status: bool = True
    assistant_streams: bool = True
    chunk_characters: int = 3500
    posts_per_minute: int = 60
    max_media_bytes: int = 100 * 1024 * 1024
    max_file_bytes: int = 100 * 1024 * 1024
    ping_s: float = 10.0
    silence_s: float = 30.0
    leave_s: float = 15.0
    most_waiting: int = 1000

    @classmethod
    def of(cls, table: Mapping[str, object]) -> SlackConfig:
        """Return the settings of a table of the configuration.

        :raises ConfigError: an unknown key, another type, or a value out of range; it names the key.
        """
        known = [field.name for field in attrs.fields(cls)]
        values: dict[str, object] = {}
        for key, value in table.items():
            if key not in known:
                raise ConfigError(f"{key} is unknown; there are {', '.join(known)}", key=key)
            if key in _LISTS:
                values[key] = _names(key, value)
            elif key in _CHOICES:
                values[key] = _choice(key, value)
            elif key in _BOUNDS:
                values[key] = _number(key, value, *_BOUNDS[key])
            elif key in _SWITCHES:
                values[key] = _switch(key, value)
            else:
                values[key] = _address(key, value)
        # every value was compared with the type of its field
        config = cls(**values)  # type: ignore[arg-type]
        if config.silence_s <= config.ping_s:
            raise ConfigError(
                f"silence_s = {config.silence_s:g} is not more than ping_s = {config.ping_s:g}", key="silence_s"
            )
        return config


_LISTS = {
    "accounts": (_ALIAS, "alias: lower-case letters, digits, _ -"),
    "media_hosts": (_HOST, "host: files.slack.com, or .slack.com for all below it"),
    "free_channels": (_ID, "id of a channel, such as C0123456789"),
    "slash_commands": (_COMMAND, "name of a command, without its slash"),
}
_CHOICES = {"mode": (SOCKET, HTTP), "replies": (THREAD, CHANNEL)}
_SWITCHES = ("thread_replies", "bang_commands", "names", "assistant_status", "assistant_streams")
_BOUNDS: Mapping[str, tuple[float, float, bool]] = {
    "thread_context": (0, 200, True),
    "thread_days": (0.01, 3650, False),
    "chunk_characters": (100, 8000, True),
    "posts_per_minute": (1, 1000, True),
    "max_media_bytes": (1, 2**32, True),
    "max_file_bytes": (0, 2**30, True),
    "ping_s": (0.05, 300, False),
    "silence_s": (0.1, 900, False),
    "leave_s": (0, 120, False),
    "most_waiting": (1, 100_000, True),
}
"""Lowest and highest value, and whether it is a whole number."""


def _names(key: str, value: object) -> tuple[str, ...]:
    pattern, what = _LISTS[key]
    if isinstance(value, str) or not isinstance(value, tuple | list):
        raise ConfigError(f"{key} = {value!r} is no list; write {key} = [...]", key=key)
    for name in value:
        if not isinstance(name, str) or not pattern.fullmatch(name):
            raise ConfigError(f"{key}: {name!r} is no {what}", key=key)
    # two aliases that differ in their dashes alone would read the same variables
    if len({name.replace("-", "_") for name in value}) != len(value):
        raise ConfigError(f"{key} names one twice", key=key)
    return tuple(value)


def _choice(key: str, value: object) -> str:
    if not isinstance(value, str) or value not in _CHOICES[key]:
        raise ConfigError(f"{key} = {value!r} is neither {' nor '.join(_CHOICES[key])}", key=key)
    return value


def _switch(key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{key} = {value!r} is neither true nor false", key=key)
    return value


def _address(key: str, value: object) -> str:
    if key == "listen":
        found = _LISTEN.fullmatch(value) if isinstance(value, str) else None
        if found is None or int(found[2]) > 65535:
            raise ConfigError(f"{key} = {value!r} is no host and port, such as 127.0.0.1:8766", key=key)
        return found[0]
    if not isinstance(value, str) or not value.startswith(("http://", "https://")) or "@" in value or "?" in value:
        raise ConfigError(f"{key} = {value!r} is no address: https://host/api", key=key)
    return value.rstrip("/")


def _number(key: str, value: object, low: float, high: float, whole: bool) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or (whole and not isinstance(value, int)):
        raise ConfigError(f"{key} = {value!r} is no {'whole ' if whole else ''}number", key=key)
    if not low <= value <= high:
        raise ConfigError(f"{key} = {value} is not between {low:g} and {high:g}", key=key)
    return value
