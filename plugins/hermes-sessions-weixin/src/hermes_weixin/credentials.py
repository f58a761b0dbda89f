"""What a login gives, in one file that its owner alone can read. It never gets into the store."""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

import attrs

from hermes_hookspecs.errors import ConfigError

__all__ = ["Credentials", "forget", "load", "save"]

_FILE = "credentials.json"


@attrs.frozen(kw_only=True)
class Credentials:
    """A bound bot.

    Attributes:
        bot_id: changes with every login, and so is in no key. user_id: the person who scanned; may talk at once.
        base_url: where the account lives. saved_at: UTC milliseconds.
    """

    token: str = attrs.field(repr=False)
    bot_id: str
    user_id: str
    base_url: str
    saved_at: int


def load(folder: Path) -> Credentials | None:
    """Return the login that is kept in a folder, ``None`` where there is none.

    :raises ConfigError: the file can be read by others, or holds no login.
    """
    path = folder / _FILE
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", origin=str(path)) from error
    with os.fdopen(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode
        if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ConfigError(f"{path} can be read by others; run: chmod 600 {path}", origin=str(path))
        content = file.read(100_000)
    try:
        found = json.loads(content)
        return Credentials(**{field.name: found[field.name] for field in attrs.fields(Credentials)})
    except (ValueError, KeyError, TypeError):
        raise ConfigError(f"{path} holds no login; run: hermes weixin login", origin=str(path)) from None


def save(folder: Path, credentials: Credentials) -> None:
    """Keep a login: the file is whole or the one before it, and durable when this returns."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with NamedTemporaryFile("w", dir=folder, prefix=".login-", delete=False, encoding="utf-8") as file:
        try:
            json.dump(attrs.asdict(credentials), file)
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, folder / _FILE)
        except BaseException:
            with suppress(OSError):
                os.unlink(file.name)
            raise


def forget(folder: Path) -> bool:
    """Remove a login; return whether there was one."""
    try:
        (folder / _FILE).unlink()
    except FileNotFoundError:
        return False
    return True
