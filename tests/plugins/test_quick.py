"""What a quick command must not load: the set of modules counts, not the milliseconds."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

HEAVY = {"asyncio", "concurrent.futures", "importlib.metadata", "importlib_metadata", "json", "logging", "pluggy"}
PROGRAM = """
import sys
import typing  # the contract's errors need it, and it brings `re` on some versions
before = set(sys.modules)
{code}
print(*sorted(set(sys.modules) - before))
"""


def _loaded(code: str, *arguments: str) -> set[str]:
    """Return the modules that ``code`` loads in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(code=code), *arguments],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("package", ["hermes_core.plugins", "hermes_core.config"])
def test_importing_the_package_loads_nothing(package) -> None:
    loaded = _loaded(f"import {package}")

    assert not loaded & (HEAVY | {"attr", "attrs", "tomli", "difflib", "zoneinfo", "inspect", "re", "pathlib"})


def test_a_valid_cache_is_read_without_metadata_reader_parser_or_pathlib(site, tmp_path) -> None:
    site.add("cli", None)
    for path in (*site.folder.rglob("*"), site.folder):
        os.utime(path, ns=(1_700_000_000_000_000_000,) * 2)
    code = """
from hermes_core.plugins import find_candidates
found = find_candidates(sys.argv[1], [sys.argv[2]])
assert [candidate.name for candidate in found] == ["cli"], found
"""
    arguments = (str(tmp_path / "home" / "cache"), str(site.folder))

    first = _loaded(code, *arguments)
    second = _loaded(code, *arguments)

    assert "importlib_metadata" in first
    assert not second & (HEAVY | {"attr", "attrs", "inspect", "re", "pathlib", "difflib"})


def test_settings_without_a_file_load_no_parser(tmp_path) -> None:
    code = """
from pathlib import Path
from hermes_core.config import load_settings
load_settings(Path(sys.argv[1]), None, {}, {"HERMES_AGENT_RUNNER": "echo"})
"""
    loaded = _loaded(code, str(tmp_path))

    assert not loaded & (HEAVY | {"tomli", "difflib", "zoneinfo"})
