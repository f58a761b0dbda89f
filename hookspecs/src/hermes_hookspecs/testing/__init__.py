"""The conformance kit: suites that say whether a plugin keeps its part of the contract, and what their tests need.

Subclass a suite, give it its fixture, and run pytest::

    from hermes_hookspecs.testing.storage import StorageSuite

    class TestMyStore(StorageSuite):
        @pytest.fixture
        def store(self, tmp_path):
            store = MyBackend().open(StoreOptions(path=tmp_path / "state.db"))
            yield store
            store.close()

Needs the extra ``testing`` (pytest and hypothesis). Names are loaded when they are asked for; assert statements of the
suites are rewritten by pytest, which must be told before the suites are imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hermes_hookspecs.testing.adapters import PlatformAdapterSuite as PlatformAdapterSuite
    from hermes_hookspecs.testing.agent_suite import AgentSuite as AgentSuite
    from hermes_hookspecs.testing.agents import ScriptedAgent as ScriptedAgent
    from hermes_hookspecs.testing.attachments import AttachmentStoreSuite as AttachmentStoreSuite
    from hermes_hookspecs.testing.clock import FakeClock as FakeClock
    from hermes_hookspecs.testing.compression import CompressionSuite as CompressionSuite
    from hermes_hookspecs.testing.compression import SummariserSuite as SummariserSuite
    from hermes_hookspecs.testing.keys import KeyBuilderSuite as KeyBuilderSuite
    from hermes_hookspecs.testing.machine import StoreMachine as StoreMachine
    from hermes_hookspecs.testing.plugins import PluginSuite as PluginSuite
    from hermes_hookspecs.testing.plugins import assert_signatures as assert_signatures
    from hermes_hookspecs.testing.providers import ContextProviderSuite as ContextProviderSuite
    from hermes_hookspecs.testing.resets import ResetPolicySuite as ResetPolicySuite
    from hermes_hookspecs.testing.scene import Scene as Scene
    from hermes_hookspecs.testing.search import SearchIndexSuite as SearchIndexSuite
    from hermes_hookspecs.testing.storage import StorageSuite as StorageSuite

__all__ = [
    "AgentSuite",
    "AttachmentStoreSuite",
    "CompressionSuite",
    "ContextProviderSuite",
    "FakeClock",
    "KeyBuilderSuite",
    "PlatformAdapterSuite",
    "PluginSuite",
    "ResetPolicySuite",
    "Scene",
    "ScriptedAgent",
    "SearchIndexSuite",
    "StorageSuite",
    "StoreMachine",
    "SummariserSuite",
    "assert_signatures",
]

_ROOMS = {
    "AgentSuite": "agent_suite",
    "AttachmentStoreSuite": "attachments",
    "CompressionSuite": "compression",
    "ContextProviderSuite": "providers",
    "FakeClock": "clock",
    "FindingSender": "platform",
    "KeyBuilderSuite": "keys",
    "PlatformAdapterSuite": "adapters",
    "PluginSuite": "plugins",
    "RecordingSender": "platform",
    "ResetPolicySuite": "resets",
    "Scene": "scene",
    "ScriptedAgent": "agents",
    "SearchIndexSuite": "search",
    "StorageSuite": "storage",
    "StoreMachine": "machine",
    "SummariserSuite": "compression",
    "assert_signatures": "plugins",
}


def _rewrite_asserts() -> None:
    """Let pytest explain failing assertions of the suites; without pytest there is nothing to explain."""
    try:
        from pytest import register_assert_rewrite
    except ImportError:
        return
    rooms = (
        "adapters",
        "agent_suite",
        "agent_tools",
        "agreement",
        "attachments",
        "completeness",
        "compression",
        "keys",
        "machine",
        "play",
        "plugins",
        "providers",
        "resets",
        "scene",
        "search",
        "search_corpus",
        "storage",
    )
    register_assert_rewrite(*(f"{__name__}.{room}" for room in rooms))


_rewrite_asserts()


def __getattr__(name: str) -> object:
    room = _ROOMS.get(name)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{room}"), name)
