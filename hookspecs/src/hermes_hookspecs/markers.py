"""The two decorators of the plugin system, and what a specification declares about itself.

A plugin needs :data:`hookimpl` alone. :func:`hookspec` marks the specifications of this package and of nobody else.
Both only write an attribute that the core's plugin manager reads, so that importing a plugin costs nothing: pluggy is
loaded when plugins are registered, not when they are found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar, overload

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "ErrorPolicy",
    "HookKind",
    "HookOptions",
    "ImplementationOptions",
    "hook_options",
    "hookimpl",
    "hookspec",
    "implementation_options",
]

F = TypeVar("F")

HookKind = Literal["provider", "decision", "event"]
ErrorPolicy = Literal["raise", "skip"]

_SPEC = "hermes_options"
_IMPL = "hermes_implements"


class HookOptions(NamedTuple):
    """What one specification declares.

    ``kind``: *provider* (once at start, returns objects), *decision* (sync, pure, no I/O) or *event* (after commit,
    results ignored). ``on_error``: *raise* (the call fails as :class:`~hermes_hookspecs.errors.PluginError`) or
    *skip* (logged, counted, quarantined after repeated failure). ``firstresult``: stops at the first result that is
    not ``None``. ``pending``: the feature that will call this hook, ``""`` where it is called already; a plugin that
    implements a pending hook is told so. ``deprecated``: what to use instead, ``""`` for a hook that stays;
    ``deprecated_arguments``: the same, ``(argument, text)``.
    """

    kind: HookKind
    on_error: ErrorPolicy
    firstresult: bool
    pending: str = ""
    deprecated: str = ""
    deprecated_arguments: tuple[tuple[str, str], ...] = ()


class ImplementationOptions(NamedTuple):
    """What one implementation declares, with the meaning that pluggy gives these words.

    ``tryfirst``, ``trylast``: before, behind the others. ``wrapper``: a generator around them, on *raise* hooks only.
    ``specname``: the hook it implements, where its own name differs.
    """

    tryfirst: bool = False
    trylast: bool = False
    wrapper: bool = False
    specname: str | None = None


def hookspec(
    *,
    kind: HookKind,
    on_error: ErrorPolicy,
    firstresult: bool = False,
    pending: str = "",
    deprecated: str = "",
    deprecated_arguments: tuple[tuple[str, str], ...] = (),
) -> Callable[[F], F]:
    """Return a decorator that marks a function as a specification with these options."""
    options = HookOptions(kind, on_error, firstresult, pending, deprecated, deprecated_arguments)

    def mark(function: F) -> F:
        setattr(function, _SPEC, options)
        return function

    return mark


@overload
def hookimpl(function: F) -> F: ...
@overload
def hookimpl(
    *, tryfirst: bool = False, trylast: bool = False, wrapper: bool = False, specname: str | None = None
) -> Callable[[F], F]: ...
def hookimpl(
    function: F | None = None,
    *,
    tryfirst: bool = False,
    trylast: bool = False,
    wrapper: bool = False,
    specname: str | None = None,
) -> F | Callable[[F], F]:
    """Mark a method of a plugin as the implementation of the hook whose name it has (or ``specname``).

    Used bare or with options, see :class:`ImplementationOptions`.
    """
    options = ImplementationOptions(tryfirst, trylast, wrapper, specname)

    def mark(marked: F) -> F:
        setattr(marked, _IMPL, options)
        return marked

    return mark if function is None else mark(function)


def hook_options(function: object) -> HookOptions:
    """Return what :func:`hookspec` declared of ``function``.

    :raises AttributeError: when ``function`` is no specification.
    """
    options: HookOptions = getattr(function, _SPEC)
    return options


def implementation_options(function: object) -> ImplementationOptions | None:
    """Return what :func:`hookimpl` declared of ``function``, ``None`` when it is no implementation."""
    options = getattr(function, _IMPL, None)
    return options if isinstance(options, ImplementationOptions) else None
