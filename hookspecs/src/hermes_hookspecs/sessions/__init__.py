"""Sessions, lineages and routes as they are read back.

Names are loaded when they are asked for, so that a list pays for what a list shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_hookspecs.sessions.entries import TITLE_LIMIT as TITLE_LIMIT
    from hermes_hookspecs.sessions.entries import Lineage as Lineage
    from hermes_hookspecs.sessions.entries import Route as Route
    from hermes_hookspecs.sessions.entries import Session as Session
    from hermes_hookspecs.sessions.entries import SessionEntry as SessionEntry
    from hermes_hookspecs.sessions.moves import RouteMove as RouteMove
    from hermes_hookspecs.sessions.summaries import Left as Left
    from hermes_hookspecs.sessions.summaries import SessionFilter as SessionFilter
    from hermes_hookspecs.sessions.summaries import SessionSummary as SessionSummary
    from hermes_hookspecs.sessions.summaries import StoreStats as StoreStats

__all__ = [
    "TITLE_LIMIT",
    "Left",
    "Lineage",
    "Route",
    "RouteMove",
    "Session",
    "SessionEntry",
    "SessionFilter",
    "SessionSummary",
    "StoreStats",
]

_SUMMARIES = frozenset({"Left", "SessionFilter", "SessionSummary", "StoreStats"})


def __getattr__(name: str) -> object:
    """Return the exported object ``name`` from the module that holds it.

    :raises AttributeError: for any name that is not exported.
    """
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module

    module = "moves" if name == "RouteMove" else "summaries" if name in _SUMMARIES else "entries"
    found: object = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = found
    return found
