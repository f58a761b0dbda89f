"""What the entry point names."""

from __future__ import annotations

from hermes_feishu.plugin import FeishuPlugin
from hermes_hookspecs.testing.plugins import PluginSuite


class TestFeishuPlugin(PluginSuite):
    """The suite of every plugin."""

    distribution = "hermes-sessions-feishu"
    entry_point = "feishu"
    may_import = frozenset()


def test_the_plugin_brings_one_platform_configured_or_not():
    (bare,) = FeishuPlugin({}).hermes_platforms()
    (named,) = FeishuPlugin({"accounts": {"b": {"app_id": "cli_b"}, "default": {"app_id": "cli_a"}}}).hermes_platforms()

    assert (bare.name, list(bare.accounts())) == ("feishu", [])
    assert list(named.accounts()) == ["default", "b"]
