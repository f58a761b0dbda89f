"""The secrets of an account: from the environment, else from a file that its owner alone can read.

Of the account ``default`` the variables are ``FEISHU_APP_SECRET``, ``FEISHU_ENCRYPT_KEY`` and
``FEISHU_VERIFICATION_TOKEN``, of ``second`` they are ``FEISHU_SECOND_APP_SECRET`` and so on. The file is TOML with the
keys ``app_secret``, ``encrypt_key`` and ``verification_token``.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import attrs

from hermes_feishu.config import WEBHOOK
from hermes_hookspecs.errors import ConfigError
from hermes_hookspecs.source import DEFAULT_ACCOUNT

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from hermes_feishu.config import AccountConfig

__all__ = ["SECRETS_FILE", "Credentials", "credentials_of", "variable_of"]

SECRETS_FILE = "secrets.toml"
_KEYS = ("app_secret", "encrypt_key", "verification_token")
_MOST_BYTES = 10_000


@attrs.frozen(kw_only=True)
class Credentials:
    """What only we and the platform know.

    Attributes:
        encrypt_key, verification_token: of the webhook; ``""`` where the app has none.
    """

    app_secret: str = attrs.field(repr=False)
    encrypt_key: str = attrs.field(default="", repr=False)
    verification_token: str = attrs.field(default="", repr=False)


def variable_of(account_id: str, key: str) -> str:
    """Return the name of the variable that holds a secret of an account."""
    middle = "" if account_id == DEFAULT_ACCOUNT else "".join(c if c.isalnum() else "_" for c in account_id) + "_"
    return f"FEISHU_{middle}{key}".upper()


def credentials_of(account_id: str, config: AccountConfig, *, environ: Mapping[str, str], folder: Path) -> Credentials:
    """Return the secrets of an account. Reads a file where there is one.

    :param folder: the account's own.
    :raises ConfigError: a secret is missing, or the file is not sound, or others can read it.
    """
    section = f"plugins.feishu.accounts.{account_id}"
    path = os.path.expanduser(config.secrets_file) if config.secrets_file else str(folder / SECRETS_FILE)
    kept = _read(path, section, required=bool(config.secrets_file))
    found = {key: environ.get(variable_of(account_id, key), "").strip() or kept.get(key, "") for key in _KEYS}
    for key, value in found.items():
        if not value.isascii() or any(not character.isprintable() or character == " " for character in value):
            raise ConfigError(f"[{section}] the {key} holds what none has: spaces or other letters", section=section)
    if not found["app_secret"]:
        raise ConfigError(
            f"[{section}] there is no app secret: set {variable_of(account_id, 'app_secret')}, or write it as "
            f"app_secret into {path} (mode 0600)",
            section=section,
            key="app_secret",
        )
    if config.mode == WEBHOOK and not found["encrypt_key"] and not found["verification_token"]:
        raise ConfigError(
            f"[{section}] a webhook needs the app's encrypt key or verification token, or anybody could call it: set "
            f"{variable_of(account_id, 'encrypt_key')} or {variable_of(account_id, 'verification_token')}",
            section=section,
            key="encrypt_key",
        )
    return Credentials(**found)


def _read(path: str, section: str, *, required: bool) -> Mapping[str, str]:
    import tomllib

    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except FileNotFoundError:
        if required:
            raise ConfigError(f"[{section}] secrets_file = {path!r} is not there", section=section) from None
        return {}
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", section=section, origin=path) from error
    with os.fdopen(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode
        if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ConfigError(f"{path} can be read by others; run: chmod 600 {path}", section=section, origin=path)
        content = file.read(_MOST_BYTES)
    try:
        table = tomllib.loads(content.decode())
    except ValueError:
        # what stands there may be the secret: it is not shown
        raise ConfigError(f'{path} is no TOML; write: app_secret = "..."', section=section, origin=path) from None
    for key, value in table.items():
        if key not in _KEYS or not isinstance(value, str):
            raise ConfigError(f"{path} may hold {', '.join(_KEYS)}, each a text", section=section, origin=path)
    return {key: str(value).strip() for key, value in table.items()}
