"""What stands between a plugin and the hook manager: the failure policy of each hook, applied at every call.

*raise* hooks fail closed: the exception ends the call. *skip* hooks are left out when they fail: logged, counted, and
after several failures in a row the plugin is quarantined. ``except Exception`` only: a cancelled task, ``SystemExit``
and ``KeyboardInterrupt`` pass.
"""

from __future__ import annotations

from functools import wraps
from inspect import iscoroutinefunction
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from hermes_core.plugins.stages import one_line
from hermes_hookspecs.errors import HermesError, PluginError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from hermes_hookspecs.markers import ErrorPolicy

__all__ = ["Guard", "Health", "Implementation"]


class Implementation(NamedTuple):
    """One hook implementation of a plugin.

    ``attribute``: the method's name, which may differ from the ``hook``'s. ``function``: bound. ``wrapper``: whether
    it is a generator around the other implementations.
    """

    attribute: str
    hook: str
    function: Callable[..., object]
    on_error: ErrorPolicy
    wrapper: bool


class Health:
    """How a plugin behaves; may be told from several threads.

    :param plugin: its name.
    :param quarantine_after: failures in a row of one *skip* hook until the plugin's *skip* hooks are left out.
    """

    def __init__(self, plugin: str, quarantine_after: int) -> None:
        self.plugin = plugin
        self.failures = 0
        self.quarantined = False
        self._limit = quarantine_after
        self._in_a_row: dict[str, int] = {}
        self._lock = Lock()

    def succeeded(self, hook: str) -> None:
        """Note a call without an exception; costs nothing while all is well."""
        if self._in_a_row:
            with self._lock:
                self._in_a_row.pop(hook, None)

    def failed(self, hook: str) -> None:
        """Count a failure of a *raise* hook: these are never quarantined, for a missing answer could be a wrong one."""
        with self._lock:
            self.failures += 1

    def skipped(self, hook: str, error: Exception) -> None:
        """Count and log a failure of a *skip* hook, and quarantine the plugin when it was one too many in a row."""
        from logging import getLogger  # the first failure pays for it

        with self._lock:
            self.failures += 1
            self._in_a_row[hook] = in_a_row = self._in_a_row.get(hook, 0) + 1
            is_new = not self.quarantined and in_a_row >= self._limit
            self.quarantined = self.quarantined or is_new
        logger = getLogger(__name__)
        fields = {"plugin": self.plugin}
        logger.warning("plugin %r failed in %s, skipped: %s", self.plugin, hook, one_line(error), extra=fields)
        logger.debug("traceback of plugin %r in %s", self.plugin, hook, exc_info=error, extra=fields)
        if is_new:
            text = "plugin %r is quarantined after %d failures of %s in a row"
            logger.error(text, self.plugin, in_a_row, hook, extra=fields)


class Guard:
    """A stand-in that is registered instead of the plugin: one guarded function for each implementation.

    Wrappers pass unchanged: a failing one is a failing call, as it is on every *raise* hook, and there alone they
    are allowed.
    """

    def __init__(self, plugin: object, implementations: Sequence[Implementation], health: Health) -> None:
        self.plugin = plugin
        self.health = health
        for implementation in implementations:
            setattr(self, implementation.attribute, _guarded(implementation, health))


def _guarded(implementation: Implementation, health: Health) -> Callable[..., object]:
    """Return the function to register; it keeps marker and argument names, which the manager reads.

    The manager passes arguments by position, the typed facade may pass them by name.
    """
    if implementation.wrapper:
        return implementation.function
    if iscoroutinefunction(implementation.function):
        return _guarded_async(implementation, health)
    function, hook, skips = implementation.function, implementation.hook, implementation.on_error == "skip"

    @wraps(function)
    def guarded(*arguments: object, **named: object) -> object:
        if skips and health.quarantined:
            return None
        try:
            result = function(*arguments, **named)
        except Exception as exc:  # noqa: BLE001 - the guard is where it is decided what that means
            _failed(health, hook, exc, skips=skips)
            return None
        health.succeeded(hook)
        return result

    return guarded


def _guarded_async(implementation: Implementation, health: Health) -> Callable[..., Awaitable[object]]:
    """Return the same for an ``async def``, whose exceptions come out when it is awaited."""
    function, hook, skips = implementation.function, implementation.hook, implementation.on_error == "skip"

    @wraps(function)
    async def guarded(*arguments: object, **named: object) -> object:
        if skips and health.quarantined:
            return None
        try:
            pending = function(*arguments, **named)
            # The signature says object; iscoroutinefunction has said that it is awaitable.
            result: object = await pending  # type: ignore[misc]
        except Exception as exc:  # noqa: BLE001 - the guard is where it is decided what that means
            _failed(health, hook, exc, skips=skips)
            return None
        health.succeeded(hook)
        return result

    return guarded


def _failed(health: Health, hook: str, error: Exception, *, skips: bool) -> None:
    """Apply the policy: return for *skip*, raise for *raise*.

    On a *raise* hook the contract's own errors pass as they are: ``KeyBuildError`` is an answer, not a fault.
    """
    if skips:
        health.skipped(hook, error)
        return
    if isinstance(error, HermesError):
        error.add_note(f"raised by plugin {health.plugin!r} in {hook}")
        raise error
    health.failed(hook)
    raise PluginError(health.plugin, "call", f"{hook}: {one_line(error)}") from error
