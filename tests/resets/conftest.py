"""A profile whose clock stands still; what the tests share they import as ``resets_scene`` and ``resets_law``."""

from __future__ import annotations

import importlib.util
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hermes_hookspecs.testing.clock import FakeClock


def _load(name: str, file: str) -> None:
    if name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(file))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)


_load("resets_scene", "scene.py")
_load("resets_law", "conversations_law.py")


@pytest.fixture
def clock():
    """Monday, 2 March 2026, 10:00 in Shanghai."""
    return FakeClock(int(datetime(2026, 3, 2, 2, tzinfo=UTC).timestamp() * 1000))


@pytest.fixture
def opened(tmp_path, profile, clock):
    """Return a function that opens a profile: settings by dotted name, and the text of its ``config.toml``."""

    def open_profile(settings=None, config="", **options):
        home = tmp_path / "home"
        home.mkdir(exist_ok=True)
        (home / "config.toml").write_text(config, encoding="utf-8")
        return profile({"inbox.batch_window_s": 0} | (settings or {}), clock=clock, **options)

    return open_profile
