"""What can be set in ``[plugins.feishu]`` and in ``[plugins.feishu.accounts.<alias>]``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

import attrs

from hermes_hookspecs.errors import ConfigError

__all__ = ["CONNECTION", "DOMAINS", "WEBHOOK", "AccountConfig", "FeishuConfig"]

CONNECTION, WEBHOOK = "connection", "webhook"
"""Modes: we hold a connection, or the platform calls us."""
DOMAINS: Mapping[str, str] = MappingProxyType(
    {"feishu": "https://open.feishu.cn", "lark": "https://open.larksuite.com"}
)

_SECTION = "plugins.feishu"
_ALIAS = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_LISTEN = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+):([0-9]{1,5})")
_PATH = re.compile(r"/[A-Za-z0-9._~/-]{0,200}")
_APP_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")


@attrs.frozen(kw_only=True)
class AccountConfig:
    """One app of the platform.

    Attributes:
        app_id: of the app, ``cli_...``. domain: address of the open platform, without a slash at its end.
        mode: :data:`CONNECTION` or :data:`WEBHOOK`. listen: host and port of the webhook. path: the path of its URL,
            ``/feishu/<alias>`` where it is not set; accounts may share an address, and not a path.
        secrets_file: where the secrets are that the environment does not have; ``""``: in the account's own folder.
        reply_in_thread: an answer in a group opens a topic. quote: an answer in a group quotes its question.
        mention_all: ``@all`` counts as a mention of us.
        max_age_minutes: of a message that comes late; older ones are put aside. 0: none is too old.
        proxy: address of an HTTP proxy.
    """

    app_id: str
    domain: str = DOMAINS["feishu"]
    mode: str = CONNECTION
    listen: tuple[str, int] = ("127.0.0.1", 9321)
    path: str = ""
    secrets_file: str = ""
    reply_in_thread: bool = False
    quote: bool = True
    mention_all: bool = False
    max_age_minutes: float = 0.0
    proxy: str = ""


@attrs.frozen(kw_only=True)
class FeishuConfig:
    """The accounts, and what holds for all of them.

    Attributes:
        accounts: by alias. typing: an answer that is being written is shown by a reaction to its question.
        cards: an answer with tables goes out as a card. max_characters: of one message.
        timeout_s: of one request. silence_s: beyond the interval of pings, after which a connection is made anew.
        idle_rebuild_s: age after which a connection that brought no event is made anew; 0: never.
        reconnect_first_s, reconnect_most_s: the back-off of a connection that fails.
        leave_s: longest wait, when leaving, for what is being stored.
    """

    accounts: Mapping[str, AccountConfig] = attrs.field(factory=dict)
    typing: bool = True
    cards: bool = True
    max_characters: int = 3800
    timeout_s: float = 15.0
    silence_s: float = 30.0
    idle_rebuild_s: float = 7200.0
    reconnect_first_s: float = 1.0
    reconnect_most_s: float = 120.0
    leave_s: float = 6.0

    @classmethod
    def of(cls, table: Mapping[str, object]) -> FeishuConfig:
        """Return the settings of a table of the configuration.

        :raises ConfigError: an unknown key, another type, or a value out of range; it names section and key.
        """
        known = [field.name for field in attrs.fields(cls)]
        values: dict[str, object] = {}
        for key, value in table.items():
            if key not in known:
                raise _wrong(_SECTION, key, f"is unknown; there are {', '.join(known)}")
            values[key] = _accounts(value) if key == "accounts" else _common(key, value)
        # every value was compared with the type of its field
        return cls(**values)  # type: ignore[arg-type]


_BOUNDS: Mapping[str, tuple[float, float, bool]] = {
    "max_characters": (100, 8000, True),
    "timeout_s": (0.05, 600, False),
    "silence_s": (0.05, 3600, False),
    "idle_rebuild_s": (0, 604_800, False),
    "reconnect_first_s": (0.001, 600, False),
    "reconnect_most_s": (0.001, 3600, False),
    "leave_s": (0, 120, False),
}
"""Lowest and highest value, and whether it is a whole number."""
_SWITCHES = ("reply_in_thread", "quote", "mention_all")


def _wrong(section: str, key: str, what: str) -> ConfigError:
    return ConfigError(f"[{section}] {key} {what}", section=section, key=key)


def _common(key: str, value: object) -> object:
    if key in _BOUNDS:
        return _number(_SECTION, key, value, _BOUNDS[key])
    return _switch(_SECTION, key, value)


def _accounts(value: object) -> Mapping[str, AccountConfig]:
    if not isinstance(value, Mapping):
        raise _wrong(_SECTION, "accounts", "is no table; write [plugins.feishu.accounts.default]")
    accounts: dict[str, AccountConfig] = {}
    owners: dict[str, str] = {}
    for alias, table in value.items():
        section = f"{_SECTION}.accounts.{alias}"
        if not _ALIAS.fullmatch(str(alias)):
            raise _wrong(section, str(alias), "is no alias: lower-case letters, digits, . _ -")
        account = _account(section, table)
        if not account.path:
            account = attrs.evolve(account, path=f"/feishu/{alias}")
        other = owners.setdefault(account.app_id, str(alias))
        if other != alias:
            raise _wrong(
                section, "app_id", f"is the one of account {other!r}, too: each event reaches only one of them"
            )
        accounts[str(alias)] = account
    _refuse_shared_addresses(accounts)
    return accounts


def _refuse_shared_addresses(accounts: Mapping[str, AccountConfig]) -> None:
    owners: dict[tuple[str, int, str], str] = {}
    for alias, account in accounts.items():
        place = (*account.listen, account.path)
        other = owners.setdefault(place, alias) if account.mode == WEBHOOK else alias
        if other != alias:
            what = f"{account.path!r} is the path of account {other!r} at the same address, too"
            raise _wrong(f"{_SECTION}.accounts.{alias}", "path", what)


def _account(section: str, table: object) -> AccountConfig:
    known = [field.name for field in attrs.fields(AccountConfig)]
    if not isinstance(table, Mapping):
        raise _wrong(section, "app_id", f"is missing; write [{section}] and app_id below it")
    values: dict[str, object] = {}
    for key, value in table.items():
        if key not in known:
            raise _wrong(section, key, f"is unknown; there are {', '.join(known)}")
        if key in _SWITCHES:
            values[key] = _switch(section, key, value)
        elif key == "max_age_minutes":
            values[key] = _number(section, key, value, (0, 525_600, False))
        else:
            values[key] = _READERS[key](section, key, _text(section, key, value))
    if not values.get("app_id"):
        raise _wrong(section, "app_id", "is missing; it stands on the page of the app, and begins with cli_")
    # every value was compared with the type of its field
    return AccountConfig(**values)  # type: ignore[arg-type]


def _switch(section: str, key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise _wrong(section, key, f"= {value!r} is neither true nor false")
    return value


def _number(section: str, key: str, value: object, bounds: tuple[float, float, bool]) -> float:
    low, high, whole = bounds
    if isinstance(value, bool) or not isinstance(value, int | float) or (whole and not isinstance(value, int)):
        raise _wrong(section, key, f"= {value!r} is no {'whole ' if whole else ''}number")
    if not low <= value <= high:
        raise _wrong(section, key, f"= {value} is not between {low:g} and {high:g}")
    return value


def _text(section: str, key: str, value: object) -> str:
    if not isinstance(value, str) or any(not character.isprintable() for character in value):
        raise _wrong(section, key, f"= {value!r} is no text")
    return value.strip()


def _app_id(section: str, key: str, value: str) -> str:
    if not _APP_ID.fullmatch(value):
        raise _wrong(section, key, f"= {value!r} is no id of an app, such as cli_a1b2c3")
    return value


def _domain(section: str, key: str, value: str) -> str:
    if value in DOMAINS:
        return DOMAINS[value]
    return _address(section, key, value, f"neither {' nor '.join(DOMAINS)} nor an address: https://host")


def _proxy(section: str, key: str, value: str) -> str:
    return _address(section, key, value, "no address: http://host:port, without a name or a password") if value else ""


def _address(section: str, key: str, value: str, what: str) -> str:
    if not value.startswith(("http://", "https://")) or "@" in value or "?" in value:
        raise _wrong(section, key, f"= {value!r} is {what}")
    return value.rstrip("/")


def _mode(section: str, key: str, value: str) -> str:
    if value not in (CONNECTION, WEBHOOK):
        raise _wrong(section, key, f"= {value!r} is neither {CONNECTION} nor {WEBHOOK}")
    return value


def _listen(section: str, key: str, value: str) -> tuple[str, int]:
    found = _LISTEN.fullmatch(value)
    if found is None or not 1 <= int(found[2]) <= 65_535:
        raise _wrong(section, key, f"= {value!r} is no host and port: 127.0.0.1:9321")
    return found[1].strip("[]"), int(found[2])


def _path(section: str, key: str, value: str) -> str:
    if not _PATH.fullmatch(value):
        raise _wrong(section, key, f"= {value!r} is no path: /feishu")
    return value


def _as_it_is(_section: str, _key: str, value: str) -> str:
    return value


_READERS = MappingProxyType(
    {
        "app_id": _app_id,
        "domain": _domain,
        "mode": _mode,
        "listen": _listen,
        "path": _path,
        "secrets_file": _as_it_is,
        "proxy": _proxy,
    }
)
