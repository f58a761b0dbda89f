"""A plugin for pytest that runs the long form of every law: ``pytest -p long_laws``, see ``make laws``.

Only tests of Hypothesis are left, each with at least as many examples as the environment variable ``HERMES_LAWS`` says
(1000), and those with the mark ``law``, which look at that variable themselves. Behind the results stands what a law
has counted, if it has recorded that as a property.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

VARIABLE = "HERMES_LAWS"
_SETTINGS = "_hypothesis_internal_use_settings"
"""Where ``@settings`` leaves them; there is no public name for it."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the laws, and let each have its examples."""
    least = int(os.environ.get(VARIABLE, "1000"))
    laws = [item for item in items if getattr(getattr(item, "obj", None), "is_hypothesis_test", False)]
    rooms = {law.parent for law in laws}
    kept = {*laws, *(item for item in items if item.get_closest_marker("law"))}
    kept |= {item for item in items if item.parent in rooms and _counts(item)}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]
    for law in laws:
        _lengthen(law, least)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what was counted."""
    for report in _reports(terminalreporter):
        for name, value in report.user_properties:
            terminalreporter.write_line(f"{name}: {value}")


def _lengthen(law: pytest.Item, least: int) -> None:
    """Give a law more examples; those of a suite's method are the method's, those of a state machine its class's."""
    test = getattr(law.obj, "__func__", law.obj)  # type: ignore[attr-defined]  # only a function's item is a law
    if hasattr(test, _SETTINGS):
        setattr(test, _SETTINGS, _longer(getattr(test, _SETTINGS), least))
    machine = getattr(law, "cls", None)
    if machine is not None and isinstance(getattr(machine, "settings", None), settings):
        machine.settings = _longer(machine.settings, least)


def _longer(known: settings, least: int) -> settings:
    return settings(known, max_examples=max(least, known.max_examples), deadline=None)


def _counts(item: pytest.Item) -> bool:
    """Return whether a test looks at what a law of its module has counted."""
    return "tally" in getattr(item, "fixturenames", ())


def _reports(reporter: pytest.TerminalReporter) -> Sequence[pytest.TestReport]:
    found = [one for kind in ("passed", "failed") for one in reporter.getreports(kind)]
    return [one for one in found if getattr(one, "when", "") == "call" and one.user_properties]
