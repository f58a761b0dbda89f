"""The loaded plugins: how they got in, in which order they are called, and how they are doing.

Order of calling: user plugins before built-ins; user plugins by name; built-ins in the order in which they were given.
A plugin registered later is called before all of them. ``tryfirst`` and ``trylast`` of an implementation count more.
"""

from __future__ import annotations

from threading import RLock
from time import perf_counter
from typing import TYPE_CHECKING

import attrs
import pluggy

from hermes_core.plugins.cache import find_candidates
from hermes_core.plugins.choice import choose, unknown_names
from hermes_core.plugins.guard import Guard, Health
from hermes_core.plugins.rehearsal import Rehearsal, manager_with
from hermes_core.plugins.report import BUILT_IN, LoadReport, PluginRow
from hermes_core.plugins.stages import create, import_plugin
from hermes_hookspecs.errors import PluginError
from hermes_hookspecs.markers import hook_options

if TYPE_CHECKING:
    import os
    from collections.abc import Collection, Sequence
    from types import ModuleType

    from hermes_core.config.sections import Settings
    from hermes_core.plugins.candidates import Candidate

__all__ = ["PluginHost", "load"]


class PluginHost:
    """Holds the plugins of one program. Made by :func:`load`; an embedder may register more.

    :param specs: modules of hook specifications.
    :param quarantine_after: failures in a row of a *skip* hook until a plugin is quarantined.
    """

    def __init__(self, specs: Sequence[ModuleType], quarantine_after: int = 5) -> None:
        self.manager: pluggy.PluginManager = manager_with(specs)
        """The pluggy manager; hooks are called through the typed facade only."""
        self.report = LoadReport(rows=())
        """What :func:`load` saw, as it was then; :meth:`rows` is what is now."""
        self._rehearsal = Rehearsal(specs)
        self._quarantine_after = quarantine_after
        self._guards: dict[str, Guard] = {}
        self._rows: list[PluginRow] = []
        # Reentrant: a hook may register a plugin while another registration calls it.
        self._lock = RLock()

    def plugin(self, name: str) -> object | None:
        """Return the plugin that was registered as ``name``, itself and not its guard, or ``None``."""
        guard = self._guards.get(name)
        return None if guard is None else guard.plugin

    def rows(self) -> tuple[PluginRow, ...]:
        """Return a row for each plugin with its failures so far, in the order of the report; later ones first."""
        with self._lock:
            return tuple(self._current(row) for row in self._rows)

    def register(self, name: str, plugin: object, *, distribution: str = "", version: str = "") -> PluginRow:
        """Add ``plugin``; all of its hooks are in, or none.

        Safe inside a hook: the call that is under way goes on with the plugins it began with.

        :raises PluginError: stage ``discover`` when the name is taken, ``register`` when a hook does not fit.
        """
        row = PluginRow(name=name, distribution=distribution, version=version, stage="loaded")
        with self._lock:
            added = self._add(row, plugin)
            self._rows = [added, *(row for row in self._rows if row.name != name or row.stage != "unregistered")]
            return added

    def unregister(self, name: str) -> object:
        """Take the plugin out, every implementation of it, and return it.

        :raises PluginError: stage ``register`` when no plugin has this name.
        """
        with self._lock:
            guard = self._guards.pop(name, None)
            if guard is None:
                raise PluginError(name, "register", "no plugin has this name")
            self.manager.unregister(name=name)
            self._rows = [
                attrs.evolve(
                    row,
                    stage="unregistered",
                    failures=guard.health.failures,
                    quarantined=guard.health.quarantined,
                )
                if row.name == name and row.stage == "loaded"
                else row
                for row in self._rows
            ]
            return guard.plugin

    def _add(self, row: PluginRow, plugin: object) -> PluginRow:
        """Rehearse, guard and register; return ``row`` with its hooks."""
        if row.name in self._guards:
            raise PluginError(row.name, "discover", "another plugin has this name")
        if any(guard.plugin is plugin for guard in self._guards.values()):
            raise PluginError(row.name, "discover", "this plugin is registered under another name")
        implementations = self._rehearsal.implementations(row.name, plugin)
        guard = Guard(plugin, implementations, Health(row.name, self._quarantine_after))
        self._register_silently(row.name, guard)
        self._guards[row.name] = guard
        hooks = tuple(sorted({found.hook for found in implementations}))
        return attrs.evolve(row, hooks=hooks, reason=self._not_called_yet(hooks))

    def _not_called_yet(self, hooks: Sequence[str]) -> str:
        """Return one line about hooks that nothing calls yet, ``""`` where all are called."""
        pending = []
        for hook in hooks:
            spec = getattr(self.manager.hook, hook).spec
            feature = hook_options(spec.function).pending
            if feature:
                pending.append(f"{hook} ({feature})")
        return f"not called yet by this version: {', '.join(pending)}" if pending else ""

    def _register_silently(self, name: str, guard: Guard) -> None:
        """Register without a second round of the deprecation warnings, which would name the guard's line."""
        warned = any(
            caller.spec is not None and (caller.spec.warn_on_impl or caller.spec.warn_on_impl_args)
            for caller in vars(self.manager.hook).values()
            if isinstance(caller, pluggy.HookCaller)
        )
        if not warned:
            self.manager.register(guard, name)
            return
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.manager.register(guard, name)

    def _current(self, row: PluginRow) -> PluginRow:
        guard = self._guards.get(row.name) if row.stage == "loaded" else None
        if guard is None or not guard.health.failures:
            return row
        return attrs.evolve(row, failures=guard.health.failures, quarantined=guard.health.quarantined)

    def fill(
        self,
        candidates: Sequence[Candidate],
        builtins: Sequence[tuple[str, object]],
        settings: Settings,
        keep: Collection[str],
        optional: Collection[str],
    ) -> None:
        """Load plugins and built-ins into a fresh host and write the report; the work of :func:`load`, done once."""
        names = [name for name, _ in builtins]
        sound, rows = choose(candidates, settings, taken=names, keep=keep)
        # The manager calls the last registered first: what is to be called last is registered first.
        builtin_rows = [self._builtin(name, factory, settings, optional) for name, factory in reversed(builtins)]
        builtin_rows.reverse()
        rows += [self._tried(candidate, settings) for candidate in reversed(sound)]
        rows.sort(key=lambda row: (row.name, row.distribution))
        _complain(rows, strict=settings.plugins.strict)
        notices = unknown_names(settings, candidates, names)
        self._rows = [*rows, *builtin_rows]
        self.report = LoadReport(rows=tuple(self._rows), notices=tuple(notices))

    def _builtin(self, name: str, factory: object, settings: Settings, optional: Collection[str]) -> PluginRow:
        row = PluginRow(name=name, distribution=BUILT_IN, version="", stage="loaded")
        if name in optional and settings.plugins.only is None and name in settings.plugins.disable:
            reason = f"in [plugins] disable ({settings.origins['plugins.disable']})"
            return attrs.evolve(row, stage="blocked", reason=reason)
        return self._add(row, create(name, factory, settings))

    def _tried(self, candidate: Candidate, settings: Settings) -> PluginRow:
        name = candidate.name
        row = PluginRow(name=name, distribution=candidate.distribution, version=candidate.version, stage="loaded")
        began = perf_counter()
        try:
            try:
                factory = import_plugin(candidate)
            finally:
                row = attrs.evolve(row, import_ms=(perf_counter() - began) * 1000)
            return self._add(row, create(name, factory, settings))
        except PluginError as exc:
            return attrs.evolve(row, stage="failed", failed_at=exc.stage, reason=exc.reason, error=exc)


