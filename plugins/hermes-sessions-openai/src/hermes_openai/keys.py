"""The key of the endpoint: from the environment, or from a file that nobody else can read."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from hermes_hookspecs.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes_openai.config import OpenAIConfig

__all__ = ["KEYLESS", "key_of", "without_key"]

KEYLESS = "none"
"""What is sent to an endpoint that asks for no key."""

_MOST_BYTES = 10_000
_LEAST_CHARACTERS = 8
"""A shorter key is a word that any text may hold."""
_NAMED = "[key]"


def key_of(config: OpenAIConfig, environ: Mapping[str, str]) -> str:
    """Return the key, ``""`` where there is none. Reads a file where one is named and the variable is not set.

    :raises ConfigError: the file cannot be read, others may read it, or what it holds is no key.
    """
    key = environ.get(config.key_env, "").strip() if config.key_env else ""
    if not key and config.key_file:
        key = _read(os.path.expanduser(config.key_file))
    if not key.isascii() or any(not character.isprintable() or character == " " for character in key):
        raise ConfigError("the key of the endpoint holds what no key has: spaces, line ends or other letters")
    return key


def without_key(text: str, key: str) -> str:
    """Return a text in which the key, should it stand there, is only named; also where the text ends within it."""
    if len(key) < _LEAST_CHARACTERS:
        return text
    text = text.replace(key, _NAMED)
    shown = text.removesuffix("…")
    for length in range(len(key) - 1, _LEAST_CHARACTERS - 1, -1):
        if shown.endswith(key[:length]):
            return shown[:-length] + _NAMED + text[len(shown) :]
    return text


def _read(path: str) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError as error:
        raise ConfigError(f"key_file = {path!r} cannot be read: {error.strerror}", key="key_file") from error
    with os.fdopen(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode
        if os.name == "posix" and mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise ConfigError(f"key_file = {path!r} can be read by others; run: chmod 600 {path}", key="key_file")
        if not stat.S_ISREG(mode):
            raise ConfigError(f"key_file = {path!r} is no file", key="key_file")
        return file.read(_MOST_BYTES).decode("utf-8", "replace").strip()
