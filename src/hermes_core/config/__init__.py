"""Configuration: ``config.toml``, environment and options become frozen values that know where they came from.

Names are loaded on first use, so that importing the package costs nothing: neither the TOML parser nor the
spelling helper nor the time zone database is loaded before something needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_core.config.listing import Setting, describe
    from hermes_core.config.load import load_settings
    from hermes_core.config.sections import Settings

__all__ = ["Setting", "Settings", "describe", "load_settings"]

_ROOMS = {"Setting": "listing", "Settings": "sections", "describe": "listing", "load_settings": "load"}


def __getattr__(name: str) -> object:
    """Return the exported object ``name`` from the module that holds it.

    :raises AttributeError: for any name that is not exported.
    """
    room = _ROOMS.get(name)
    if room is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module

    found: object = getattr(import_module(f"{__name__}.{room}"), name)
    globals()[name] = found
    return found
