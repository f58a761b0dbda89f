"""What the entry point names."""

from __future__ import annotations

from hermes_hookspecs.testing.plugins import PluginSuite
from hermes_openai.help import HOW_TO_CONFIGURE
from hermes_openai.plugin import OpenAIPlugin


class TestOpenAIPlugin(PluginSuite):
    """The suite of every plugin."""

    distribution = "hermes-sessions-openai"
    entry_point = "openai"
    may_import = frozenset()


def test_the_plugin_brings_one_agent_configured_or_not():
    (bare,) = OpenAIPlugin({}).hermes_agents()
    (named,) = OpenAIPlugin({"model": "m", "base_url": "http://127.0.0.1:1/v1"}).hermes_agents()

    assert (bare.name, bare.model, bare.ready, bare.setup) == ("openai", None, False, HOW_TO_CONFIGURE)
    assert bare.steers
    assert (named.name, named.model, named.ready, named.setup) == ("openai", "m", True, "")
