"""What stands between a plugin and the hook manager: the failure policy of each hook, applied at every call.

*raise* hooks fail closed: the exception ends the call. *skip* hooks are left out when they fail: logged, counted, and
after several failures in a row the plugin is quarantined. A result of the wrong shape is a failure like an exception,
and so is ``SystemExit``: a plugin does not end the program. ``KeyboardInterrupt`` and the cancellation of a task pass.
"""

from __future__ import annotations

from functools import wraps
from inspect import iscoroutine
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from hermes_core.plugins.results import check_of, is_checked
from hermes_core.plugins.stages import is_of_the_caller, one_line
from hermes_hookspecs.errors import HermesError, PluginError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator, Sequence
    from typing import NoReturn

    from hermes_hookspecs.markers import ErrorPolicy

__all__ = ["Guard", "Health", "Implementation"]


class Implementation(NamedTuple):
    """One hook implementation of a plugin.

    ``attribute``: the method's name, which may differ from the ``hook``'s. ``function``: bound. ``wrapper``: whether
    it is a generator around the other implementations. ``firstresult``: whether the hook has one result, not a list.
    """

    attribute: str
    hook: str
    function: Callable[..., object]
    on_error: ErrorPolicy
    wrapper: bool
    firstresult: bool = False


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

    def skipped(self, hook: str, error: BaseException) -> None:
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

    Wrappers stay generators: a failing one is a failing call, as it is on every *raise* hook, and there alone they are
    allowed.
    """

    def __init__(self, plugin: object, implementations: Sequence[Implementation], health: Health) -> None:
        self.plugin = plugin
        self.health = health
        for implementation in implementations:
            setattr(self, implementation.attribute, _guarded(implementation, health))


def _guarded(implementation: Implementation, health: Health) -> Callable[..., object]:
    """Return the function to register; it keeps marker and argument names, which the manager reads.

    The manager passes arguments by position, the typed facade may pass them by name. What a hook with results nobody
    reads gives to be awaited is guarded as well: its exceptions come out there.
    """
    if implementation.wrapper:
        return _guarded_wrapper(implementation, health)
    function, hook, skips = implementation.function, implementation.hook, implementation.on_error == "skip"
    check, reads = check_of(hook), is_checked(hook)

    @wraps(function)
    def guarded(*arguments: object, **named: object) -> object:
        if skips and health.quarantined:
            return None
        try:
            result = function(*arguments, **named)
            if iscoroutine(result):
                if not reads:
                    return _awaited(result, implementation, health)
                result.close()
                raise TypeError("returned a coroutine, and this hook is called, not awaited")
            result = check(health.plugin, result)
        except BaseException as exc:
            if is_of_the_caller(exc):
                raise
            _failed(health, hook, exc, skips=skips)
            return None
        health.succeeded(hook)
        return result

    return guarded


async def _awaited(pending: Coroutine[object, None, object], implementation: Implementation, health: Health) -> object:
    """Return what ``pending`` gives, under the same policy."""
    try:
        result = await pending
    except BaseException as exc:
        if is_of_the_caller(exc, awaited=True):
            raise
        _failed(health, implementation.hook, exc, skips=implementation.on_error == "skip")
        return None
    health.succeeded(implementation.hook)
    return result


def _guarded_wrapper(implementation: Implementation, health: Health) -> Callable[..., object]:
    """Return the same for a generator around the others, whose exceptions pass through it and stay theirs."""
    function, hook, check = implementation.function, implementation.hook, check_of(implementation.hook)

    @wraps(function)
    def guarded(*arguments: object, **named: object) -> Generator[None, object, object]:
        try:
            # The signature says object; the rehearsal has said that it is a generator.
            result: object = yield from function(*arguments, **named)  # type: ignore[misc]
            if implementation.firstresult or not is_checked(hook):
                return check(health.plugin, result)
            if not isinstance(result, (list, tuple)):
                raise TypeError(f"returned a {type(result).__name__}, not the list of results")
            return [check(health.plugin, one) for one in result if one is not None]
        except BaseException as exc:
            if is_of_the_caller(exc) or isinstance(exc, (HermesError, GeneratorExit)):
                raise
            _raise(health, hook, exc)

    return guarded


def _failed(health: Health, hook: str, error: BaseException, *, skips: bool) -> None:
    """Apply the policy: return for *skip*, raise for *raise*."""
    if not skips:
        _raise(health, hook, error)
    health.skipped(hook, error)


def _raise(health: Health, hook: str, error: BaseException) -> NoReturn:
    """Fail closed. The contract's own errors pass as they are: ``KeyBuildError`` is an answer, not a fault."""
    if isinstance(error, HermesError):
        error.add_note(f"raised by plugin {health.plugin!r} in {hook}")
        raise error
    health.failed(hook)
    raise PluginError(health.plugin, "call", f"{hook}: {one_line(error)}") from error
