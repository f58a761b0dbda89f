"""The secrets of an account, from the environment.

``SLACK_BOT_TOKEN`` (``xoxb-…``; several, parted by commas, where one app is installed in several workspaces),
``SLACK_APP_TOKEN`` (``xapp-…``, for Socket Mode), ``SLACK_SIGNING_SECRET`` (for the Events API). For any other account
than ``default`` its alias follows, in capitals: ``SLACK_BOT_TOKEN_SECOND``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.errors import ConfigError
from hermes_hookspecs.source import DEFAULT_ACCOUNT
from hermes_slack.config import HTTP

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Credentials", "credentials_of", "variable"]


@attrs.frozen(kw_only=True)
class Credentials:
    """Secrets of one account. ``app_token`` and ``signing_secret`` are ``""`` where the mode needs none."""

    bot_tokens: tuple[str, ...] = attrs.field(repr=False)
    app_token: str = attrs.field(default="", repr=False)
    signing_secret: str = attrs.field(default="", repr=False)


def variable(name: str, account_id: str) -> str:
    """Return the environment variable that holds a secret of an account."""
    suffix = "" if account_id == DEFAULT_ACCOUNT else f"_{account_id.upper().replace('-', '_')}"
    return f"SLACK_{name}{suffix}"


def credentials_of(account_id: str, mode: str, environ: Mapping[str, str]) -> Credentials:
    """Return the secrets of an account. :raises ConfigError: one is missing, or of another kind; never its value."""
    tokens = tuple(token.strip() for token in _required("BOT_TOKEN", account_id, environ).split(",") if token.strip())
    if not tokens or any(not token.startswith("xoxb-") for token in tokens):
        raise _wrong("BOT_TOKEN", account_id, "a bot token, which begins with xoxb-")
    if len(set(tokens)) != len(tokens):
        raise ConfigError(f"{variable('BOT_TOKEN', account_id)} holds one token twice", origin="environment")
    if mode == HTTP:
        return Credentials(bot_tokens=tokens, signing_secret=_required("SIGNING_SECRET", account_id, environ))
    app_token = _required("APP_TOKEN", account_id, environ)
    if not app_token.startswith("xapp-"):
        raise _wrong("APP_TOKEN", account_id, "an app-level token, which begins with xapp-")
    return Credentials(bot_tokens=tokens, app_token=app_token)


def _required(name: str, account_id: str, environ: Mapping[str, str]) -> str:
    key = variable(name, account_id)
    value = environ.get(key, "").strip()
    if not value:
        raise ConfigError(f"{key} is not set: the slack account {account_id!r} needs it", origin="environment", key=key)
    if not value.isascii() or any(character.isspace() for character in value.replace(", ", ",")):
        raise ConfigError(f"{key} holds characters that no secret of Slack has", origin="environment", key=key)
    return value


def _wrong(name: str, account_id: str, what: str) -> ConfigError:
    key = variable(name, account_id)
    return ConfigError(f"{key} is not {what}", origin="environment", key=key)
