"""A profile whose clock stands still; what the tests say and do is in a module that they import as ``resets_scene``."""

from __future__ import annotations

import importlib.util
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hermes_hookspecs.testing.clock import FakeClock


def _load() -> None:
    if "resets_scene" in sys.modules:
        return
    spec = importlib.util.spec_from_file_location("resets_scene", Path(__file__).with_name("scene.py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules["resets_scene"] = module
    spec.loader.exec_module(module)


_load()


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
