"""The two decorators of the plugin system, and what a specification declares about itself.

A plugin needs :data:`hookimpl` alone. :func:`hookspec` marks the specifications of this package and of nobody else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import pluggy

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    F = TypeVar("F", bound=Callable[..., object])

__all__ = ["ErrorPolicy", "HookKind", "HookOptions", "hook_options", "hookimpl", "hookspec"]

HookKind = Literal["provider", "decision", "event"]
ErrorPolicy = Literal["raise", "skip"]

hookimpl = pluggy.HookimplMarker("hermes")
_spec_marker = pluggy.HookspecMarker("hermes")
_ATTRIBUTE = "hermes_options"


class HookOptions(NamedTuple):
    """What one specification declares.

    ``kind``: *provider* (once at start, returns objects), *decision* (sync, pure, no I/O) or *event* (after commit,
    results ignored). ``on_error``: *raise* (the call fails as :class:`~hermes_hookspecs.errors.PluginError`) or
    *skip* (logged, counted, quarantined after repeated failure). ``firstresult``: stops at the first result that is
    not ``None``. ``pending``: the feature that will call this hook, ``""`` where it is called already; a plugin that
    implements a pending hook is told so.
    """

    kind: HookKind
    on_error: ErrorPolicy
    firstresult: bool
    pending: str = ""


def hookspec(
    *, kind: HookKind, on_error: ErrorPolicy, firstresult: bool = False, pending: str = ""
) -> Callable[[F], F]:
    """Return a decorator that marks a function as a specification with these options."""
    options = HookOptions(kind, on_error, firstresult, pending)

    def mark(function: F) -> F:
        setattr(function, _ATTRIBUTE, options)
        return _spec_marker(firstresult=firstresult)(function)

    return mark


def hook_options(function: Callable[..., object]) -> HookOptions:
    """Return what :func:`hookspec` declared of ``function``.

    :raises AttributeError: when ``function`` is no specification.
    """
    options: HookOptions = getattr(function, _ATTRIBUTE)
    return options
