"""The secret of an account: from the environment, or from a file that nobody else can read."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from hermes_hookspecs.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_webhook.config import AccountConfig

__all__ = ["SHORTEST", "secret_of"]

SHORTEST = 16
"""Characters of a secret: a shorter one can be guessed by whoever has one signature."""

_MOST_BYTES = 10_000


def secret_of(account: AccountConfig, environ: Mapping[str, str]) -> str:
    """Return the secret. Reads a file where one is named and the variable is not set.

    :raises ConfigError: there is none, it is too short or holds what no header can carry, or others may read its file.
    """
    origin, secret = account.secret_env, environ.get(account.secret_env, "").strip()
    if not secret and account.secret_file:
        origin, secret = account.secret_file, _read(os.path.expanduser(account.secret_file))
    if not secret:
        raise ConfigError(
            f"{account.alias!r} has no secret: set {account.secret_env} to one of at least {SHORTEST} characters, "
            f"or name a secret_file",
            key="secret_env",
        )
    if len(secret) < SHORTEST:
        raise ConfigError(f"the secret in {origin} is shorter than {SHORTEST} characters", key="secret_env")
    if not secret.isascii() or any(not character.isprintable() or character == " " for character in secret):
        raise ConfigError(
            f"the secret in {origin} holds blanks, line ends or other letters than ASCII", key="secret_env"
        )
    return secret


def _read(path: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError as error:
        raise ConfigError(f"secret_file = {path!r} cannot be read: {error.strerror}", key="secret_file") from error
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise ConfigError(f"secret_file = {path!r} is no file", key="secret_file")
        if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ConfigError(f"secret_file = {path!r} can be read by others; run: chmod 600 {path}", key="secret_file")
        return os.read(descriptor, _MOST_BYTES).decode("utf-8", "replace").strip()
    finally:
        os.close(descriptor)
