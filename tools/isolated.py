"""Test each distribution alone: its own wheel in an environment of its own, so that nothing undeclared is found.

    python tools/isolated.py                              every distribution
    python tools/isolated.py --only hermes-sessions-cli   one of them (may be repeated)

All first-party wheels are built once. Each environment then gets the wheel under test, the contract's with its extra
``testing``, and what the distribution's ``pyproject.toml`` asks for::

    [tool.hermes.isolated]
    with = ["hermes-sessions-core"]     # further first-party wheels
    requires = ["pexpect"]              # packages for its tests from the index

First-party wheels are given by path, never by name, so that a package of the same name on an index is never taken.
The tests run from an empty folder: the checkout's ``src`` cannot be imported by accident. Tests under ``tests/e2e``
need several distributions and are left out, and so are those that kill processes for minutes: what is proved here is
that nothing undeclared is imported. Ends with 1 when one distribution failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Distribution", "find_distributions", "main", "packages_to_install"]

ROOT = Path(__file__).resolve().parent.parent
CONTRACT = "hermes-sessions-hookspecs"
_NO_TEST_COLLECTED = 5
_LEFT_OUT = frozenset(
    {
        "e2e",
        "care",
        "cases",
        "faults",
        "gateway",
        "inbox",
        "outbox",
        "resets",
        "search",
        "soak",
        "storage",
        "toy_backend",
        "turns",
    }
)
"""Folders of tests that need more than one distribution, or that go through the same rooms for minutes."""


class Distribution(NamedTuple):
    """One distribution of the checkout: its ``name``, its ``folder``, and what its isolated tests need beside it."""

    name: str
    folder: Path
    beside: tuple[str, ...]
    requires: tuple[str, ...]


def find_distributions(root: Path) -> dict[str, Distribution]:
    """Return every distribution under ``root`` by name: the contract, the core, then the plugins, sorted.

    :raises SystemExit: when ``[tool.hermes.isolated]`` has an unknown key or names no distribution of this checkout.
    """
    folders = [root / "hookspecs", root, *sorted((root / "plugins").glob("*"))]
    found: dict[str, Distribution] = {}
    for folder in folders:
        file = folder / "pyproject.toml"
        if not file.exists():
            continue
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        wishes: dict[str, list[str]] = table.get("tool", {}).get("hermes", {}).get("isolated", {})
        if unknown := sorted(wishes.keys() - {"with", "requires"}):
            sys.exit(f"{file}: [tool.hermes.isolated] has no key {unknown[0]!r}; it has 'with' and 'requires'")
        name: str = table["project"]["name"]
        found[name] = Distribution(name, folder, tuple(wishes.get("with", ())), tuple(wishes.get("requires", ())))
    for each in found.values():
        if strangers := [name for name in each.beside if name not in found]:
            sys.exit(
                f"{each.name}: [tool.hermes.isolated] with = {strangers[0]!r}, but this checkout has no such wheel"
            )
    return found


def packages_to_install(distribution: Distribution, wheels: Mapping[str, Path]) -> list[str]:
    """Return pip's arguments for one environment; the contract stands first, since pip 23.2 wants providers first."""
    names = [name for name in (*distribution.beside, distribution.name) if name != CONTRACT]
    return [f"{wheels[CONTRACT]}[testing]", *(str(wheels[name]) for name in names), *distribution.requires]


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, install and test; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", metavar="NAME", help="this distribution alone; may be repeated")
    only: list[str] = parser.parse_args(arguments).only or []
    distributions = find_distributions(ROOT)
    if strangers := [name for name in only if name not in distributions]:
        parser.error(f"no distribution {strangers[0]!r}; there are {', '.join(distributions)}")
    outcomes: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="hermes-isolated-") as scratch:
        wheels = _build_wheels(distributions, Path(scratch) / "wheels")
        for name in only or distributions:
            started = time.monotonic()
            outcome = _test_alone(distributions[name], wheels, Path(scratch) / name)
            outcomes[name] = f"{outcome} in {time.monotonic() - started:.1f} s"
    print("\nEach distribution alone:")
    for name, outcome in outcomes.items():
        print(f"  {name}: {outcome}")
    return 0 if all(outcome.startswith("passed") for outcome in outcomes.values()) else 1


def _build_wheels(distributions: Mapping[str, Distribution], folder: Path) -> dict[str, Path]:
    """Return the wheel of each distribution by name; ends the program when one cannot be built."""
    wheels: dict[str, Path] = {}
    for each in distributions.values():
        own = folder / each.name
        pip = [sys.executable, "-m", "pip", "-q", "wheel", "--no-deps", "-w", str(own), str(each.folder)]
        if subprocess.run(pip, check=False, env=_environment()).returncode:
            sys.exit(f"{each.name}: its wheel cannot be built")
        (wheels[each.name],) = own.glob("*.whl")
    return wheels


def _test_alone(distribution: Distribution, wheels: Mapping[str, Path], folder: Path) -> str:
    """Return ``passed`` or what went wrong, in words."""
    print(f"\n=== {distribution.name} alone ===", flush=True)
    venv.create(folder / "venv", with_pip=False, symlinks=os.name != "nt")
    python = str(folder / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    constraints = ["-c", str(ROOT / "requirements" / "constraints.txt")]
    wanted = packages_to_install(distribution, wheels)
    pip = [sys.executable, "-m", "pip", "-qq", "--python", python, "install", *constraints, *wanted]
    if subprocess.run(pip, check=False, env=_environment()).returncode:
        return "FAILED: it cannot be installed"
    work = folder / "work"
    work.mkdir()
    settings = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(ROOT), "-p", "no:cacheprovider", "-q"]
    tests = distribution.folder / "tests"
    ignored = [f"--ignore={tests / name}" for name in sorted(_LEFT_OUT)]
    pytest = [python, "-P", "-m", "pytest", *settings, *ignored, str(tests)]
    home = {"HERMES_SESSIONS_HOME": str(work / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
    code = subprocess.run(pytest, check=False, cwd=work, env=_environment() | home).returncode
    if code == _NO_TEST_COLLECTED:
        return "FAILED: it has no tests"
    return "passed" if code == 0 else f"FAILED: pytest ended with {code}"


def _environment() -> dict[str, str]:
    """Return this process's environment without what could lead back into the checkout or into a person's home."""
    return {
        name: value
        for name, value in os.environ.items()
        if name not in {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"} and not name.startswith("HERMES_")
    }


if __name__ == "__main__":
    sys.exit(main())
