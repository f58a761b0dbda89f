"""The suite of a platform's adapter, one module per topic; :class:`PlatformAdapterSuite` is all of them.

It drives an adapter without the core, through the contract alone: a fake platform on one side
(:class:`~hermes_hookspecs.testing.fakes.FakePlatform`), an inlet that fails when it is told to on the other. Give it a
fake that was not started yet, and say what the platform cannot do::

    class TestMyPlatform(PlatformAdapterSuite):
        groups = False

        @pytest.fixture
        def fake(self):
            return FakeMine()

Tests of one's own get the same stage: ask for the fixture ``stage`` in the subclass.
"""

from __future__ import annotations

from hermes_hookspecs.testing.adapters.inlet import ScriptedInlet
from hermes_hookspecs.testing.adapters.stage import AccountOnStage, Stage
from hermes_hookspecs.testing.adapters.state import MemoryState
from hermes_hookspecs.testing.adapters.suite import PlatformAdapterSuite

__all__ = ["AccountOnStage", "MemoryState", "PlatformAdapterSuite", "ScriptedInlet", "Stage"]
