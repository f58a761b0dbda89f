"""Which terminal this is: the source of what is typed here."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from hermes_hookspecs.source import SessionSource

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["PLATFORM", "login_name", "source_of", "terminal_id", "terminal_source", "transient_source"]

PLATFORM = "cli"

_LIMIT = 80
"""Most characters of a terminal's id."""


def terminal_id(tty: str | None, environ: Mapping[str, str]) -> str | None:
    """Return a name for one terminal, pane or tab that stays the same while it is open.

    The innermost of what draws windows wins: inside tmux the variables of the terminal around it belong to whoever
    started the server. The device is part of the name, since a pane's number alone begins anew with each server.

    :param tty: device such as ``/dev/pts/3``; ``None`` where the standard streams are none.
    :param environ: the environment.
    :returns: ``pts-3``, ``pts-3.tmux-1234-5`` and the like; ``None`` without a terminal.
    """
    if tty is None:
        return None
    parts = [_plain(tty.removeprefix("/dev/"))]
    if pane := environ.get("TMUX_PANE"):
        server = environ.get("TMUX", "").split(",")
        parts.append(_plain("-".join(("tmux", *server[1:2], pane.lstrip("%")))))
    elif screen := environ.get("STY"):
        parts.append(_plain("-".join(("screen", screen, environ.get("WINDOW", "")))))
    elif tab := environ.get("WT_SESSION") or environ.get("TERM_SESSION_ID"):
        parts.append(_plain(tab))
    name = ".".join(parts)
    if len(name) <= _LIMIT:
        return name
    from hashlib import blake2s

    return f"{name[: _LIMIT - 17]}.{blake2s(name.encode(), digest_size=8).hexdigest()}"


def _plain(text: str) -> str:
    """Return ``text`` with everything but ASCII letters, digits and ``_`` as a dash: it stands in keys and lists."""
    return "".join(each if each.isascii() and (each.isalnum() or each == "_") else "-" for each in text).strip("-")


def _tty() -> str | None:
    """Return the device behind the first standard stream that is a terminal."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        try:
            if stream is not None and stream.isatty():
                return os.ttyname(stream.fileno()) if hasattr(os, "ttyname") else "console"
        except (OSError, ValueError):
            continue
    return None


def login_name() -> str:
    """Return the name of the user whose process this is."""
    for variable in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        if name := os.environ.get(variable):
            return name
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError, AttributeError):
        return "user"


def source_of(chat_id: str) -> SessionSource:
    """Return the source of what the user of this process types at ``chat_id``."""
    name = login_name()
    return SessionSource(platform=PLATFORM, chat_type="dm", chat_id=chat_id, user_id=name, user_name=name)


def terminal_source() -> SessionSource | None:
    """Return the source of this terminal, ``None`` where stdin, stdout and stderr are no terminal."""
    terminal = terminal_id(_tty(), os.environ)
    return None if terminal is None else source_of(terminal)


def transient_source() -> SessionSource:
    """Return a source for a program without a terminal; no second one is like it, and no route shall lead there."""
    return source_of(f"run-{os.urandom(4).hex()}")
