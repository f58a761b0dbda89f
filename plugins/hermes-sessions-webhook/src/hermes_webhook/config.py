"""What can be set in ``[plugins.webhook]``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import attrs

from hermes_hookspecs.errors import ConfigError
from hermes_webhook.addresses import Prefix, socket_of

__all__ = ["API_SERVER", "WEBHOOK", "AccountConfig", "WebhookConfig"]

WEBHOOK: Final = "webhook"
API_SERVER: Final = "api_server"

_LISTEN: Final = "127.0.0.1:8787"

_ALIAS = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_PATH = re.compile(r"(?:/[A-Za-z0-9_-][A-Za-z0-9_.-]*)+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@attrs.frozen(kw_only=True)
class AccountConfig:
    """One account of one of the two platforms.

    Attributes:
        listen: ``host:port``; accounts may share one. path: what the paths of its requests begin with.
        secret_env: variable that holds the secret, or the token. secret_file: file that holds it, readable by its owner
            alone; asked where the variable is not set.
        own_id: messages of this user are our own, come back, and are passed over.
        callback_url: where answers go whose message names no other address; ``""``: they wait to be fetched.
        callback_allow: addresses that a message may name: the beginning of each must be one of these.
    """

    alias: str
    listen: str
    path: str
    secret_env: str
    secret_file: str = ""
    own_id: str = "hermes"
    callback_url: str = ""
    callback_allow: tuple[Prefix, ...] = ()


@attrs.frozen(kw_only=True)
class WebhookConfig:
    """Which accounts there are, and what a request may cost.

    Attributes:
        listen: ``host:port`` of accounts that name none.
        max_body_kib: largest body that is read. body_timeout_s: in which it has to arrive.
        window_s: how far the timestamp of a signature may be from our clock, either way.
        keep_hours: how long answers can be fetched, and messages asked for.
        max_wait_s: longest wait of one request for an answer. max_waiting: such requests of one account at a time.
        max_length: characters of one part of an answer. max_file_kib: of a file that goes along, 0 for none.
        callback_timeout_s: for one callback.
        webhook, api_server: the accounts, ``default`` first.
    """

    listen: str = _LISTEN
    max_body_kib: int = 256
    body_timeout_s: float = 20.0
    window_s: int = 300
    keep_hours: float = 72.0
    max_wait_s: float = 60.0
    max_waiting: int = 200
    max_length: int = 16_000
    max_file_kib: int = 8192
    callback_timeout_s: float = 20.0
    webhook: tuple[AccountConfig, ...] = ()
    api_server: tuple[AccountConfig, ...] = ()

    @classmethod
    def of(cls, table: Mapping[str, object]) -> WebhookConfig:
        """Return the settings of a table of the configuration.

        :raises ConfigError: an unknown key, another type, a value out of range, or two accounts at one address.
        """
        known = [*_BOUNDS, "listen", _ACCOUNTS, _API]
        values: dict[str, object] = {}
        for key, value in table.items():
            if key not in known:
                raise ConfigError(f"{key} is unknown; there are {', '.join(sorted(known))}", key=key)
            if key in _BOUNDS:
                values[key] = _number(key, value, *_BOUNDS[key])
        listen = values["listen"] = _listen("listen", table.get("listen", _LISTEN))
        values["webhook"] = _accounts(_ACCOUNTS, table.get(_ACCOUNTS, {}), listen)
        values["api_server"] = _accounts(_API, table.get(_API, {}), listen)
        # every value was compared with the type of its field
        config = cls(**values)  # type: ignore[arg-type]
        _refuse_shared_places(config)
        return config


_ACCOUNTS, _API = "accounts", "api"
"""Tables of the accounts of ``webhook`` and of ``api_server``."""

_BOUNDS: Mapping[str, tuple[float, float, bool]] = {
    "max_body_kib": (1, 65_536, True),
    "body_timeout_s": (0.1, 600, False),
    "window_s": (1, 86_400, True),
    "keep_hours": (0.01, 8760, False),
    "max_wait_s": (0, 600, False),
    "max_waiting": (1, 100_000, True),
    "max_length": (100, 1_000_000, True),
    "max_file_kib": (0, 1_048_576, True),
    "callback_timeout_s": (0.1, 600, False),
}
"""Lowest and highest value, and whether it is a whole number."""

_DEFAULTS: Mapping[str, tuple[str, str]] = {
    _ACCOUNTS: ("/webhook", "WEBHOOK_SECRET"),
    _API: ("/api", "API_SERVER_TOKEN"),
}
"""Path and variable of an account that names none; its alias is added, to the variable unless it is ``default``."""


def _accounts(kind: str, table: object, listen: str) -> tuple[AccountConfig, ...]:
    if not isinstance(table, Mapping):
        raise ConfigError(f"{kind} is no table; write [plugins.webhook.{kind}.default]", key=kind)
    aliases = sorted((str(alias) for alias in table), key=lambda alias: (alias != "default", alias))
    return tuple(_account(kind, alias, table[alias], listen) for alias in aliases)


def _account(kind: str, alias: str, table: object, listen: str) -> AccountConfig:
    place = f"{kind}.{alias}"
    if not _ALIAS.fullmatch(alias):
        raise ConfigError(f"{kind}: {alias!r} is no alias: lower-case letters, digits, . _ -", key=kind)
    if not isinstance(table, Mapping):
        raise ConfigError(f"{place} is no table; write [plugins.webhook.{place}]", key=place)
    known = [field.name for field in attrs.fields(AccountConfig) if field.name != "alias"]
    if kind == _API:
        known = [key for key in known if not key.startswith("callback_")]
    for key in table:
        if key not in known:
            raise ConfigError(f"{place}.{key} is unknown; there are {', '.join(known)}", key=f"{place}.{key}")
    path, variable = _DEFAULTS[kind]
    suffix = "" if alias == "default" else "_" + re.sub(r"[.-]", "_", alias).upper()
    found = {
        key: _text(f"{place}.{key}", value) for key, value in table.items() if key not in ("listen", "callback_allow")
    }
    account = AccountConfig(
        alias=alias,
        listen=_listen(f"{place}.listen", table.get("listen", listen)),
        path=found.get("path", f"{path}/{alias}"),
        secret_env=found.get("secret_env", variable + suffix),
        secret_file=found.get("secret_file", ""),
        own_id=found.get("own_id", "hermes"),
        callback_url=found.get("callback_url", ""),
        callback_allow=_prefixes(f"{place}.callback_allow", table.get("callback_allow", ())),
    )
    _check(place, account)
    return account


def _check(place: str, account: AccountConfig) -> None:
    if not _PATH.fullmatch(account.path):
        raise ConfigError(f"{place}.path = {account.path!r} is no path such as /webhook/default", key=f"{place}.path")
    if not _VARIABLE.fullmatch(account.secret_env):
        raise ConfigError(f"{place}.secret_env = {account.secret_env!r} names no variable", key=f"{place}.secret_env")
    if account.callback_url:
        _prefixes(f"{place}.callback_url", (account.callback_url,))


def _refuse_shared_places(config: WebhookConfig) -> None:
    """Refuse two accounts of which one request could mean either."""
    taken: dict[tuple[str, str], str] = {}
    for kind, accounts in ((_ACCOUNTS, config.webhook), (_API, config.api_server)):
        for account in accounts:
            here = f"{kind}.{account.alias}"
            for (listen, path), there in taken.items():
                one, other = f"{path}/", f"{account.path}/"
                if listen == account.listen and (one.startswith(other) or other.startswith(one)):
                    raise ConfigError(f"{here}.path and {there}.path are one place at {listen}", key=f"{here}.path")
            taken[account.listen, account.path] = here


def _listen(place: str, value: object) -> str:
    text = _text(place, value)
    if socket_of(text) is None:
        raise ConfigError(f"{place} = {text!r} is no host:port such as 127.0.0.1:8787", key=place)
    return text


def _prefixes(place: str, value: object) -> tuple[Prefix, ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple):
        raise ConfigError(f'{place} = {value!r} is no list; write ["https://host/path/"]', key=place)
    found = []
    for each in value:
        prefix = Prefix.of(_text(place, each))
        if prefix is None:
            raise ConfigError(f"{place}: {each!r} is no address such as https://host/path/", key=place)
        found.append(prefix)
    return tuple(found)


def _text(place: str, value: object) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{place} = {value!r} is no text", key=place)
    return value


def _number(key: str, value: object, low: float, high: float, whole: bool) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or (whole and not isinstance(value, int)):
        raise ConfigError(f"{key} = {value!r} is no {'whole ' if whole else ''}number", key=key)
    if not low <= value <= high:
        raise ConfigError(f"{key} = {value} is not between {low:g} and {high:g}", key=key)
    return value
