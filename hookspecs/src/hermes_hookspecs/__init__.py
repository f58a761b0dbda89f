"""The contract of Hermes Sessions: values, ports, hook specifications, errors. It knows no other package of ours.

Names are loaded when they are asked for, so that a quick command pays for what it uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_hookspecs.errors import HermesError as HermesError
    from hermes_hookspecs.inbox import MessageEvent as MessageEvent
    from hermes_hookspecs.markers import hookimpl as hookimpl
    from hermes_hookspecs.messages import Message as Message
    from hermes_hookspecs.messages import MessageDraft as MessageDraft
    from hermes_hookspecs.messages import ToolCall as ToolCall
    from hermes_hookspecs.ports.policies import ResetPolicy as ResetPolicy
    from hermes_hookspecs.ports.policies import ResetSettings as SessionResetPolicy
    from hermes_hookspecs.principal import Principal as Principal
    from hermes_hookspecs.sessions import SessionEntry as SessionEntry
    from hermes_hookspecs.source import Entrance as Entrance
    from hermes_hookspecs.source import KeyPolicy as KeyPolicy
    from hermes_hookspecs.source import SessionSource as SessionSource

__all__ = [
    "Entrance",
    "HermesError",
    "KeyPolicy",
    "Message",
    "MessageDraft",
    "MessageEvent",
    "Principal",
    "ResetPolicy",
    "SessionEntry",
    "SessionResetPolicy",
    "SessionSource",
    "ToolCall",
    "hookimpl",
]

_HOMES = {
    "Entrance": ("source", "Entrance"),
    "HermesError": ("errors", "HermesError"),
    "KeyPolicy": ("source", "KeyPolicy"),
    "Message": ("messages", "Message"),
    "MessageDraft": ("messages", "MessageDraft"),
    "MessageEvent": ("inbox", "MessageEvent"),
    "Principal": ("principal", "Principal"),
    "ResetPolicy": ("ports.policies", "ResetPolicy"),
    "SessionEntry": ("sessions", "SessionEntry"),
    "SessionResetPolicy": ("ports.policies", "ResetSettings"),
    "SessionSource": ("source", "SessionSource"),
    "ToolCall": ("messages", "ToolCall"),
    "hookimpl": ("markers", "hookimpl"),
}


def __getattr__(name: str) -> object:
    try:
        module, attribute = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{module}"), attribute)


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