def load(
    specs: Sequence[ModuleType],
    builtins: Sequence[tuple[str, object]],
    settings: Settings,
    cache_folder: str | os.PathLike[str] | None,
    *,
    keep: Collection[str] = (),
    optional: Collection[str] = (),
    path: Sequence[str] | None = None,
) -> PluginHost:
    """Return a host with every plugin that is installed, wanted and sound. Blocks: imports run here.

    Each failed plugin is a row of the report and one warning in the log, with the traceback at DEBUG.

    :param specs: modules of hook specifications.
    :param builtins: ``(name, factory)`` of the core's own plugins, first called first.
    :param cache_folder: where the scan is kept; ``None`` scans anew.
    :param keep: plugin names that only ``disable`` leaves out: the front end in use.
    :param optional: names of built-ins that ``disable`` may leave out; the others are always there.
    :param path: folders to look in, ``None`` for ``sys.path``.
    :raises PluginError: a built-in failed; or any plugin, with ``[plugins] strict``.
    """
    host = PluginHost(specs, settings.plugins.quarantine_after)
    host.fill(find_candidates(cache_folder, path), builtins, settings, keep, optional)
    return host


def _complain(rows: Sequence[PluginRow], *, strict: bool) -> None:
    """Log one line a failed plugin; with ``strict`` raise the first one's error instead."""
    failed = [row for row in rows if row.stage == "failed"]
    for row in failed:
        if strict and row.error is not None:
            raise row.error
        from logging import getLogger  # only trouble pays for it

        logger = getLogger(__name__)
        fields = {"plugin": row.name}
        logger.warning("plugin %r failed at %s: %s", row.name, row.failed_at, row.reason, extra=fields)
        logger.debug("traceback of plugin %r", row.name, exc_info=row.error, extra=fields)
