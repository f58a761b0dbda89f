"""Hermes Sessions: the session layer for agents that live long.

``open_app`` opens a profile; the other names are those that readers of the original look for. They are loaded when
they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_core.app import HermesApp as HermesApp
    from hermes_core.app import open_app as open_app
    from hermes_core.context.repair import repair_message_sequence as repair_message_sequence
    from hermes_core.routing.key import build_session_key as build_session_key
    from hermes_core.sessions.session_store import SessionStore as SessionStore
    from hermes_hookspecs.source import KeyPolicy as KeyPolicy
    from hermes_hookspecs.source import SessionSource as SessionSource

__all__ = [
    "HermesApp",
    "KeyPolicy",
    "SessionSource",
    "SessionStore",
    "build_session_key",
    "open_app",
    "repair_message_sequence",
]

__version__ = "0.1.0"

_HOMES = {
    "HermesApp": "hermes_core.app",
    "KeyPolicy": "hermes_hookspecs.source",
    "SessionSource": "hermes_hookspecs.source",
    "SessionStore": "hermes_core.sessions.session_store",
    "build_session_key": "hermes_core.routing.key",
    "open_app": "hermes_core.app",
    "repair_message_sequence": "hermes_core.context.repair",
}


def __getattr__(name: str) -> object:
    """Return an exported name from the module that holds it. :raises AttributeError: it is none."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(home), name)
