"""Plugins: discover → choose → import → create → rehearse → register guarded.

One broken plugin is a row in the :class:`LoadReport`, never a traceback for everybody. Names are loaded on first use:
importing this package loads neither pluggy nor the metadata reader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_core.plugins.cache import find_candidates
    from hermes_core.plugins.candidates import Candidate, discover
    from hermes_core.plugins.front_end import find_front_end
    from hermes_core.plugins.host import PluginHost, load
    from hermes_core.plugins.report import LoadReport, PluginRow
    from hermes_core.plugins.stages import import_plugin

__all__ = [
    "Candidate",
    "LoadReport",
    "PluginHost",
    "PluginRow",
    "discover",
    "find_candidates",
    "find_front_end",
    "import_plugin",
    "load",
]

_ROOMS = {
    "Candidate": "candidates",
    "LoadReport": "report",
    "PluginHost": "host",
    "PluginRow": "report",
    "discover": "candidates",
    "find_candidates": "cache",
    "find_front_end": "front_end",
    "import_plugin": "stages",
    "load": "host",
}


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
