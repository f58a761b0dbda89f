"""A sound adapter passes the suite."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hermes_hookspecs.testing.adapters import PlatformAdapterSuite
from hermes_hookspecs.testing.adapters.stage import Timing

sys.path.insert(0, str(Path(__file__).parent / "line_chat"))

from line_chat import FakeLine


class TestLineChat(PlatformAdapterSuite):
    """The adapter that the mutants are made of."""

    timing = Timing(watchdog_s=1, grace_s=0.05)

    @pytest.fixture
    def fake(self):
        return FakeLine()
