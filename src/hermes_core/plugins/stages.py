"""The stages in which plugin code runs for the first time: import and create. Each failure names plugin and stage.

A plugin that raises ``SystemExit``, or anything else that is no :class:`Exception`, while it is imported or made has
failed like any other: it must not take ``hermes plugins list`` along, which says so. ``KeyboardInterrupt`` passes: it
is the person's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.errors import ConfigError, PluginError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hermes_core.config.sections import Settings
    from hermes_core.plugins.candidates import Candidate

__all__ = ["create", "import_plugin", "in_words", "is_of_the_caller", "one_line", "printable"]

_REASON_CHARACTERS = 400


def import_plugin(candidate: Candidate) -> object:
    """Import the module of ``candidate`` and return the attribute that its entry point names, usually a class.

    :raises PluginError: stage ``import``; the cause is what the module raised.
    """
    from importlib import import_module

    module_name, colon, attributes = candidate.value.partition("[")[0].strip().partition(":")
    if not colon or not all(part.isidentifier() for part in f"{module_name}.{attributes}".split(".")):
        raise PluginError(candidate.name, "import", f"entry point {candidate.value!r} is not 'package.module:Class'")
    try:
        found: object = import_module(module_name)
        for attribute in attributes.split("."):
            found = getattr(found, attribute)
    except BaseException as exc:
        if is_of_the_caller(exc):
            raise
        raise PluginError(candidate.name, "import", one_line(exc)) from exc
    return found


def create(name: str, factory: object, settings: Settings) -> object:
    """Return the plugin that ``factory`` makes from its table ``[plugins.<name>]``.

    The table is passed as ``config`` where the factory has a parameter of this name, else as its only argument. A
    factory without parameters is fine as long as there is no table.

    :raises PluginError: stage ``create``. When the factory refused its table, the cause is a
        :class:`~hermes_hookspecs.errors.ConfigError` that names file, section and key.
    """
    table = settings.plugin_table(name)
    if not callable(factory):
        raise PluginError(name, "create", f"the entry point names a {type(factory).__name__}, not a class")
    try:
        plugin = _called(factory, table)
    except BaseException as exc:
        if is_of_the_caller(exc):
            raise
        reason, cause = _refusal(name, exc, settings)
        raise PluginError(name, "create", reason) from cause
    if plugin is None:
        raise PluginError(name, "create", "the entry point's factory returned nothing")
    return plugin


def one_line(error: BaseException) -> str:
    """Return type and message of ``error`` on one printable line, cut after 400 characters."""
    text = printable(f"{type(error).__name__}: {_message(error)}").removesuffix(":")
    return text if len(text) <= _REASON_CHARACTERS else f"{text[:_REASON_CHARACTERS]}…"


def in_words(error: BaseException) -> str:
    """Return what went wrong for people, on one printable line: of an error of the contract its own sentence.

    Anything else is a fault in somebody's code, and says what a programmer looks for.
    """
    from hermes_hookspecs.errors import HermesError

    said = printable(_message(error)) if isinstance(error, HermesError) else ""
    if not said:
        return f"an error in its code ({one_line(error)})"
    return said if len(said) <= _REASON_CHARACTERS else f"{said[:_REASON_CHARACTERS]}…"


def printable(text: str) -> str:
    r"""Return ``text`` on one line, with ``\x1b`` and the like for characters that would command a terminal."""
    line = " ".join(text.split())
    if line.isprintable():
        return line
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in line)


def is_of_the_caller(error: BaseException, *, awaited: bool = False) -> bool:
    """Return whether what came out of a plugin is not its failure: the person's interrupt, a cancelled task.

    :param awaited: it came out of an ``await``, where the caller can cancel or close what waits.
    """
    if isinstance(error, KeyboardInterrupt):
        return True
    if not awaited or isinstance(error, Exception):
        return False
    from asyncio import CancelledError, current_task  # loaded already, by whoever awaits

    if not isinstance(error, CancelledError):
        return isinstance(error, GeneratorExit)
    try:
        task = current_task()
    except RuntimeError:  # no loop: somebody drives the coroutine by hand
        return True
    return task is None or task.cancelling() > 0


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException as exc:
        if is_of_the_caller(exc):
            raise
        return "(its message cannot be read)"


def _called(factory: Callable[..., object], table: Mapping[str, object]) -> object:
    from inspect import signature

    try:
        parameters = signature(factory)
    except ValueError:
        return factory(table)
    if "config" in parameters.parameters:
        return factory(config=table)
    try:
        parameters.bind(table)
    except TypeError:
        if table:
            raise ConfigError("this plugin takes no settings", key=next(iter(table))) from None
        return factory()
    return factory(table)


def _refusal(name: str, error: BaseException, settings: Settings) -> tuple[str, BaseException]:
    """Return the reason and the cause to give for what a factory raised."""
    if not isinstance(error, ConfigError):
        return one_line(error), error
    try:
        named = _with_place(name, error, settings)
        return printable(str(named)), named
    except Exception:  # noqa: BLE001 - a class of the plugin's own: even its message is code of the plugin
        return one_line(error), error


def _with_place(name: str, error: ConfigError, settings: Settings) -> ConfigError:
    """Return ``error`` with the file and the section in front, unless the plugin has named its origin itself."""
    if error.origin is not None:
        return error
    section = f"plugins.{name}"
    own = {dotted: origin for dotted, origin in settings.origins.items() if dotted.startswith(f"{section}.")}
    origin = own.get(f"{section}.{error.key}") or " and ".join(dict.fromkeys(own.values())) or "default"
    placed = ConfigError(
        f"{origin}: {'' if str(error).startswith('[') else f'[{section}] '}{error}",
        origin=origin,
        section=section,
        key=error.key,
    )
    placed.__cause__ = error
    return placed
