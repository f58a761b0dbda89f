"""The last stage before a plugin counts: it is registered alone, in a manager that nobody calls.

Misspelt hooks, wrong arguments and deprecations surface here, with the plugin's own file and line; the real manager
meets sound plugins only, so nothing is ever half registered.
"""

from __future__ import annotations

from inspect import getattr_static, isclass, ismodule, isroutine
from typing import TYPE_CHECKING

import pluggy

from hermes_core.plugins.guard import Implementation
from hermes_core.plugins.stages import is_of_the_caller, one_line, printable
from hermes_hookspecs.errors import PluginError
from hermes_hookspecs.markers import hook_options, implementation_options

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

__all__ = ["HOOK_PREFIX", "PROJECT", "Rehearsal", "manager_with"]

PROJECT = "hermes"
"""Name of the pluggy project: the markers of the contract carry it."""

HOOK_PREFIX = "hermes_"


class HookManager(pluggy.PluginManager):
    """A manager that reads the contract's own marks, which cost a plugin no import of pluggy."""

    def parse_hookimpl_opts(self, plugin: object, name: str) -> pluggy.HookimplOpts | None:
        """Return what ``hookimpl`` declared of one attribute; attributes that are no hooks are not even looked at."""
        if not isroutine(getattr_static(plugin, name, None)) and not _is_method(plugin, name):
            return None
        options = implementation_options(getattr(plugin, name))
        if options is None:
            return None
        return {
            "wrapper": options.wrapper,
            "hookwrapper": False,
            "optionalhook": False,
            "tryfirst": options.tryfirst,
            "trylast": options.trylast,
            "specname": options.specname,
        }

    def parse_hookspec_opts(self, module_or_class: object, name: str) -> pluggy.HookspecOpts | None:
        """Return what ``hookspec`` declared of one attribute."""
        if not name.startswith(HOOK_PREFIX):
            return None
        options = hook_options(getattr(module_or_class, name))
        return {
            "firstresult": options.firstresult,
            "historic": False,
            "warn_on_impl": DeprecationWarning(options.deprecated) if options.deprecated else None,
            "warn_on_impl_args": {name: DeprecationWarning(text) for name, text in options.deprecated_arguments},
        }


def manager_with(specs: Sequence[ModuleType]) -> pluggy.PluginManager:
    """Return an empty manager that knows the specifications of these modules."""
    manager = HookManager(PROJECT)
    for module in specs:
        manager.add_hookspecs(module)
    return manager


class Rehearsal:
    """Registers plugins one by one for trial.

    :param specs: modules of hook specifications.
    """

    def __init__(self, specs: Sequence[ModuleType]) -> None:
        self._specs = tuple(specs)
        self._manager: pluggy.PluginManager | None = None

    def implementations(self, name: str, plugin: object) -> tuple[Implementation, ...]:
        """Return the hook implementations of ``plugin``, sorted by attribute name.

        :raises PluginError: stage ``register``: an unknown hook, an argument that the hook does not have, a method that
            looks like a hook and is not marked, or a wrapper around a hook that may be skipped.
        """
        try:
            return self._tried(name, plugin)
        except PluginError:
            raise
        except BaseException as exc:
            if is_of_the_caller(exc):
                raise
            raise PluginError(name, "register", one_line(exc)) from exc

    def _tried(self, name: str, plugin: object) -> tuple[Implementation, ...]:
        manager = self._manager or manager_with(self._specs)
        # A manager in which something failed is thrown away: older versions of pluggy keep half of the plugin.
        self._manager = None
        found = _marked(manager, name, plugin)
        manager.register(plugin, name)
        manager.check_pending()
        manager.unregister(plugin, name)
        self._manager = manager
        return found


def _marked(manager: pluggy.PluginManager, name: str, plugin: object) -> tuple[Implementation, ...]:
    found = []
    for attribute in dir(plugin):
        options = manager.parse_hookimpl_opts(plugin, attribute)
        if options is None:
            if attribute.startswith(HOOK_PREFIX) and _is_method(plugin, attribute):
                raise PluginError(
                    name, "register", f"{printable(attribute)} is not marked with @hookimpl and would never be called"
                )
            continue
        hook = options.get("specname") or attribute
        caller = getattr(manager.hook, hook, None)
        if caller is None or caller.spec is None:
            raise PluginError(name, "register", f"there is no hook {hook!r}{_nearest(manager, hook)}")
        is_wrapper = bool(options.get("wrapper") or options.get("hookwrapper"))
        spec = hook_options(caller.spec.function)
        if is_wrapper and spec.on_error == "skip":
            raise PluginError(
                name, "register", f"{printable(attribute)} wraps a hook that may be skipped; only 'raise' hooks can be"
            )
        function = getattr(plugin, attribute)
        found.append(Implementation(attribute, hook, function, spec.on_error, is_wrapper, spec.firstresult))
    return tuple(found)


def _is_method(plugin: object, attribute: str) -> bool:
    # Static, so that no property of the plugin runs; a module's own hermes_ functions are its private business.
    if ismodule(plugin) or isclass(plugin):
        return False
    found: object = getattr_static(plugin, attribute)
    return isroutine(found) or isinstance(found, (staticmethod, classmethod))


def _nearest(manager: pluggy.PluginManager, hook: str) -> str:
    from difflib import get_close_matches

    known = [name for name in vars(manager.hook) if name.startswith(HOOK_PREFIX)]
    near = get_close_matches(hook, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""
