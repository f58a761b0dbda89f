"""The suite of every plugin: found, importable without the core, quick to import, its hooks written as specified."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from typing import TYPE_CHECKING, ClassVar

import pytest

from hermes_hookspecs.errors import ConfigError
from hermes_hookspecs.markers import implementation_options
from hermes_hookspecs.specs import ALL_SPECS
from hermes_hookspecs.testing.completeness import CompleteSuite
from hermes_hookspecs.version import ENTRY_POINT_GROUP

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.metadata import EntryPoint

__all__ = ["HEAVY", "PluginSuite", "assert_signatures"]

HEAVY = frozenset(
    {
        "aiohttp",
        "apsw",
        "asyncio",
        "click",
        "concurrent.futures",
        "httpx",
        "numpy",
        "openai",
        "prompt_toolkit",
        "psycopg",
    }
    | {"requests", "rich", "sqlite3", "textual", "tomli", "websockets"}
)
"""Modules that no plugin loads while it is imported: every program start would pay for them."""

_PREFIX = "hermes_"
_PROBE = """
import importlib, sys
sys.modules["hermes_core"] = None
before = set(sys.modules)
importlib.import_module(sys.argv[1])
print(*sorted(set(sys.modules) - before))
"""


def assert_signatures(plugin: object) -> None:
    """Compare the hooks of a plugin (or of its class) with their specifications.

    A hook that is not specified, a parameter that its specification does not have, and a parameter of another type
    are told all at once. An implementation may take fewer parameters.

    :raises AssertionError: something does not fit.
    """
    specs = {name: spec for module in ALL_SPECS for name, spec in vars(module).items() if name.startswith(_PREFIX)}
    kind = plugin if isinstance(plugin, type) else type(plugin)
    faults: list[str] = []
    for name, found in _methods(kind):
        options = implementation_options(found)
        if options is None:
            faults += [f"{name} lacks @hookimpl"] if name.startswith(_PREFIX) else []
            continue
        spec = specs.get(options.specname or name)
        faults += [f"{name} is no hook"] if spec is None else _differences(name, spec, found)
    assert not faults, f"{kind.__name__}: " + "; ".join(faults)


def _methods(kind: type) -> list[tuple[str, Callable[..., object]]]:
    """Return the functions of a class by name, sorted; properties are not looked at."""
    return inspect.getmembers_static(kind, inspect.isroutine)


def _differences(name: str, spec: Callable[..., object], found: Callable[..., object]) -> list[str]:
    wanted = inspect.signature(spec).parameters
    faults = []
    for parameter in inspect.signature(found).parameters.values():
        if parameter.name == "self":
            continue
        if parameter.name not in wanted:
            faults.append(f"{name} takes {parameter.name!r}, which its specification does not have")
            continue
        here, there = _shown(parameter.annotation), _shown(wanted[parameter.name].annotation)
        if here != there:
            faults.append(f"{name} takes {parameter.name}: {here}, specified is {there}")
    return faults


def _shown(annotation: object) -> str:
    """Return an annotation as it is written, without the modules in front of its names."""
    if annotation is inspect.Parameter.empty:
        return "nothing"
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", text).replace("'", "").replace('"', "")


class PluginSuite(CompleteSuite):
    """What every plugin does. A subclass says which one it is.

    Attributes:
        distribution: name of the distribution. entry_point: the plugin's name, left of the equal sign.
        may_import: modules of :data:`HEAVY` that this plugin loads at once, each with a reason beside it.
    """

    distribution: ClassVar[str] = ""
    entry_point: ClassVar[str] = ""
    may_import: ClassVar[frozenset[str]] = frozenset()

    def _found(self) -> EntryPoint:
        from importlib.metadata import distribution

        assert self.distribution, "a subclass of PluginSuite says `distribution`"
        assert self.entry_point, "a subclass of PluginSuite says `entry_point`"
        points = distribution(self.distribution).entry_points.select(group=ENTRY_POINT_GROUP, name=self.entry_point)
        (point,) = points
        return point

    def test_the_entry_point_names_the_plugin_class(self) -> None:
        point = self._found()

        plugin = point.load()

        assert isinstance(plugin, type), f"{point.value} is no class"
        assert re.fullmatch(r"\w+Plugin", plugin.__name__), f"{plugin.__name__} is not called <Name>Plugin"
        assert point.module.endswith(".plugin"), f"{point.module} is not <package>.plugin"

    def test_the_hooks_are_written_as_specified(self) -> None:
        assert_signatures(self._found().load())

    def test_the_plugin_implements_a_hook(self) -> None:
        methods = _methods(self._found().load())

        assert any(implementation_options(method) is not None for _, method in methods), (
            "a plugin without hooks does nothing"
        )

    def test_the_plugin_is_imported_quickly_and_without_the_core(self) -> None:
        module = self._found().module

        done = subprocess.run(  # noqa: S603 (this interpreter, and a module that the entry point names)
            [sys.executable, "-P", "-c", _PROBE, module], capture_output=True, text=True, timeout=60, check=False
        )

        assert done.returncode == 0, done.stderr
        assert set(done.stdout.split()) & (HEAVY - self.may_import) == set()

    def test_an_unknown_setting_is_refused_by_name(self) -> None:
        factory: Callable[..., object] = self._found().load()
        if not inspect.signature(factory).parameters:
            pytest.skip("this plugin takes no settings; the core refuses them for it")

        with pytest.raises(ConfigError, match="no_such_setting"):
            factory({"no_such_setting": 1})
